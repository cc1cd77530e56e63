"""What a campaign is made of: settings as plain values for the ledger, and the objects they describe."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.arrays import plain
from evenhand.campaign.features import KINDS, MOST_COLUMNS
from evenhand.campaign.labels import Classes, check_text, plain_list, read_label
from evenhand.campaign.learners import learner_from_text, wants_numbers
from evenhand.engine.settings import MOST_LABELS, as_population, as_seed, check_settings
from evenhand.errors import InputError
from evenhand.notation import JsonMapping, JsonObject
from evenhand.risks import Costs, OwnRisk, Risk, as_risk
from evenhand.strategies import Strategy, describe_strategy, parse_strategy, strategy_text

if TYPE_CHECKING:
    from evenhand.claims.stopping import Rule as StopRule

__all__ = ["Limits", "Parts", "as_refit", "as_seconds", "check_change", "make_settings", "parts_of", "shown_strategy"]

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_LONGEST_LEASE = 3650 * 86400.0
# marks a setting whose object cannot be made from text, followed by its name for the messages
_OWN = "own:"


@dataclass(frozen=True)
class Limits:
    """What one person may hold; those who lead the campaign may hold more, except for streams.

    Attributes:
        labels: how many labels the open requests of a collector may wait for; one request is always given.
        lease: how many seconds a collector may let a request wait, where the campaign's own lease is not longer; None
            is for ever.
        streams: how many event streams may be open with one token or share link.
    """

    labels: int = 1000
    lease: float | None = 30 * 86400.0
    streams: int = 50

    @classmethod
    def of(cls, settings: JsonMapping) -> Limits:
        """The limits in a campaign's settings."""
        return cls(**settings["limits"])

    def changed(self, given: Mapping[str, Any] | None) -> JsonObject:
        """These limits with some of them changed, as plain values for the settings."""
        if not isinstance(given, Mapping | None):
            raise InputError(f"limits are given by name, such as {{'labels': 500}}, not {given!r}")
        found = dict(given or {})
        if unknown := sorted(map(str, found.keys() - asdict(self).keys())):
            raise InputError(f"there is no limit {unknown[0]!r}: the limits are {', '.join(asdict(self))}")
        if "lease" in found:
            found["lease"] = as_seconds(found["lease"])
        for name in found.keys() & {"labels", "streams"}:
            value = found[name]
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_LABELS:
                raise InputError(f"the limit {name} must be a whole number from 1 up, not {value!r}")
        return asdict(replace(self, **found))

    def longest(self, lease: float | None) -> float | None:
        """How long a collector may let a request wait in a campaign with this lease; None is for ever."""
        return None if lease is None or self.lease is None else max(lease, self.lease)


class Parts:
    """The objects that a campaign's settings describe, each made when it is first wanted.

    Args:
        settings: the plain values.
        given: the user's own objects, by setting; a process that lacks one can do everything that does not need it.
    """

    def __init__(self, settings: JsonMapping, given: JsonMapping) -> None:
        self.settings, self.given = settings, dict(given)

    @cached_property
    def strategy(self) -> Strategy:
        """The strategy, which says which group is next."""
        found = self._own("strategy")
        return parse_strategy(self.settings["strategy"])[1] if found is None else found

    @cached_property
    def learner(self) -> Any:
        """The learner; None if somebody else trains the model."""
        found = self._own("learner")
        return learner_from_text(self.settings["learner"], self.risk) if found is None else found

    @cached_property
    def stop(self) -> StopRule | None:
        """The stopping rule; None to stop when the budget is spent."""
        found = self._own("stop")
        return _stop_rule(self.settings["stop"]) if found is None else found

    @cached_property
    def risk(self) -> Risk:
        """What "worse off" means."""
        found = self._own("risk")
        if found is not None:
            return as_risk(found)
        risk = as_risk(self.settings["risk"], self.settings["positive"])
        # a table of costs has no names in it: its rows and
        # columns are in the order of the campaign's classes
        return replace(risk, order=tuple(self.settings["classes"])) if risk.name == "costs" else risk

    @cached_property
    def needs_numbers(self) -> bool:
        """Whether the learner fails on text and missing values, so that they must not get into the ledger."""
        text = self.settings["learner"]
        # the most usual learner is recognised by its name, without importing anything
        return text is not None and (text.partition(":")[0] == "logistic" or wants_numbers(self.learner))

    def _own(self, name: str) -> Any:
        text = self.settings[name]
        if not (isinstance(text, str) and text.startswith(_OWN)):
            return None
        if name not in self.given:
            what = text.removeprefix(_OWN)
            raise InputError(f"this campaign's {name} is your own object ({what}): give it again, open(…, {name}=...)")
        return self.given[name]


def as_seconds(lease: str | float | None) -> float | None:
    """How long a request waits for its labels: seconds, or `90m`, `24h`, `7d`; None or `never` is for ever.

    >>> as_seconds("2h"), as_seconds("never")
    (7200.0, None)
    """
    if lease is None or lease == "never":
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", str(lease))
    seconds = float(found[1]) * _UNITS[found[2] or "s"] if found else 0.0
    if not 0 < seconds <= _LONGEST_LEASE:
        raise InputError(f"cannot use the lease {lease!r}: write e.g. 90m, 24h, 7d (at most 3650d) or never")
    return seconds


def as_refit(refit: str | int) -> str | int:
    """When the model is refitted: `always`, after a number of labels, or in the `background`.

    >>> as_refit("100")
    100
    """
    if refit in ("always", "background"):
        return refit
    if not str(refit).isdecimal() or int(refit) < 1:
        raise InputError(f"refit must be always, background or a number of labels, not {refit!r}")
    return int(refit)


def make_settings(
    groups: Sequence[str] | None,
    strategy: str | Strategy,
    learner: Any,
    *,
    budget: int,
    batch: int,
    warmup: int | None,
    validation: float,
    classes: Sequence[Any] | None,
    population: Mapping[str, float] | Sequence[float] | None,
    seed: int | tuple[int, int] | None,
    stop: Any,
    refit: str | int,
    lease: str | float | None,
    distinct: bool = False,
    risk: str | Risk | OwnRisk = "error",
    positive: Any = None,
    test_labels: int = 0,
    label: str = "label",
    group: str = "group",
    id: str = "id",
    features: Mapping[str, str] | Sequence[str] | None = None,
    limits: Mapping[str, Any] | None = None,
) -> tuple[JsonObject, Parts]:
    """The settings as plain values, validated, and the objects they describe."""
    rule = parse_strategy(strategy)[1] if isinstance(strategy, str) else strategy
    checked: dict[str, Any] = {"budget": budget, "batch": batch, "warmup": warmup, "validation": validation}
    # one group stands in for the unknown ones: everything else can be refused before a pool is read
    if groups is None:  # checked again when the first pool names them
        check_settings(["one group"], rule, **checked)
        if population is not None:
            raise InputError("population needs groups: name them, or leave both to the pool")
    names = () if groups is None else check_settings(groups, rule, **checked)
    for name in names:
        check_text(name, "the group")
    columns = [label, group, id, *(features or ())]
    if len(set(columns)) < len(columns):
        raise InputError(f"the columns of label, group, id and features must differ: {', '.join(map(repr, columns))}")
    distinct = plain(distinct)
    if not isinstance(distinct, bool):
        raise InputError(f"distinct is True or False, not {distinct!r}")
    number, trial = as_seed(seed)
    share = None if groups is None else as_population(population, names, rule)
    settings = {
        "groups": list(names),
        "strategy": _strategy_text(strategy),
        # kept, because a process that lacks the strategy must still fold as many accuracies
        "window": int(getattr(rule, "window", 20)),
        "budget": int(budget),
        "batch": int(batch),
        "warmup": None if warmup is None else int(warmup),
        "validation": float(validation),
        "classes": None if classes is None else Classes(plain_list(classes)).known,
        "population": None if share is None else share.tolist(),
        # as text: a seed may have more than the 53 bits that JSON's numbers keep
        "seed": str(number),
        "trial": trial,
        "refit": as_refit(refit),
        "lease": as_seconds(lease),
        "distinct": distinct,
        "test_labels": _test_labels(test_labels, int(budget)),
        "label": label,
        "group": group,
        "id": id,
        "features": None if features is None else _features(features),
        "limits": Limits().changed(limits),
    }
    given = {"strategy": rule}
    known = None if classes is None else Classes(plain_list(classes)).known
    settings |= _risk_settings(risk, positive, known, rule, given)
    settings |= _learner_settings(learner, Parts(settings, given).risk, given)
    settings |= _stop_settings(_stop_rule(stop), given)
    parts = Parts(settings, given)
    if isinstance(features, Mapping) and parts.needs_numbers:
        _refuse_other_kinds(features)
    return settings, _checked(parts)


def _features(given: Mapping[str, str] | Sequence[str]) -> JsonObject | list[str]:
    """The columns to learn from: their names, or their names and kinds."""
    if isinstance(given, str):
        raise InputError(f"features are a list of columns, or columns with what they hold, not {given!r}")
    for name in given:
        check_text(name, "the name of a feature", lines=True)
    if len(given) > MOST_COLUMNS:
        raise InputError(f"features names {len(given):,} columns, and {MOST_COLUMNS:,} are the most")
    if not isinstance(given, Mapping):
        return list(given)
    if not given:
        raise InputError("features is empty: name at least one column, or leave it out")
    for name, kind in given.items():
        if kind not in KINDS:
            raise InputError(f"column {name!r} cannot be {kind!r}: a column is {', '.join(KINDS[:-1])} or {KINDS[-1]}")
    return dict(given)


def _refuse_other_kinds(features: Mapping[str, str]) -> None:
    from evenhand.tables.schema import NUMBERS, not_numbers

    for name, kind in features.items():
        if kind not in NUMBERS:
            raise InputError(not_numbers(name, kind))


def parts_of(settings: JsonMapping, **given: Any) -> Parts:
    """The objects that settings describe; the user's own have to be given again."""
    made: dict[str, Any] = {}
    for name, value in given.items():
        if value is None:
            continue
        text = settings[name]
        if not (isinstance(text, str) and text.startswith(_OWN)):
            raise InputError(
                f"this campaign's {name} is stored as {text!r}: leave it out of open(), or replace it with change()"
            )
        # learner and rule are made below, since a learner has to know the risk
        made[name] = value if name in ("strategy", "risk") else None
        if name == "risk" and as_risk(value).name != text.removeprefix(_OWN):
            raise InputError(
                f"this campaign's risk is {text.removeprefix(_OWN)!r}, not {as_risk(value).name!r}: pass the same one"
            )
    if "stop" in made:
        made["stop"] = _stop_rule(given["stop"])
    if "learner" in made:
        from evenhand.learners import as_learner

        made["learner"] = as_learner(given["learner"], Parts(settings, made).risk)
    return Parts(dict(settings), made)


def check_change(parts: Parts, committed: int, changes: JsonMapping) -> tuple[JsonObject, Parts]:
    """Changed settings as plain values, and the objects they describe; `committed` labels are used or promised."""
    known = ("budget", "learner", "lease", "stop", "refit", "limits")
    unknown = sorted(changes.keys() - set(known))
    if not changes:
        raise InputError(f"nothing to change: give {', '.join(known)}")
    if unknown:
        raise InputError(f"cannot change {unknown[0]!r}: only {', '.join(known)} can")
    found: JsonObject = {}
    given = dict(parts.given)
    if "budget" in changes:
        found["budget"] = _budget(changes["budget"], committed)
    if "lease" in changes:
        found["lease"] = as_seconds(changes["lease"])
    if "limits" in changes:
        found["limits"] = Limits.of(parts.settings).changed(changes["limits"])
    if "refit" in changes:
        found["refit"] = as_refit(changes["refit"])
    if "learner" in changes:
        found |= _learner_settings(changes["learner"], parts.risk, given)
    if "stop" in changes:
        found |= _stop_settings(_stop_rule(changes["stop"]), given)
    return found, _checked(Parts({**parts.settings, **found}, given))


def _checked(parts: Parts) -> Parts:
    """The parts, after checking that the stopping rule works with this learner."""
    if parts.stop is None or not parts.stop.needs_certificate:
        return parts
    if parts.settings["learner"] is None:
        raise InputError("a target needs a certificate, and a certificate needs a learner: give learner=...")
    if parts.risk.name == "balanced" and parts.settings["classes"] is None:
        raise InputError("a target for the balanced error is about every class there may be: give classes=[...]")
    return parts


def _budget(budget: Any, committed: int) -> int:
    if not isinstance(budget, int | np.integer) or not 0 <= budget <= MOST_LABELS:
        raise InputError(f"budget must be a whole number of labels, at most {MOST_LABELS:,}, not {budget!r}")
    if budget < committed:
        raise InputError(f"a budget of {budget} is less than the {committed} labels already used or promised")
    return int(budget)


def _test_labels(count: Any, budget: int) -> int:
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or not 0 <= count <= budget:
        raise InputError(f"test_labels must be a whole number from 0 to the budget of {budget}, not {count!r}")
    return int(count)


def _risk_settings(
    risk: str | Risk | OwnRisk, positive: Any, classes: list[Any] | None, rule: Any, given: dict[str, Any]
) -> JsonObject:
    """The risk's setting; the user's own function is kept in `given`."""
    found = as_risk(risk, positive)
    if found.name == "costs" and classes is None:
        raise InputError("costs need the classes their rows and columns stand for: give classes=[...]")
    if found.name == "log" and getattr(rule, "bound", None) is not None:
        raise InputError("a bound speaks of losses in [0, 1], which the log loss leaves: use risk='error'")
    if classes is not None:
        found.for_classes(sorted(classes))
    if found.order and classes is not None:  # the ledger keeps the costs in the order of the campaign's classes
        place = [found.order.index(label) for label in classes]
        found = Costs(np.array(found.costs)[np.ix_(place, place)])
    settings: dict[str, Any] = {"risk": str(found), "positive": None}
    if found.positive is not None:
        settings["positive"] = read_label(found.positive)
    if found.function is not None and not isinstance(risk, str):
        given["risk"], settings["risk"] = found.function, f"{_OWN}{found.name}"
    return settings


def _learner_settings(learner: Any, risk: Risk, given: dict[str, Any]) -> dict[str, Any]:
    """The learner's setting, after making it once; the user's own object is kept in `given`."""
    given.pop("learner", None)
    if learner is None or isinstance(learner, str):
        if learner is not None and learner.startswith(_OWN):
            raise InputError(f"unknown learner {learner!r}")
        learner_from_text(learner, risk)
        return {"learner": learner}
    from evenhand.learners import as_learner
    from evenhand.learners.parsing import describe_learner

    given["learner"] = made = as_learner(learner, risk)
    return {"learner": describe_learner(made) or f"{_OWN}{type(getattr(made, 'estimator', made)).__name__}"}


def _stop_rule(given: StopRule | str | Sequence[str] | None) -> StopRule | None:
    # most campaigns have none, and a command on them should not wait for all that rules rest on to be imported
    if given is None:
        return None
    from evenhand.claims.stopping import parse_stop

    return parse_stop(given)


def _stop_settings(stop: StopRule | None, given: dict[str, Any]) -> dict[str, Any]:
    given["stop"] = stop
    text = None if stop is None else str(stop)
    try:
        # a text is trusted only if it reads back as the same rule
        own = _stop_rule(text) != stop
    except ValueError:
        own = True
    return {"stop": f"{_OWN}{type(stop).__name__}" if own else text, "rounds_back": stop.rounds_back if stop else 0}


def shown_strategy(text: str) -> str:
    """A stored strategy for people to read: without the settings that are the defaults anyway.

    >>> shown_strategy("optimistic:c0=0.5,c1=0.0,xi=0.5")
    'optimistic:c0=0.5'
    """
    try:
        return strategy_text(text)
    except InputError:  # the user's own object, or a term that this machine may not import
        return text


def _strategy_text(strategy: str | Strategy) -> str:
    """The strategy's setting: a text from which it is made again, or a note that it is the user's own object.

    The text names every setting, so that a campaign continues as it began even if a later version has other defaults.
    """
    if isinstance(strategy, str):
        return describe_strategy(parse_strategy(strategy)[1], in_full=True) or strategy_text(strategy)
    # an object with own terms is given again when the campaign is opened, whatever this machine allows texts to name
    text = None if getattr(strategy, "terms", ()) else describe_strategy(strategy, in_full=True)
    return text or f"{_OWN}{getattr(strategy, '__name__', type(strategy).__name__)}"

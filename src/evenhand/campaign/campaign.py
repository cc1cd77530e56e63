"""The campaign: ask whom to label next, tell what came; all it knows is the fold of its ledger's events."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from evenhand.campaign.answering import Options
from evenhand.campaign.asking import Asking
from evenhand.campaign.deliveries import Delivery
from evenhand.campaign.labels import check_text
from evenhand.campaign.losses import check_losses
from evenhand.campaign.pools import order_anew
from evenhand.campaign.requests import Receipt, Request
from evenhand.campaign.settings import Parts, check_change, make_settings, parts_of
from evenhand.campaign.state import State
from evenhand.campaign.store import CampaignStore, Once, user_name
from evenhand.engine.settings import forced_warning
from evenhand.errors import EvenhandError, InputError, LedgerError, Repeated
from evenhand.ledger import Example, Ledger, MemoryLedger, Writer, open_ledger
from evenhand.ledger import copy as copy_ledger
from evenhand.notation import JsonObject

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from evenhand.arrays import Features
    from evenhand.claims.certificates import Certificate
    from evenhand.claims.stopping import Rule as StopRule
    from evenhand.risks import OwnRisk, Risk
    from evenhand.strategies import Strategy

__all__ = ["Campaign", "campaigns"]

_POLL_SECONDS = 0.05


class Campaign(Asking):
    """A labelling campaign: `ask` which group to label next, `tell` the labels that came, until the budget is spent.

    This one lives in memory; `Campaign.create` makes one that outlives the process, and `Campaign.open` opens it, from
    many processes at once. Each step takes the campaign's write lock, folds in the events that came since, decides, and
    appends: what a step has returned is stored. Fitting happens outside any transaction, in one process at a time.

    Args:
        groups: the names of the groups; None takes those of the first pool.
        strategy: which group next, e.g. `Optimistic()` or `"optimistic:c0=0.5"`.
        learner: what is trained, e.g. `Logistic()` or `"logistic"`; None if you train yourself and call `tell_losses`.
        budget: how many labels may be spent, training and validation together.
        batch: how many examples of each role a request asks for; a request is for `2·batch` labels.
        warmup: the number of warm-up rounds, which ask the groups in turn; None is one round for every group.
        validation: the share of each group's examples that is used for validation.
        classes: the possible labels; None learns them from the labels that come.
        population: each group's share of the population, as a mapping or in the order of `groups`.
        risk: what "worse off" means: `"error"`, `"log"`, `"fnr"`, `"fpr"`, `"balanced"`, `Costs(...)`, or a function
            `(model, X, y)` that gives a number in [0, 1] for every example and which of them are relevant.
        positive: the class that `"fnr"` and `"fpr"` are about.
        test_labels: how many labels of the budget are for testing; they are asked for first, equally many of each
            group, and never trained on.
        seed: the same seed makes the same choices; a pair (seed, trial) makes those of that trial of a simulation. None
            draws one, which `settings` shows. In memory a given seed also decides the order of a pool's rows, and then
            nothing can be certified about them; in a database that order is secret whatever the seed.
        stop: a stopping rule, e.g. `ErrorBelow(0.1) | Deadline("2027-03-01")`, or its text.
        refit: when the model is refitted: `"always"` (before an ask), a number (each time that many labels have come),
            or `"background"` (only when `refit()` is called).
        lease: how long a request waits for its labels, e.g. `"24h"`; None waits for ever.
        distinct: your word that every row told without an id is a different example; certificates need it.
        name: the campaign's name.

    Examples:
        >>> import evenhand as eh
        >>> c = eh.Campaign(["u", "v"], eh.Uniform(), budget=4, seed=1)
        >>> r = c.ask()
        >>> _ = c.tell(r, n=2)
        >>> c.ask().group != r.group
        True
    """

    def __init__(
        self,
        groups: Sequence[str] | None,
        strategy: str | Strategy = "optimistic",
        learner: Any = None,
        *,
        budget: int,
        batch: int = 1,
        warmup: int | None = None,
        validation: float = 0.5,
        classes: Sequence[Any] | None = None,
        population: Mapping[str, float] | Sequence[float] | None = None,
        risk: str | Risk | OwnRisk = "error",
        positive: Any = None,
        test_labels: int = 0,
        seed: int | tuple[int, int] | None = None,
        stop: StopRule | str | Sequence[str] | None = None,
        refit: str | int = "always",
        lease: str | float | None = None,
        distinct: bool = False,
        name: str = "campaign",
    ) -> None:
        settings, parts = make_settings(
            groups, strategy, learner, budget=budget, batch=batch, warmup=warmup, validation=validation, classes=classes,
            population=population, risk=risk, positive=positive, test_labels=test_labels, seed=seed, stop=stop,
            refit=refit, lease=lease, distinct=distinct,
        )  # fmt: skip
        self._begin(MemoryLedger(), name, settings, parts, by_seed=seed is not None)

    @classmethod
    def create(
        cls,
        url: str | Ledger,
        name: str,
        groups: Sequence[str] | None = None,
        strategy: str | Strategy = "optimistic",
        learner: Any = "logistic",
        *,
        budget: int,
        lease: str | float | None = "1d",
        **settings: Any,
    ) -> Self:
        """Create a campaign in a database, `sqlite:///file.db` or `postgresql://…`, which is made if it does not exist.

        The settings are those of `Campaign`; `label`, `group`, `id` and `features`: the columns of delivered files; and
        `limits`: what one person may hold through a server, `{"labels": 1000, "lease": "30d", "streams": 50}` unless
        given: labels that a collector's open requests wait for, how long a collector may let one wait, event streams of
        one token or share link.
        """
        # `make_settings` has no defaults for these, so that `__init__` cannot forget to pass one on
        given = {
            "batch": 1, "warmup": None, "validation": 0.5, "classes": None, "population": None, "seed": None, "stop": None,
            "refit": "always", **settings,
        }  # fmt: skip
        try:
            plain, parts = make_settings(groups, strategy, learner, budget=budget, lease=lease, **given)
        except TypeError as error:
            # an unknown keyword is the caller's mistake, not ours
            raise InputError(f"cannot create the campaign: {error}") from None
        check_text(name, "the campaign's name")
        self = cls.__new__(cls)
        ledger = url if isinstance(url, Ledger) else open_ledger(url, create=True)
        self._begin(ledger, name, plain, parts, by_seed=given["seed"] is not None and isinstance(ledger, MemoryLedger))
        return self

    @classmethod
    def open(
        cls,
        url: str | Ledger,
        name: str,
        *,
        read_only: bool = False,
        strategy: Strategy | None = None,
        learner: Any = None,
        risk: OwnRisk | None = None,
        stop: StopRule | None = None,
    ) -> Self:
        """Open an existing campaign; with `read_only`, nothing is changed or blocked.

        If the campaign was created with your own strategy, learner, risk or stopping rule, give that object again.
        """
        ledger = url if isinstance(url, Ledger) else open_ledger(url, read_only=read_only)
        self = cls.__new__(cls)
        self.store = CampaignStore(ledger, name, read_only=read_only)
        parts = parts_of(self.store.state.settings, strategy=strategy, risk=risk, learner=learner, stop=stop)
        try:
            self.store.use(parts)
        except EvenhandError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise LedgerError(f"the settings of {name!r} are damaged: {error!r}; restore a backup") from error
        return self

    def copy(self) -> Self:
        """A copy of this campaign in memory, as it stands: what you try out on it does not change the original.

        It hands out the rows of its pool in an order of its own and can certify nothing.
        """
        ledger = MemoryLedger()
        copy_ledger(self.store.ledger, ledger, [self.name])
        found = type(self).__new__(type(self))
        found.store = CampaignStore(ledger, self.name)
        found.store.use(Parts(dict(found.store.state.settings), self.store.parts.given))
        placed = [e for e in ledger.everything(found.store.number) if isinstance(e, Example) and e.place is not None]
        found.store.write(lambda state, writer: order_anew(writer, placed))
        return found

    def _begin(self, ledger: Ledger, name: str, settings: JsonObject, parts: Parts, *, by_seed: bool) -> None:
        check_text(name, "the campaign's name")
        settings["order"] = "seed" if by_seed else "secret"
        with ledger.create(name) as writer:
            writer.append("created", settings, actor=user_name())
        self.store = CampaignStore(ledger, name)
        self.store.use(parts)
        examples = settings["budget"] * (1 - settings["validation"])
        # with groups left to the first pool, `pool` warns once they are known
        if settings["groups"] and (message := forced_warning(parts.strategy, len(settings["groups"]), examples)):
            warnings.warn(message, stacklevel=3)

    # ---------------------------------------------------------------- telling

    def tell(
        self,
        request: Request | int,
        X: Any = None,
        y: ArrayLike | None = None,
        ids: ArrayLike | None = None,
        collector: str | None = None,
        partial: bool = False,
        extra: bool = False,
        dry_run: bool = False,
        *,
        n: int | None = None,
    ) -> Receipt:
        """Answer a request with labelled rows, all at once or in parts. Never fits.

        An id told before with the same label and features changes nothing; with others it is refused. Without ids, a
        delivery equal to an earlier one of this request changes nothing. All rows are stored or, if one cannot be, none.

        Args:
            request: the request, or its number.
            X: features, one row for every example.
            y: their labels.
            n: the number of rows, in place of the rows, if you train the model yourself; it closes the request.
            ids: the examples' ids; made by the campaign if you give none.
            collector: who collected them.
            partial: store the good rows even if some are refused.
            extra: take more rows than are outstanding, while the budget lasts.
            dry_run: only say what would be stored.
        """
        if (X is None) != (y is None) or (X is None) == (n is None):
            raise InputError("tell either rows, tell(request, X, y), or their number, tell(request, n=...)")
        number = self._own_request(request)
        if n is not None:
            options = Options(collector, partial, extra)
            return self.store.deliver(lambda s, w: self.store.intake.count(s, w, number, n, options), dry_run)
        return self.tell_delivery(
            number, Delivery.of(X, y, ids), collector=collector, partial=partial, extra=extra, dry_run=dry_run
        )

    def tell_delivery(
        self,
        request: int,
        delivery: Delivery,
        *,
        collector: str | None = None,
        partial: bool = False,
        extra: bool = False,
        dry_run: bool = False,
    ) -> Receipt:
        """Answer a request with rows as they were read from a file."""
        options = Options(collector, partial, extra)
        return self.store.deliver(lambda s, w: self.store.intake.tell(s, w, request, delivery, options), dry_run)

    def add(
        self,
        X: Features,
        y: ArrayLike,
        groups: Sequence[str],
        ids: ArrayLike | None = None,
        charge: bool = False,
        *,
        by: str | None = None,
    ) -> Receipt:
        """Bring in labelled data you already have; free unless `charge=True`. It is never evidence for a certificate."""
        return self.add_delivery(Delivery.of(X, y, ids, groups), charge=charge, by=by)

    def tell_losses(
        self, losses: Mapping[str, Sequence[float]], *, by: str | None = None, once: Once | None = None
    ) -> None:
        """Report your own model's mean loss, accuracy and number of validation examples, group by group."""

        def step(state: State, writer: Writer) -> None:
            writer.append("losses", {"groups": check_losses(state, losses)}, actor=by)

        with suppress(Repeated):
            self.store.write(step, still_open=True, once=once)

    # ---------------------------------------------------------------- running it

    def change(self, *, by: str | None = None, **settings: Any) -> None:
        """Change `budget`, `learner`, `lease`, `stop`, `refit` or some of the `limits` from here on."""
        changed: list[Parts] = []

        def step(state: State, writer: Writer) -> None:
            facts, parts = check_change(self.store.parts, state.labels_used + state.outstanding, settings)
            changed[:] = [parts]
            writer.append("changed", facts, actor=by)

        # the new objects are put to use before another thread decides anything with the old ones
        with self.store.lock:
            self.store.write(step, still_open=True)
            self.store.use(Parts(dict(self.store.state.settings), changed[0].given))

    def close(self, reason: str = "closed", *, by: str | None = None, once: Once | None = None) -> None:
        """End the campaign: nothing is asked or accepted any more. `status` then says which model to deploy."""
        facts: JsonObject = {"reason": reason}
        # choosing takes seconds, so it happens before the write lock is taken; the choice is a
        # fact and is stored, because nobody can refit a campaign whose examples are erased later
        if self.store.refresh().settings["learner"] is not None and self.store.state.closed is None:
            with suppress(EvenhandError):  # no examples yet, or a learner that fails: the campaign ends all the same
                facts["choice"] = self.store.trainer.final_model().choice.as_dict()
        with suppress(Repeated):
            self.store.write(lambda state, writer: writer.append("closed", facts, actor=by), still_open=True, once=once)

    def refit(self) -> bool:
        """Fit and score if examples came since the last scores; False if not needed or another process refits."""
        if self.store.read_only:
            raise InputError(f"the campaign {self.name!r} was opened read-only: open it without read_only to refit")
        return self.store.trainer_now().refit()

    def certify(
        self,
        target: float | None = None,
        *,
        model: Any = "final",
        most: int | None = None,
        delta: float | None = None,
        distinct: bool | None = None,
        by: str | None = None,
    ) -> Certificate:
        """Freeze a model: labels that answer requests from now on are evidence about it, which `certificate` sums up.

        With a target, requests are of kind `certify` from then on: they ask for the group whose labels the proof needs
        most, and all their labels are outside the validation share. The proof ends *certified*, *refuted* or *not
        reached*; `ask` then raises `NothingToAsk` with the outcome, until `certify` or `change(stop=...)` is called. A
        second proof of the same model keeps its evidence; a model is frozen anew only if that is expected to take fewer
        labels.

        Args:
            target: the risk that no group may exceed.
            model: `"final"`, what `final_model` returns now; `"current"`, fitted on the training examples; or your own.
            most: labels the proof may take; by default what is left of the budget.
            delta: the largest probability that the certificate is wrong, at most 0.5; version k of the frozen model gets
                δ/(k(k+1)). By default that of the model frozen before, or 0.05; a model that is frozen already can be
                proven with as much confidence or more.
            distinct: your word that every row told without an id is a different example; by default the campaign's
                setting.
            by: who freezes it.
        """
        return self.store.trainer_now().certifier.certify(
            target, model=model, most=most, delta=delta, distinct=distinct, by=by
        )


def campaigns(url: str) -> list[str]:
    """The names of the campaigns in a database."""
    with open_ledger(url, read_only=True) as ledger:
        return list(ledger.campaigns())

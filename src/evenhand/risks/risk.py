"""Risks, and a risk for given classes: a table of losses by true and predicted class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand.arrays import Floats, Ints, Mask, Values
from evenhand.errors import InputError, RiskError
from evenhand.extending import is_factory, make
from evenhand.notation import JsonObject
from evenhand.risks.log_loss import log_losses
from evenhand.risks.tally import Outcomes, Tally

NAMES = ("error", "log", "fnr", "fpr", "balanced")
"""The risks that need nothing but their name."""

ABOUT_POSITIVE = ("fnr", "fpr")
"""Those that also need the positive class."""

RATES = ("error", "fnr", "fpr", "balanced")
"""Those that are shares of examples, shown in per cent."""

_TITLES = {"log": "log loss", "fnr": "false negative rate", "fpr": "false positive rate", "balanced": "balanced error"}
_TITLES["costs"] = "cost"

TREND_IS_ACCURACY = ("error", "log")
"""Risks whose trend is that of the accuracy, as the paper has it; for others it is that of 1 − risk."""

OwnRisk = Callable[[Any, Any, Any], tuple[ArrayLike, ArrayLike]]
"""A custom risk: `(model, X, y)` returns a number in [0, 1] for every example, and which examples are relevant."""


@dataclass(frozen=True)
class Risk:
    """A risk by name, before the classes are known.

    >>> str(as_risk("error")), as_risk("fnr", positive="ill").title
    ('error', 'false negative rate')
    """

    name: str
    positive: str | int | bool | None = None
    costs: tuple[tuple[float, ...], ...] = ()
    order: tuple[str | int | bool, ...] = ()
    function: OwnRisk | None = None

    @property
    def title(self) -> str:
        """The name shown to people."""
        return title_of(self.name)

    @property
    def is_error(self) -> bool:
        """Whether this is the plain error, 1 − accuracy."""
        return self.name == "error"

    @property
    def claimed(self) -> Risk:
        """The risk that certificates are about: the error in place of the log loss, which has no upper limit."""
        return ERROR if self.name == "log" else self

    @property
    def running(self) -> Risk:
        """The risk of the running statement: the error, if a group's risk is not a mean of numbers in [0, 1]."""
        return ERROR if self.name in ("log", "balanced") else self

    def for_classes(self, classes: Sequence[object] | Values, *, final: bool = True) -> Measure:
        """The risk for these sorted classes; `final=False` if more classes may still appear."""
        labels = np.asarray(classes).tolist()
        K = len(labels)
        if self.function is not None or self.name == "log":
            return Measure(self, tuple(labels), None, np.ones(K, dtype=bool))
        # one column more than classes, for a prediction that is none of them: always wrong
        wrong = 1.0 - np.eye(K, K + 1)
        if self.name == "costs":
            return Measure(self, tuple(labels), self._costs_of(labels), np.ones(K, dtype=bool))
        if self.name in ABOUT_POSITIVE:
            hit = self._position(labels, final)
            is_positive = np.arange(K) == hit
            relevant = is_positive if self.name == "fnr" else ~is_positive
            # a false positive is only what is taken for the positive class, not any mix-up of the others
            table = wrong if self.name == "fnr" else np.tile(np.append(is_positive, False).astype(float), (K, 1))
            return Measure(self, tuple(labels), table, relevant)
        return Measure(self, tuple(labels), wrong, np.ones(K, dtype=bool))

    def _position(self, labels: list[object], final: bool) -> int:
        """The position of the positive class; −1 if it may still appear."""
        # by value and kind first: True equals 1 in Python
        wanted = self.positive
        exact = [k for k, label in enumerate(labels) if label == wanted and type(label) is type(wanted)]
        alike = [k for k, label in enumerate(labels) if is_same_class(label, wanted)]
        if exact or alike:
            return (exact or alike)[0]
        if not final:
            return -1
        shown = ", ".join(map(repr, labels[:10]))
        raise InputError(f"positive={self.positive!r} is not a class: the classes are {shown}")

    def _costs_of(self, labels: list[object]) -> Floats:
        """The costs in the order of the labels, scaled so that the dearest confusion costs 1."""
        table = np.array(self.costs)
        if len(table) != len(labels):
            raise InputError(
                f"the costs are for {len(table)} classes, but there are {len(labels)}: give a row and a column for every class"
            )
        if self.order:
            unknown = [label for label in labels if label not in self.order]
            if unknown:
                raise InputError(f"the costs are for the classes {list(self.order)}, which have no {unknown[0]!r}")
            place = [self.order.index(label) for label in labels]
            table = table[np.ix_(place, place)]
        # a prediction that is no class costs what the dearest mistake on that example costs
        return np.asarray(np.column_stack((table, table.max(axis=1))) / table.max(), dtype=float)

    def settings(self) -> JsonObject:
        """The risk as plain values: its text and, where it has them, the positive class and the classes of its costs."""
        found: JsonObject = {"risk": str(self), "positive": self.positive, "cost_classes": list(self.order) or None}
        return {name: value for name, value in found.items() if value is not None}

    def __str__(self) -> str:
        if self.name == "costs":
            return "costs:" + ";".join(",".join(map(_short, row)) for row in self.costs)
        return self.name


def is_same_class(label: object, wanted: object) -> bool:
    """Whether a class is the one that somebody named, perhaps as text on a command line.

    >>> is_same_class(1, "1"), is_same_class(True, "true"), is_same_class("Ill", "ill")
    (True, True, False)
    """
    if isinstance(label, bool) or isinstance(wanted, bool):
        return bool(label == wanted) or str(label).lower() == str(wanted).lower()
    return bool(label == wanted) or str(label) == str(wanted)


def _read_only(values: object) -> Any:
    """The same array as a read-only view, so that a user's function cannot change it."""
    if not isinstance(values, np.ndarray):
        return values
    view = values.view()
    view.flags.writeable = False
    return view


def title_of(text: str) -> str:
    """A risk's name as shown to people, from its text; in a ledger `own:` marks a user's function."""
    return _TITLES.get(text.partition(":")[0], text.removeprefix("own:"))


def _short(value: float) -> str:
    """A number that reads back exactly, without a needless point."""
    return str(int(value)) if value.is_integer() else repr(value)


def Costs(matrix: ArrayLike, classes: Sequence[object] | None = None) -> Risk:
    """What each confusion costs: a row for every true class, a column for every predicted one.

    Rows and columns are in the order of `classes`, or of the campaign's or source's classes. Costs are scaled so that
    the highest is 1.

    >>> str(Costs([[0, 1], [5, 0]]))
    'costs:0,1;5,0'
    """
    try:
        table = np.asarray(matrix, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"costs must be a table of numbers, not {matrix!r}") from None
    if table.ndim != 2 or table.shape[0] != table.shape[1] or len(table) < 2:
        raise InputError(f"costs must have a row and a column for every class, not the shape {table.shape}")
    if not np.isfinite(table).all() or (table < 0).any():
        raise InputError(f"costs must be numbers from 0 up, not {table.tolist()}")
    if table.min() == table.max():
        raise InputError(f"all costs are {table.max():g}: a risk needs confusions that cost more than being right")
    order = () if classes is None else tuple(np.asarray(classes).tolist())
    if order and len(order) != len(table):
        raise InputError(f"the costs are for {len(table)} classes, but {len(order)} are named")
    return Risk("costs", costs=tuple(map(tuple, table.tolist())), order=order)


ERROR = Risk("error")


def as_risk(given: str | Risk | OwnRisk, positive: Any = None) -> Risk:
    """A risk from its name, `Costs(...)` or a function `(model, X, y) → (values, relevant)`.

    >>> as_risk("costs:0,1;5,0") == Costs([[0, 1], [5, 0]])
    True
    """
    risk = _read(given)
    if risk.name in ABOUT_POSITIVE:
        if getattr(positive, "size", 1) != 1:
            raise InputError(f"positive must be one class, not {positive!r}")
        value = positive.item() if hasattr(positive, "item") else positive
        value = risk.positive if value is None else value
        if value is None:
            raise InputError(f"risk={risk.name!r} needs the positive class: give positive=...")
        return Risk(risk.name, positive=value)
    if positive is not None:
        raise InputError(f"positive={positive!r} belongs to the risks 'fnr' and 'fpr'; {str(risk)!r} has no use for it")
    return risk


def _read(given: str | Risk | OwnRisk) -> Risk:
    if isinstance(given, Risk):
        return given
    if isinstance(given, str):
        if given in NAMES:
            return Risk(given)
        if given.startswith("costs:"):
            return Costs([row.split(",") for row in given.removeprefix("costs:").split(";")])
        if is_factory(given):
            return Risk(
                given, function=make(given, "risk", lambda found: None if callable(found) else "it is not a function")
            )
    elif callable(given) and not isinstance(given, type):
        name = getattr(given, "__name__", type(given).__name__)
        if name in (*NAMES, "costs"):
            raise InputError(f"your function is named {name!r}, like a built-in risk: give it another name")
        return Risk(name, function=given)
    raise InputError(
        f"unknown risk {given!r}: use {', '.join(map(repr, NAMES))}, Costs(...), 'costs:0,1;5,0' or a function "
        "(model, X, y) that gives values and which examples are relevant"
    )


@dataclass(frozen=True, eq=False)
class Measure:
    """A risk for given classes: the loss of every true class by predicted class, and which classes are relevant.

    `table` is None for the log loss and for a user's function, which need the model. Its last column is for a
    prediction that is none of the classes.
    """

    risk: Risk
    classes: tuple[Any, ...]
    table: Floats | None
    relevant: Mask

    @property
    def about_all(self) -> bool:
        """Whether every example is relevant."""
        return self.risk.function is None and bool(self.relevant.all())

    @property
    def strata(self) -> int:
        """How many means a group's risk averages: one per class for the balanced error, else one."""
        return max(len(self.classes), 1) if self.risk.name == "balanced" else 1

    def codes(self, labels: ArrayLike) -> Ints:
        """The position of every label among the classes, −1 for a label that is not a class."""
        place = {label: k for k, label in enumerate(self.classes)}
        return np.array([place.get(label, -1) for label in np.asarray(labels).tolist()], dtype=np.int64)

    def of_codes(self, y: Ints, predicted: Ints, values: Floats | None = None) -> Outcomes:
        """Outcomes from the positions of true and predicted classes; `values` are losses, if those are not enough."""
        if values is None:
            if self.table is None:
                raise InputError(f"the risk {self.risk.name!r} needs the model, not only what it predicts")
            values = self.table[y, predicted]  # −1, a prediction that is none of the classes, is the last column
        stratum = y if self.strata > 1 else np.zeros_like(y)
        return Outcomes(values, self.relevant[y], np.asarray(y != predicted), stratum)

    def of_model(self, model: Any, X: Any, y: ArrayLike) -> Outcomes:
        """Outcomes of any model with `predict` and, for the log loss, `predict_proba`; `y` are labels."""
        labels = np.asarray(y)
        codes = self.codes(labels)
        if (codes < 0).any():
            raise InputError(f"the label {labels[int(np.argmin(codes))]!r} is not among the classes {self.classes}")
        predicted = self.codes(model.predict(X))
        if self.risk.function is not None:
            values, relevant = self._own(model, X, labels)
            return Outcomes(values, relevant, codes != predicted, np.zeros_like(codes))
        return self.of_codes(codes, predicted, log_losses(model, X, labels) if self.table is None else None)

    def _own(self, model: object, X: object, y: Values) -> tuple[Floats, Mask]:
        """What the user's function returns, checked."""
        assert self.risk.function is not None
        what = f"the risk {self.risk.name!r}"
        # sparse rows are an internal detail: a risk that looks at features may rely on an array
        rows = X.toarray() if hasattr(X, "toarray") else _read_only(X)
        try:
            found: Any = self.risk.function(model, rows, _read_only(y))
        except Exception as error:
            raise RiskError(f"{what} failed: {type(error).__name__}: {error}") from error
        if not isinstance(found, tuple) or len(found) != 2:
            raise RiskError(f"{what} must give two arrays, (values, relevant), not {type(found).__name__}")
        try:
            values, chosen = np.asarray(found[0], dtype=float), np.asarray(found[1])
        except (TypeError, ValueError) as error:
            raise RiskError(f"{what} gave no numbers: {error}") from None
        if values.shape != y.shape or chosen.shape != y.shape:
            raise RiskError(
                f"{what} gave shapes {values.shape} and {chosen.shape} for {len(y)} examples: one number each"
            )
        relevant = chosen.astype(bool)
        if not np.isin(chosen, (0, 1)).all():
            raise RiskError(f"{what} must say true or false for every example in its second array, relevant")
        bad = relevant & ~((values >= 0) & (values <= 1))  # NaN fails both comparisons
        if bad.any():
            raise RiskError(f"{what} gave {values[int(np.argmax(bad))]} for an example: values must lie in [0, 1]")
        return np.where(relevant, values, 0.0), relevant

    def of_confusion(self, chances: Floats) -> Floats:
        """Risks from the chance of every true and predicted class together, (…, K, K); NaN if none is relevant."""
        if self.table is None:
            raise InputError(f"the risk {self.risk.name!r} cannot be had from confusions")
        cost = (chances * self.table[:, :-1]).sum(axis=-1)
        share = chances.sum(axis=-1)
        if self.strata > 1:
            some = share > 0
            parts, means = some.sum(axis=-1), np.where(some, cost / np.where(some, share, 1.0), 0.0).sum(axis=-1)
            return np.asarray(np.where(parts > 0, means / np.maximum(parts, 1), np.nan))
        total = (share * self.relevant).sum(axis=-1)
        mean = (cost * self.relevant).sum(axis=-1) / np.where(total > 0, total, 1.0)
        return np.asarray(np.where(total > 0, mean, np.nan))

    def tally(self, outcomes: Outcomes, cell: Ints, cells: int, weight: Floats | None = None) -> Tally:
        """Sums by cell, such as a group or a group in a trial; `weight` is how often each example counts."""
        size, n = (cells, self.strata), cells * self.strata
        place = cell * self.strata + outcomes.stratum
        counted = np.ones(len(cell)) if weight is None else weight
        # a user's function may give numbers for irrelevant examples too: they weigh nothing
        relevant = counted * outcomes.relevant
        return Tally(
            np.bincount(place, relevant * outcomes.values, n).astype(float).reshape(size),
            np.bincount(place, relevant, n).round().astype(np.int64).reshape(size),
            np.bincount(cell, counted * outcomes.wrong, cells).round().astype(np.int64),
            np.bincount(cell, counted, cells).round().astype(np.int64),
        )

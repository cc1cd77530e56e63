"""The model to deploy: plain, or with other group weights and regularisation if that serves the worst-off group better.

Candidates are compared by their worst group's risk on rows they were not fitted on. Another model replaces the plain
one only if it is better by more than a standard error of the difference: without a gain, nothing changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from evenhand.arrays import Features, Floats, Values
from evenhand.learners.base import Learner, name_of, traits_of
from evenhand.learners.bootstrap import deviation, worst_risks
from evenhand.learners.crossing import CrossFit, Rows, group_places, group_weights, measure_of
from evenhand.learners.minimax import find_weights
from evenhand.learners.penalty import penalty_of, with_penalty
from evenhand.learners.weights import fit_learner, takes_weights
from evenhand.notation import JsonMapping, JsonObject
from evenhand.risks import ERROR, Measure, Risk

if TYPE_CHECKING:
    import pandas as pd


# each candidate is fitted on four fifths: near enough to all rows, and only five fits
FOLDS = 5
# full weights may fit the chance in the risks they were found on: half of them is the cautious step between
STRENGTHS = {0.0: "none", 0.5: "half", 1.0: "full"}
PENALTIES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
FEW_PENALTIES = (0.1, 1.0, 10.0)
"""Penalties to try with learners that cannot be refitted quickly under other weights."""
_ROUNDS, _FEW_ROUNDS, _RATE = 30, 10, 2.0
_FLATTERED = 0.5
"""If risks in sample are below this fraction of those out of fold, the weights are found out of fold instead."""


@dataclass(frozen=True)
class Candidate:
    """A way to fit the model, and how it did on rows it was not fitted on.

    Attributes:
        strength: how much of the re-weighting is used: 0, ½ or 1.
        C: the inverse of the penalty's strength; None where the learner has none.
        risk: the worst group's risk, with its standard error `se`.
        gain: how much lower that is than the plain model's, with its standard error `gain_se`.
        by_group: every group's risk; NaN for a group without relevant examples.
    """

    strength: float
    C: float | None
    risk: float
    se: float
    gain: float
    gain_se: float
    by_group: dict[str, float]

    @property
    def name(self) -> str:
        """The candidate's name, such as `half weights, C=3`."""
        weights = "plain" if self.strength == 0 else f"{STRENGTHS[self.strength]} weights"
        return weights if self.C is None else f"{weights}, C={self.C:g}"


@dataclass(frozen=True)
class Choice:
    """Which model was chosen and why. The choice was made by these risks: they are an indication, never a claim.

    Attributes:
        chosen: what the model is, such as `plain` or `half weights, C=3`.
        why: the reason in a sentence.
        risk: what "worse off" means here.
        weights: every group's weight under full re-weighting; empty where none was tried.
        candidates: what was compared, the plain model first; empty if nothing was compared.
    """

    chosen: str
    why: str
    risk: str = "error"
    weights: dict[str, float] | None = None
    candidates: tuple[Candidate, ...] = ()

    @property
    def table(self) -> pd.DataFrame:
        """A row per candidate: worst-group risk and its standard error, gain over plain, and every group's risk."""
        import pandas as pd

        columns = ["candidate", "chosen", "worst_group_risk", "se", "gain", "gain_se"]
        rows = [(c.name, c.name == self.chosen, c.risk, c.se, c.gain, c.gain_se) for c in self.candidates]
        groups = pd.DataFrame([c.by_group for c in self.candidates])
        return pd.concat([pd.DataFrame(rows, columns=columns), groups], axis=1)

    def as_dict(self) -> JsonObject:
        """The same as plain values, for JSON; NaN becomes None."""
        candidates = [
            {
                "candidate": c.name,
                "chosen": c.name == self.chosen,
                "strength": c.strength,
                "C": c.C,
                **{name: _plain(getattr(c, name)) for name in ("risk", "se", "gain", "gain_se")},
                "by_group": {group: _plain(value) for group, value in c.by_group.items()},
            }
            for c in self.candidates
        ]
        return {
            "chosen": self.chosen, "why": self.why, "risk": self.risk, "weights": self.weights, "candidates": candidates
        }  # fmt: skip

    @classmethod
    def from_dict(cls, record: JsonMapping) -> Choice:
        """The choice that `as_dict` wrote down."""
        candidates = tuple(
            Candidate(
                c["strength"],
                c["C"],
                **{name: _number(c[name]) for name in ("risk", "se", "gain", "gain_se")},
                by_group={group: _number(value) for group, value in c["by_group"].items()},
            )
            for c in record["candidates"]
        )
        return cls(record["chosen"], record["why"], record["risk"], record["weights"], candidates)

    def __str__(self) -> str:
        return f"{self.chosen}: {self.why}"


@dataclass(frozen=True)
class FinalModel:
    """A model to deploy, with the reason for it in `choice`; all other attributes are those of the model.

    Attributes:
        model: the fitted model itself.
        choice: what was chosen and why.
    """

    model: Any
    choice: Choice

    @property
    def classes(self) -> Values:
        """The labels it knows."""
        return np.asarray(self.model.classes)

    def predict(self, X: Features) -> Values:
        """The predicted label of every row."""
        return np.asarray(self.model.predict(X))

    def __getattr__(self, name: str) -> Any:
        if name in ("model", "choice") or name.startswith("__"):  # not there yet while it is unpickled
            raise AttributeError(name)
        return getattr(self.model, name)


def fit_chosen(
    learner: Learner,
    X: Features,
    y: ArrayLike,
    groups: ArrayLike,
    *,
    risk: Risk = ERROR,
    classes: Sequence[object] | None = None,
    seed: int = 0,
    plain: bool = False,
    fitted: Any = None,
) -> FinalModel:
    """The model to deploy, fitted on all these rows.

    Args:
        learner: what is trained.
        X, y, groups: the rows, their labels and their groups.
        risk: what "worse off" means.
        classes: the labels there may be, if more are known than occur in these rows.
        seed: the seed of folds and fits.
        plain: whether to skip the comparison and fit the plain model.
        fitted: the plain model, if it is already fitted.
    """
    y = np.asarray(y)
    fitted = fit_learner(learner, X, y, groups, seed=seed) if fitted is None else fitted
    if plain:
        return FinalModel(fitted, Choice("plain", "asked for", str(risk)))
    names, place = group_places(groups, len(y))
    # a penalised linear model gives a column of zeros the weight 0, so the comparison does without it
    rows = Rows(_without_zeros(X) if _is_quick(learner) else X, y, place, np.ones(len(y)))
    with threadpool_limits(1):  # many small fits: threads would wait for each other
        choice, best = _compare(learner, rows, measure_of(risk, y, classes), names, seed)
    if best is None:
        return FinalModel(fitted, choice)
    q = np.array(list((choice.weights or {}).values()))
    weight = None if best.strength == 0 else group_weights(rows, q, best.strength)
    using = learner if best.C is None else with_penalty(learner, best.C)
    return FinalModel(fit_learner(using, X, y, groups, sample_weight=weight, seed=seed), choice)


def _compare(
    learner: Learner, rows: Rows, measure: Measure, names: Values, seed: int
) -> tuple[Choice, Candidate | None]:
    """The choice, and the chosen candidate if it is not the plain model."""
    reason = why_plain(learner, rows.y, len(names))
    if reason is not None:
        return Choice("plain", reason, str(measure.risk)), None
    # other folds than those the weights may have been found on, so that weights fitted to chance do not look good
    cross = CrossFit(learner, rows, measure, len(names), min(FOLDS, len(rows.y)), seed + 1)
    if np.isnan(cross.risks(cross.outcomes(np.ones(len(names)), 0.0))).all():
        return Choice("plain", "no example is relevant to the risk so far", str(measure.risk)), None
    q = _weights(learner, rows, measure, cross, len(names), seed)
    own = penalty_of(learner)
    others = PENALTIES if _is_quick(learner) else FEW_PENALTIES
    penalties: list[float | None] = [None] if own is None else [own, *(C for C in others if own != C)]
    candidates = _candidates(cross, q, penalties, names)
    chosen, why = _decide(candidates[0], min(candidates, key=lambda c: c.risk))
    weights = dict(zip(names.tolist(), q.tolist(), strict=True))
    choice = Choice(chosen.name, why, str(measure.risk), weights, candidates)
    return choice, None if chosen is candidates[0] else chosen


def why_plain(learner: Learner, y: Values, groups: int) -> str | None:
    """The reason why no candidates are compared; None if they are."""
    name = name_of(learner)
    if traits_of(learner).needs_groups:
        return f"{name} is trained for the worst-off group already"
    if traits_of(learner).incremental:
        return f"{name} is expensive to train many times: train Minimax(learner) to weight groups"
    if not takes_weights(learner):
        return f"{name} takes no sample_weight, so groups cannot be re-weighted"
    if groups == 1:
        return "there is one group, so there is nothing to weigh"
    if len(np.unique(y)) == 1:
        return "there is one class only so far"
    return None


def _weights(learner: Learner, rows: Rows, measure: Measure, cross: CrossFit, groups: int, seed: int) -> Floats:
    """Group weights from risks in sample, which vary less, or out of fold if the learner fits its rows too closely."""
    settings: JsonObject = {"rounds": _ROUNDS if _is_quick(learner) else _FEW_ROUNDS, "rate": _RATE, "seed": seed}
    shares = np.bincount(rows.group, minlength=groups) / len(rows.y)
    within = CrossFit(learner, rows, measure, groups, 0, seed)
    seen, unseen = (np.nanmax(part.risks(part.outcomes(shares, 0.0))) for part in (within, cross))
    if seen >= _FLATTERED * unseen:
        return find_weights(learner, rows, measure, groups, folds=0, cross=within, **settings).q
    return find_weights(learner, rows, measure, groups, folds=min(FOLDS, len(rows.y)), **settings).q


def _is_quick(learner: Learner) -> bool:
    return hasattr(learner, "refits")


def _without_zeros(X: Any) -> Any:
    """A matrix without columns that are all zero, such as categories that do not occur; other kinds of X unchanged."""
    if not isinstance(X, np.ndarray) and not hasattr(X, "tocsr"):
        return X
    used = np.asarray(abs(X).sum(axis=0)).ravel() > 0
    return X if used.all() or not used.any() else X[:, np.flatnonzero(used)]


def _candidates(cross: CrossFit, q: Floats, penalties: Sequence[float | None], names: Values) -> tuple[Candidate, ...]:
    """Every strength with every penalty, the plain fit first."""
    tried = [(strength, C) for strength in STRENGTHS for C in penalties]
    outcomes = [cross.outcomes(q, strength, C) for strength, C in tried]
    risks = [cross.risks(found) for found in outcomes]
    worst = np.fmax.reduce(np.stack(risks), axis=1)  # groups without relevant rows do not count
    drawn = worst_risks(cross, outcomes)
    gain_se, se = deviation(drawn[:, :1] - drawn), deviation(drawn)
    return tuple(
        Candidate(
            strength,
            C,
            float(worst[j]),
            float(se[j]),
            float(worst[0] - worst[j]),
            float(gain_se[j]),
            dict(zip(names.tolist(), risks[j].tolist(), strict=True)),
        )
        for j, (strength, C) in enumerate(tried)
    )


def _decide(plain: Candidate, best: Candidate) -> tuple[Candidate, str]:
    """The best candidate if its lead exceeds a standard error, else the plain model; and why."""
    if best is plain or best.gain <= 0:
        return plain, "no candidate has a lower worst-group risk on rows it was not fitted on"
    found = f"the worst group's risk is {best.gain:.4f} ± {best.gain_se:.4f} below the plain model's"
    if best.gain > best.gain_se:
        return best, f"{found}, {best.risk:.4f} instead of {plain.risk:.4f}, on rows it was not fitted on"
    return plain, f"the best candidate, {best.name}, is not clearly better: {found}"


def _plain(value: float) -> float | None:
    return None if np.isnan(value) else value


def _number(value: float | None) -> float:
    return float("nan") if value is None else value

"""A learner trained for the worst-off group: groups are weighted so that the largest risk becomes as small as it can."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from evenhand.arrays import Features, Floats, Values
from evenhand.errors import InputError
from evenhand.learners.base import Learner, Model, name_of, traits_of
from evenhand.learners.columns import needs_columns
from evenhand.learners.crossing import CrossFit, Rows, group_places, group_weights, measure_of
from evenhand.learners.simplex import maximise
from evenhand.learners.weights import as_weights, takes_weights
from evenhand.risks import Measure, OwnRisk, Risk, as_risk

if TYPE_CHECKING:
    import pandas as pd


_LEAST = 1e-6
"""No group's weight falls below this, so that the model still knows a class that only this group has."""
_TOL = 1e-5
"""The tolerance of fits out of fold: the remaining error moves a risk by less than one row does."""


class Weighting:
    """How group weights were found: one row of weights and of risks for each round.

    Attributes:
        weights, risks: arrays of shape (rounds, groups).
        q: the weights to use.
    """

    def __init__(self, cross: CrossFit, start: Floats) -> None:
        self._cross, self.q = cross, start
        self._weights: list[Floats] = []
        self._risks: list[Floats] = []

    @property
    def weights(self) -> Floats:
        """The weights of every round."""
        return np.array(self._weights)

    @property
    def risks(self) -> Floats:
        """The risks of every round."""
        return np.array(self._risks)

    @property
    def last(self) -> Model | None:
        """A model under the last weights that were measured."""
        return self._cross.last

    def measure(self, q: Floats) -> Floats:
        """Every group's risk under weights q; a group without relevant rows counts as the average."""
        # every group keeps a little weight, or labels that only it has would vanish from the model
        q = np.maximum(q, _LEAST)
        q = q / q.sum()
        risks = self._cross.risks(self._cross.outcomes(q))
        known = ~np.isnan(risks)
        # a fold may leave a group without relevant rows: the average moves its weight neither up nor down
        average = float(q[known] @ risks[known] / q[known].sum()) if known.any() else 0.0
        self._weights.append(q)
        self._risks.append(np.where(known, risks, average))
        return self._risks[-1]

    def multiply(self, rounds: int, rate: float) -> None:
        """Run multiplicative weights: q ∝ q·exp(η_t·risk) with η_t ∝ 1/√t; the average of the later half is kept."""
        logs = np.log(np.maximum(self.q, _LEAST))
        size = 0.0
        for t in range(1, rounds + 1):
            q = np.exp(logs - logs.max())
            risks = self.measure(q / q.sum())
            size = max(size, float(risks.max()))
            # relative to the largest risk seen, so that the rate suits rare errors and log losses alike
            logs += rate / np.sqrt(t) * risks / (size or 1.0)
        # single rounds swing around the solution; their average converges, and the first half still carries the start
        self.q = self.weights[rounds // 2 :].mean(axis=0)

    def polish(self) -> None:
        """Continue to the maximum of min_f Σ q_z L_z(f), a function of q whose gradient is the risks."""
        self.q = maximise(self.measure, self.q)


def find_weights(
    learner: Learner,
    rows: Rows,
    measure: Measure,
    groups: int,
    *,
    folds: int,
    rounds: int,
    rate: float,
    seed: int,
    cross: CrossFit | None = None,
) -> Weighting:
    """Group weights under which the worst group's risk is smallest, as far as the learner allows."""
    shares = np.bincount(rows.group, rows.weight, groups) / rows.weight.sum()
    if cross is None:
        cross = CrossFit(learner, rows, measure, groups, folds, seed, _TOL)
    found = Weighting(cross, shares)
    if groups == 1:
        found.measure(shares)
        return found
    found.multiply(rounds, rate)
    # only then is the objective concave and smooth in q, its gradient exactly the risks measured
    if folds == 0 and measure.risk.name == "log":
        found.polish()
    return found


class Minimax(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Trains any learner that takes weights so that the worst-off group's risk is as small as it can be.

    Group z counts q_z, each of its n_z examples q_z·n/n_z. The weights q are found by multiplicative weights on the
    groups' risks, measured on rows the model was not fitted on; the model is then fitted on all rows. Diana et al. (2021)
    and Martinez et al. (2020) describe the problem.

    Args:
        learner: what is trained: a learner, or a scikit-learn classifier or Pipeline; `Logistic()` by default.
        risk: what is made small for the worst-off group: `"error"`, `"log"`, `"fnr"`, `"fpr"`, `"balanced"`,
            `Costs(...)` or a function `(model, X, y)`.
        positive: the positive class, for `"fnr"` and `"fpr"`.
        folds: the number of folds; risks are measured on each fold by a model fitted on the others. 0 measures them in
            sample, which for `risk="log"` gives the exact minimax of the learner's own loss.
        rounds: how many weights are tried; the average of the later half is used.
        rate: how fast the weights move; the default was measured on thirteen sources. At twice the rate they get about
            as far in a quarter of the rounds.

    Attributes:
        weights_: each group's weight q, a Series.
        risks_: each group's risk under these weights, measured as `folds` says, a Series: an indication, because the
            weights were chosen by such risks.
        history_: a row per round and group, with weight and risk.
        model_: the fitted model.
        classes_: the labels seen, sorted.

    Example:
        >>> import evenhand as eh
        >>> rng = np.random.default_rng(0)
        >>> X, group = rng.normal(size=(400, 2)), np.repeat(["many", "few"], [360, 40])
        >>> y = (X[:, 0] > 0) ^ (rng.random(400) < 0.1)
        >>> y[group == "few"] = (X[:, 1] > 0)[group == "few"]
        >>> fair = Minimax(eh.Logistic()).fit(X, y, groups=group)
        >>> bool(fair.weights_["few"] > 0.1)
        True
    """

    needs_groups = True
    takes_weights = True
    weights_: pd.Series
    risks_: pd.Series
    history_: pd.DataFrame

    def __init__(
        self,
        learner: object = None,
        risk: str | Risk | OwnRisk = "error",
        positive: object = None,
        folds: int = 5,
        rounds: int = 10,
        rate: float = 0.5,
    ) -> None:
        self.learner = learner
        self.risk = risk
        self.positive = positive
        self.folds = folds
        self.rounds = rounds
        self.rate = rate

    def fit(
        self,
        X: Features,
        y: ArrayLike,
        *,
        groups: object = None,
        sample_weight: ArrayLike | None = None,
        previous: Model | None = None,
        seed: int = 0,
    ) -> Self:
        """Find the groups' weights and fit on all rows; `groups` is the group of every row."""
        learner, risk = self._checked()
        y = np.asarray(y)
        names, place = group_places(groups, len(y))
        weight = np.ones(len(y)) if sample_weight is None else as_weights(sample_weight, len(y))
        rows = Rows(X, y, place, weight)
        folds = min(self.folds, len(y)) if min(self.folds, len(y)) > 1 else 0
        with threadpool_limits(1):  # many small fits: threads would wait for each other
            settings: dict[str, Any] = {"folds": folds, "rounds": self.rounds, "rate": self.rate, "seed": seed}
            found = find_weights(learner, rows, measure_of(risk, y), len(names), **settings)
            # once more under the weights that are used: the history's last row is what `weights_` and `risks_` say
            found.measure(found.q)
        self._keep(found, names)
        self.model_ = self._final(learner, rows, found, previous, seed)
        self.classes_ = np.asarray(self.model_.classes)
        return self

    def _checked(self) -> tuple[Any, Risk]:
        """The learner and the risk, after all settings were checked."""
        from evenhand.learners import Logistic, as_learner

        learner = as_learner(Logistic() if self.learner is None else self.learner)
        if traits_of(learner).needs_groups:
            raise InputError("Minimax cannot be trained inside Minimax: give the learner itself")
        if not takes_weights(learner):
            name = name_of(learner)
            raise InputError(f"Minimax weights the examples, and {name} takes no sample_weight: use another learner")
        if not isinstance(self.folds, int | np.integer) or self.folds < 0 or self.folds == 1:
            raise InputError(f"folds must be 0, for risks in sample, or a whole number from 2 up, not {self.folds!r}")
        if not isinstance(self.rounds, int | np.integer) or self.rounds < 1:
            raise InputError(f"rounds must be a whole number from 1 up, not {self.rounds!r}")
        if not 0 < self.rate < np.inf:
            raise InputError(f"rate must be a positive number, not {self.rate!r}")
        return learner, as_risk(self.risk, self.positive)

    def _keep(self, found: Weighting, names: Values) -> None:
        import pandas as pd

        index = pd.Index(names, name="group")
        weights, risks = found.weights, found.risks
        self.weights_, self.risks_ = (
            pd.Series(weights[-1], index, name="weight"),
            pd.Series(risks[-1], index, name="risk"),
        )
        rounds = np.repeat(np.arange(1, len(weights) + 1), len(names))
        columns = {
            "round": rounds,
            "group": np.tile(names, len(weights)),
            "weight": weights.ravel(),
            "risk": risks.ravel(),
        }
        self.history_ = pd.DataFrame(columns)

    def _final(self, learner: Any, rows: Rows, found: Weighting, previous: Any, seed: int) -> Any:
        """The model of all rows; an incremental learner takes one step under the weights of every round."""
        # a network takes one small step a fit: under the last weights alone it would hardly have moved
        model, steps = getattr(previous, "model_", None), found.weights
        if not traits_of(learner).incremental:
            # where it starts does not matter to such a learner, but a model of nearly the same rows saves it time
            model, steps = found.last, found.weights[-1:]
        for q in steps:
            model = learner.fit(rows.X, rows.y, sample_weight=group_weights(rows, q), previous=model, seed=seed)
        return model

    @property
    def incremental(self) -> bool:
        """Whether a model depends on the models before it."""
        return traits_of(self.learner).incremental

    @property
    def needs_columns(self) -> bool:
        """Whether the learner is given the columns of a table as they are."""
        return self.learner is not None and needs_columns(self.learner)

    @property
    def gives_probabilities(self) -> bool:
        """Whether the learner gives probabilities, which the log loss needs."""
        learner = self.learner
        return learner is None or bool(getattr(learner, "gives_probabilities", hasattr(learner, "predict_proba")))

    @property
    def classes(self) -> Values:
        """The labels seen, sorted."""
        return self.classes_

    def predict(self, X: Features) -> Values:
        """The predicted label of every row."""
        check_is_fitted(self)
        return np.asarray(self.model_.predict(X))

    @available_if(lambda self: self.gives_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Features) -> Floats:
        """The probability of every class."""
        check_is_fitted(self)
        return np.asarray(self.model_.predict_proba(X))

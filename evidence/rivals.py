"""Two published ways to the same aim, written from the papers' descriptions: a mixture of models, and adaptive weights.

Both use the solver that `Minimax` uses, so that seconds compare the methods and not the solvers.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

import evenhand as eh
from evenhand.arrays import Features, Floats, Values
from evenhand.learners.crossing import Rows, group_places, group_weights, measure_of
from evenhand.learners.logistic.reweighting import LogisticRefits
from evenhand.risks import as_risk


@dataclass(frozen=True)
class Mixture:
    """Models of which one is drawn at random for every prediction: its risks are the means of theirs."""

    models: tuple[Any, ...]

    def risks(self, risks_of: Any) -> Floats:
        """Every group's expected risk."""
        return np.asarray(np.mean([risks_of(model) for model in self.models], axis=0))


class _Game:
    """The best response to group weights, and its risks in sample."""

    def __init__(self, X: Features, y: Values, groups: Values, risk: str, C: float) -> None:
        names, place = group_places(groups, len(y))
        self.rows, self.groups = Rows(X, y, place, np.ones(len(y))), len(names)
        self.measure = measure_of(as_risk(risk, None), y)
        self.refits = LogisticRefits(eh.Logistic(C=C), X, y)

    def best(self, q: Floats) -> tuple[Any, Floats]:
        """The model that is best when group z counts q_z, and every group's risk under it."""
        model = self.refits.fit(group_weights(self.rows, np.maximum(q, 1e-9)))
        found = self.measure.of_model(model, self.rows.X, self.rows.y)
        size = np.bincount(self.rows.group, minlength=self.groups)
        return model, np.bincount(self.rows.group, found.values, self.groups) / size

    @property
    def shares(self) -> Floats:
        """The groups' shares of the rows."""
        return np.bincount(self.rows.group, minlength=self.groups) / len(self.rows.y)


def mixture_of_models(
    X: Features, y: Values, groups: Values, *, risk: str = "error", C: float = 1.0, rounds: int = 200, rate: float = 1.0
) -> Mixture:
    """Diana et al. (2021): the regulator multiplies weights by exp(η_t·risk), the learner answers; all answers are kept."""
    game = _Game(X, y, groups, risk, C)
    q, models = game.shares, []
    for t in range(1, rounds + 1):
        model, risks = game.best(q)
        models.append(model)
        q = q * np.exp(rate / np.sqrt(t) * risks)
        q = q / q.sum()
    return Mixture(tuple(models))


def adaptive_weights(
    X: Features,
    y: Values,
    groups: Values,
    *,
    risk: str = "error",
    C: float = 1.0,
    rounds: int = 200,
    alpha: float = 0.5,
    least: int = 20,
) -> Any:
    """Martinez et al. (2020), APStar: weights move towards the groups above the best worst risk so far.

    The step is (1 − α)/K of the way, K grows while nothing improves; the model with the lowest worst risk is kept.
    """
    game = _Game(X, y, groups, risk, C)
    q, K = np.full(game.groups, 1 / game.groups), 1
    best, risks = game.best(q)
    target = float(risks.max())
    for _ in range(rounds):
        above = (risks >= target).astype(float)
        if not above.any():
            above = (risks >= risks.max()).astype(float)
        q = (alpha * q + (1 - alpha) / K * above / above.sum()) * K / ((K - 1) * alpha + 1)
        model, risks = game.best(q)
        if risks.max() < target:
            best, target, K = model, float(risks.max()), min(K, least)
        else:
            K += 1
    return best

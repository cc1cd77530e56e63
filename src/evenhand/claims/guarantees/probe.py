"""Checks Assumptions 1 to 3 on data, before anybody trusts a promise."""

from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from evenhand.claims.guarantees.closeness import Closeness, closeness
from evenhand.claims.guarantees.measured import Measured
from evenhand.claims.guarantees.monotone import Monotone, monotone
from evenhand.claims.guarantees.own_models import OwnModels, own_models
from evenhand.risks import Risk


@dataclass(frozen=True)
class Probe:
    """What labelled examples say about Assumptions 1 to 3, each with its numbers.

    Attributes:
        monotone: Assumption 1, a larger share of a group lowers its risk.
        own_models: Assumption 2, every group's own best model is better on it than on any other group.
        closeness: Assumption 3, a mixture risk close to its least keeps every group's risk close.
    """

    monotone: Monotone
    own_models: OwnModels
    closeness: Closeness

    def __str__(self) -> str:
        return "\n".join(map(str, (self.monotone, self.own_models, self.closeness)))


def probe(
    learner: Any,
    X: Any,
    y: ArrayLike,
    groups: ArrayLike,
    *,
    risk: str | Risk = "error",
    positive: Any = None,
    seed: int = 0,
) -> Probe:
    """Train on half of each group and test on the other half; Assumption 3 is judged on all examples as the population.

    Assumptions 1 and 2 are about `risk`; Assumption 3 about what the learner minimises, its log loss where it gives
    probabilities. It takes about m² + 7m fits for m groups.
    """
    measured = Measured.of(learner, X, y, groups, risk=risk, positive=positive, seed=seed)
    # Assumption 3 speaks of the best classifier for a mixture, which exists only for what the learner minimises
    minimised = "log" if hasattr(measured.fit([1 / measured.m] * measured.m), "predict_proba") else risk
    whole = Measured.of(
        learner, X, y, groups, risk=minimised, positive=None if minimised == "log" else positive, same=True, seed=seed
    )
    return Probe(monotone(measured), own_models(measured), closeness(whole))

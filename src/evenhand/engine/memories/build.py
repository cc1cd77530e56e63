"""The memory that fits a learner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evenhand.engine.labels import Labels
from evenhand.engine.memories.base import Memory
from evenhand.engine.memories.lockstep import LockstepLogistic
from evenhand.engine.memories.single import SingleMemory
from evenhand.errors import InputError
from evenhand.learners.logistic.learner import Logistic
from evenhand.learners.torch.learner import TorchLearner
from evenhand.risks import ERROR, Risk

if TYPE_CHECKING:
    from evenhand.learners.base import Learner


def runs_in_lockstep(learner: Learner) -> bool:
    """Whether many trials of this learner can be fitted together."""
    # not isinstance: a subclass may fit in another way than the solver does
    return type(learner) is Logistic


def make_memory(
    learner: Any,
    labels: Labels,
    groups: int,
    *,
    risk: Risk = ERROR,
    trials: int = 1,
    seed: int = 0,
    names: tuple[str, ...] = (),
    run: str = "run",
) -> Memory:
    """Example sets and models of `trials` trials for this learner, scored by this risk.

    `run` names its checkpoint, where it keeps one.
    """
    measure = risk.for_classes(labels.classes, final=labels.fixed)
    if runs_in_lockstep(learner):
        return LockstepLogistic(learner, labels.classes, groups, trials, measure=measure)
    if trials != 1:
        raise InputError(f"{type(learner).__name__} fits one trial at a time, not {trials}")
    if isinstance(learner, TorchLearner):
        from evenhand.engine.memories.torch import TorchMemory

        return TorchMemory(learner, measure, groups, seed, names=names, run=run)
    return SingleMemory(learner, labels.names, groups, seed, measure, names)

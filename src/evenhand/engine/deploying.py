"""The model each simulated trial would deploy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from evenhand.engine.memories.rows import stack, take
from evenhand.engine.settings import learner_seed
from evenhand.engine.trials import Trials
from evenhand.learners.base import traits_of
from evenhand.learners.choosing import Choice, FinalModel, fit_chosen, why_plain
from evenhand.sources.base import Source

if TYPE_CHECKING:
    from evenhand.learners.base import Learner, Model


def choose_models(block: Trials, source: Source, learner: Learner, plain: Sequence[Model]) -> list[FinalModel]:
    """Each trial's final model, chosen on everything it has drawn, as `Campaign.final_model` chooses; else `plain`."""
    classes, names = np.asarray(source.classes), np.asarray(source.groups)
    # the order of the draws, so that a campaign told the
    # same rows fits on the same matrix to the last bit
    trial, group, y = (np.concatenate([getattr(d, name) for d in block.drawn]) for name in ("trial", "group", "y"))
    if traits_of(learner).incremental:
        reason = why_plain(learner, y, len(names)) or "it is expensive to train many times"
        return [FinalModel(model, Choice("plain", reason, str(block.settings.risk))) for model in plain]
    X = stack([d.X for d in block.drawn])
    settings = block.settings
    found: list[FinalModel] = []
    for t, number in enumerate(block.engine.trials.tolist()):
        own = trial == t
        found.append(
            fit_chosen(
                learner,
                take(X, own),
                classes[y[own]],
                names[group[own]],
                risk=settings.risk,
                classes=classes.tolist(),
                seed=learner_seed(settings.seed, number),
                fitted=plain[t],
            )
        )
    return found

"""A study: strategies on one source under one budget, and its trials in blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache, partial
from importlib.metadata import version
from typing import Any

from evenhand.engine.trials import Settings
from evenhand.notation import JsonObject
from evenhand.simulation.blocks import Block, cut
from evenhand.sources.base import Source
from evenhand.sources.catalogue import learner_for, open_source
from evenhand.strategies import parse_strategy, strategy_text

_SCHEMA = 1


@dataclass(frozen=True)
class Study:
    """What is run for a figure.

    Args:
        source: a source by name, as on the command line.
        strategies: label → text of the strategy.
        budget: labels of a trial.
        trials: how many trials the paper has.
        quick: settings that differ at the quick scale, `trials` and `budget` among them.
        seed: the seed of all trials.
        first: the number of the first trial.
        learner: a learner as text.
        batch: examples of each role a round draws.
        warmup: warm-up rounds.
        evaluate: at how many rounds test accuracy is measured.
        block: trials run together in lockstep; 1 for learners that fit one trial at a time.
    """

    source: str
    strategies: Mapping[str, str] = field(hash=False)
    budget: int
    trials: int
    quick: Mapping[str, object] = field(default_factory=dict, hash=False)
    seed: int = 0
    first: int = 0
    learner: str = "logistic"
    batch: int = 1
    warmup: int | None = None
    evaluate: int = 50
    block: int = 50

    def at(
        self, scale: str, trials: int | None = None, seed: int | None = None, image_rounds: int | None = None
    ) -> Study:
        """The study at a scale, with another number of trials or another seed if given.

        With `image_rounds`, image studies have that many rounds, and one trial unless another number is given.
        """
        changes: JsonObject = dict(self.quick) if scale == "quick" else {}
        if trials is not None:
            changes["trials"] = trials
        if seed is not None:
            changes["seed"] = seed
        if image_rounds and self.of_images:
            # the test set is larger than what a short run trains on: tests would take most of its time
            evaluate = max(1, min(self.evaluate, image_rounds // 10))
            changes |= {"budget": image_rounds * 2 * self.batch, "evaluate": evaluate, "trials": trials or 1}
        # without `quick`: settings of a trial must not depend on what the other scale would be
        return replace(self, **changes, quick={})

    @property
    def of_images(self) -> bool:
        """Whether it trains a network on images."""
        return self.learner.partition(":")[0] == "network"

    def settings(self, label: str) -> JsonObject:
        """All settings that a trial's result depends on, apart from its number."""
        return {
            "schema": _SCHEMA,
            # trials of another version are run again: what is kept must be what this code gives
            "evenhand": version("evenhand"),
            "source": self.source,
            # a data set's name pins its rows; the numbers of a synthetic model are ours and might change
            "model": repr(open_study_source(self)) if self.source.startswith("synthetic") else None,
            "strategy": strategy_text(self.strategies[label]),
            "learner": self.learner,
            "budget": self.budget,
            "batch": self.batch,
            "warmup": self.warmup,
            "evaluate": self.evaluate,
            "seed": self.seed,
        }

    def described(self) -> JsonObject:
        """What is run, as plain values."""
        found = asdict(self)
        # neither changes a number
        del found["quick"], found["block"]
        return found

    def numbers(self) -> range:
        """The numbers of the trials."""
        return range(self.first, self.first + self.trials)

    def blocks(self, missing: Mapping[str, Sequence[int]]) -> list[Block]:
        """The missing trials of every strategy, in blocks."""
        settings = Settings(self.budget, self.batch, self.warmup, seed=self.seed, evaluate=self.evaluate)
        rules = {label: parse_strategy(text)[1] for label, text in self.strategies.items()}
        there = partial(open_study, self)
        return [Block(label, rules[label], trials, settings, there) for label, trials in cut(missing, self.block)]


def open_study_source(study: Study) -> Source:
    """The study's source, opened once per process."""
    return _source(study.source)


def open_study(study: Study) -> tuple[Source, Any]:
    """The study's source and learner; if data or an extra is missing, the error says what to do."""
    source = open_study_source(study)
    return source, learner_for(source, study.learner)


# a worker runs many blocks of a study; reading its table each time would take longer than the trials
@lru_cache(maxsize=4)
def _source(name: str) -> Source:
    return open_source(name)

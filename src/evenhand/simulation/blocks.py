"""Blocks of trials: missing trials are cut into blocks, any worker runs them, and one failed trial costs no other."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from evenhand.engine.run import Record, run_block
from evenhand.engine.trials import Settings
from evenhand.learners.base import Learner
from evenhand.sources.base import Source
from evenhand.strategies import Strategy


@dataclass(frozen=True)
class Block:
    """Trials of one strategy that run together.

    Attributes:
        label: the strategy's name in the results.
        strategy: which group next.
        trials: the numbers of the trials.
        settings: the settings that all trials share.
        open: returns source and learner. The worker calls it, so a block can name its data instead of carrying them.
    """

    label: str
    strategy: Strategy
    trials: tuple[int, ...]
    settings: Settings
    open: Callable[[], tuple[Source, Learner]]


def cut(missing: Mapping[str, Sequence[int]], size: int) -> list[tuple[str, tuple[int, ...]]]:
    """The missing trials in blocks of `size`, strategies in turn, so that a stopped run has trials to pair.

    >>> cut({"a": [0, 1, 2], "b": [2]}, 2)
    [('a', (0, 1)), ('b', (2,)), ('a', (2,))]
    """
    pieces = [
        [(label, tuple(trials[i : i + size])) for i in range(0, len(trials), size)] for label, trials in missing.items()
    ]
    return [piece for turn in zip_longest(*pieces) for piece in turn if piece is not None]


def run(block: Block, tick: Callable[[], None] | None = None) -> Record:
    """The record of a block; `tick` is called after every round."""
    source, learner = block.open()
    return run_block(source, block.strategy, learner, block.settings, block.trials, tick=tick)


def run_apart(block: Block) -> tuple[list[Record], dict[int, str]]:
    """The records of a block, and the trials that failed with the text of their errors.

    If a block fails, its trials are run one by one.
    """
    try:
        return [run(block)], {}
    except Exception as error:
        if len(block.trials) == 1:
            # the text, because a traceback cannot be sent back from a worker
            return [], {block.trials[0]: "".join(traceback.format_exception(error)).strip()}
    records: list[Record] = []
    failed: dict[int, str] = {}
    for trial in block.trials:
        found, wrong = run_apart(replace(block, trials=(trial,)))
        records += found
        failed |= wrong
    return records, failed

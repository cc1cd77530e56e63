"""What an experiment is, and what it finds: a figure, a table, numbers beside the paper's, a verdict for each claim."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from evenhand.engine.run import Record
from evenhand.experiments.study import Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["DOES_NOT_HOLD", "HOLDS", "NOT_TESTED", "Claim", "Experiment", "Findings", "Number", "Runs", "judge"]

HOLDS, DOES_NOT_HOLD, NOT_TESTED = "holds", "does not hold", "not tested at this scale"

Runs = Mapping[str, Mapping[str, Record]]
"""The records of an experiment, by study and by strategy's label."""


@dataclass(frozen=True)
class Number:
    """A measured number and, where the paper states it, the paper's."""

    name: str
    measured: float
    sd: float | None = None
    paper: float | None = None
    paper_sd: float | None = None


@dataclass(frozen=True)
class Claim:
    """A claim of the paper with the verdict the numbers give."""

    text: str
    verdict: str
    evidence: str


@dataclass(frozen=True)
class Findings:
    """What came out of an experiment."""

    figure: Figure
    table: pd.DataFrame
    numbers: Sequence[Number]
    claims: Sequence[Claim]
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Experiment:
    """A figure or table of the paper.

    Args:
        id: its name on the command line.
        title: what it shows.
        paper: what the paper says of it, in our words.
        studies: what is run, by name.
        find: from the runs and the scale's name to the findings.
        note: settings the paper leaves open and what they are here.
        optional: whether the findings are worth having when some study's data are absent.
    """

    id: str
    title: str
    paper: str
    studies: Mapping[str, Study]
    find: Callable[[Runs, str], Findings] = field(repr=False)
    note: str = ""
    optional: bool = False

    def at(self, scale: str, trials: int | None, seed: int | None, image_rounds: int | None = None) -> dict[str, Study]:
        """The studies at a scale."""
        return {name: study.at(scale, trials, seed, image_rounds) for name, study in self.studies.items()}


def judge(text: str, holds: bool | np.bool_, evidence: str, *, tested: bool = True) -> Claim:
    """A claim with its verdict; `tested` says whether the trials and budget suffice for one."""
    # too few trials must not look like a refutation, nor like a confirmation
    return Claim(text, (HOLDS if holds else DOES_NOT_HOLD) if tested else NOT_TESTED, evidence)

"""Experiments and their findings: a figure, a table, numbers to compare with the paper's, values that decide claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from evenhand.engine.run import Record
from evenhand.experiments.study import Study
from evenhand.experiments.verdicts import Claim, Test, judge
from evenhand.notation import JsonObject

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
class Measured:
    """The values that the test of one claim uses.

    Args:
        values: by the comparison's name, one value per trial.
        untested: why the runs do not suffice for a verdict, if they do not.
        note: what else a reader of the numbers has to know.
    """

    values: Mapping[str, Sequence[float]]
    untested: str = ""
    note: str = ""

    def to_dict(self) -> JsonObject:
        """The values as plain values, for JSON."""
        return {"untested": self.untested, "note": self.note, "values": {k: list(v) for k, v in self.values.items()}}


def measured(values: Mapping[str, ArrayLike], untested: str = "", note: str = "") -> Measured:
    """Values as they are stored: rounded first, so that judging the stored ones gives the same verdict."""
    kept = {name: np.atleast_1d(np.round(np.asarray(given, float), 6)).tolist() for name, given in values.items()}
    return Measured(kept, untested, note)


@dataclass(frozen=True)
class Needs:
    """What runs must have for a verdict; less is shown and not judged.

    Args:
        paper: whether the quick scale is not enough, because it stops earlier.
        trials: at least so many values of every comparison.
        rounds: at least so many rounds.
    """

    paper: bool = False
    trials: int = 0
    rounds: int = 0

    def lacking(self, values: Mapping[str, ArrayLike], scale: str, rounds: int) -> str:
        """Why runs do not suffice, in words; empty if they do."""
        if self.paper and scale != "paper":
            return "the quick scale stops earlier"
        if rounds < self.rounds:
            return f"fewer than {self.rounds} rounds"
        return f"fewer than {self.trials} trials" if min(map(np.size, values.values())) < self.trials else ""

    def measured(self, values: Mapping[str, ArrayLike], scale: str, rounds: int = 0, note: str = "") -> Measured:
        """Values as they are stored, with what they lack."""
        return measured(values, self.lacking(values, scale, rounds), note)


@dataclass(frozen=True)
class Findings:
    """The findings of an experiment; `measured` has, by claim, the values that its test uses."""

    figure: Figure
    table: pd.DataFrame
    numbers: Sequence[Number]
    measured: Mapping[str, Measured]
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Experiment:
    """A figure or table of the paper.

    Args:
        id: its name on the command line.
        title: what it shows.
        paper: what the paper says about it, in our words.
        studies: what is run, by name.
        find: a function from the runs and the scale's name to the findings.
        tests: the claims, each with what makes it hold, fail or stay open.
        needs: what runs must have for a verdict.
        note: settings the paper leaves open and what they are here.
        optional: whether the findings are useful even if some study's data are missing.
    """

    id: str
    title: str
    paper: str
    studies: Mapping[str, Study]
    find: Callable[[Runs, str], Findings] = field(repr=False)
    tests: tuple[Test, ...] = ()
    needs: Needs = Needs()
    note: str = ""
    optional: bool = False

    def at(self, scale: str, trials: int | None, seed: int | None, image_rounds: int | None = None) -> dict[str, Study]:
        """The studies at a scale."""
        return {name: study.at(scale, trials, seed, image_rounds) for name, study in self.studies.items()}

    def claims(self, found: Mapping[str, Measured]) -> list[Claim]:
        """The verdict on every claim that has measured values."""
        known = {test.claim: test for test in self.tests}
        if strange := found.keys() - known.keys():
            raise KeyError(f"{self.id} has no test of {min(strange)!r}")
        about = [(test, found[claim]) for claim, test in known.items() if claim in found]
        return [judge(test, one.values, untested=one.untested, note=one.note) for test, one in about]

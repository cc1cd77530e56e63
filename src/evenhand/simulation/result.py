"""The result of a simulation: its trace, summary and figures; it can be saved and loaded."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pandas as pd

from evenhand.engine.run import Record
from evenhand.engine.trials import Settings
from evenhand.errors import InputError
from evenhand.files import write_atomically
from evenhand.learners.base import Learner
from evenhand.notation import JsonObject, lasting_text
from evenhand.simulation.metrics import worst_by
from evenhand.simulation.trace import FINAL_COLUMNS, TRACE_COLUMNS, differences, final_frame, summarise, trace_frame
from evenhand.sources.base import HasFairMixture, Source
from evenhand.sources.identity import identity

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_OF_THE_WHOLE = ("strategies", "trials", "jobs", "trace")
"""Settings that no single trial depends on."""
_PACKAGES = ("evenhand", "numpy", "scipy", "scikit-learn", "pandas")


@dataclass
class Result:
    """The finished trials of a simulation.

    Attributes:
        settings: what was run: source and the digest of its data, strategies by label, learner, budget, trials, seed and so on.
        seconds: time spent on each strategy's trials, in the workers.
        elapsed: the time this run took, without trials that an earlier run had finished.
        interrupted: whether Ctrl-C came before the end.
        fair_mixture: π* by group, if the source can compute it quickly (two groups).
    """

    settings: JsonObject
    groups: tuple[str, ...]
    labels: tuple[str, ...]
    fair_mixture: dict[str, float] | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    elapsed: float = 0.0
    interrupted: bool = False
    _traces: list[pd.DataFrame] = field(default_factory=list, repr=False)
    _finals: list[pd.DataFrame] = field(default_factory=list, repr=False)

    @classmethod
    def empty(
        cls,
        source: Source,
        texts: dict[str, str],
        learner: Learner,
        settings: Settings,
        trials: int,
        jobs: int,
        trace: str,
    ) -> Result:
        """A result without trials; `texts` are the strategies' texts by label."""
        chosen: JsonObject = {"source": source.name, "digest": identity(source), "strategies": texts}
        chosen |= {"learner": lasting_text(learner), "trials": trials, "jobs": jobs, "trace": trace}
        chosen |= {f.name: getattr(settings, f.name) for f in fields(settings)} | settings.risk.settings()
        fair = None
        # two groups have a closed form or a short search, more a long one; risks that are functions have none
        if isinstance(source, HasFairMixture) and len(source.groups) <= 2 and settings.risk.function is None:
            fair = dict(zip(source.groups, source.pi_star(settings.risk).tolist(), strict=True))
        return cls(chosen, source.groups, tuple(texts), fair)

    def settings_of(self, label: str) -> JsonObject:
        """All settings that a trial of this strategy depends on, apart from its number."""
        shared = {key: value for key, value in self.settings.items() if key not in _OF_THE_WHOLE}
        return {**shared, "strategy": self.settings["strategies"][label], "evenhand": version("evenhand")}

    def missing(self, label: str, trials: Sequence[int]) -> tuple[int, ...]:
        """Which of these trials of a strategy are not finished yet."""
        there = self.trials_of(label)
        return tuple(trial for trial in trials if trial not in there)

    def trials_of(self, label: str) -> set[int]:
        """The finished trials of a strategy."""
        return {int(t) for frame in self._finals for t in frame.loc[frame["strategy"] == label, "trial"].unique()}

    def take_in(self, label: str, record: Record) -> None:
        """Add the trials of a record."""
        if self.settings["trace"] != "none":
            self._traces.append(trace_frame(label, record, chosen_only=self.settings["trace"] == "chosen"))
        self._finals.append(final_frame(label, record))
        self.seconds[label] = self.seconds.get(label, 0.0) + record.seconds

    def take_over(self, earlier: Result) -> None:
        """Continue from an earlier result; refuses one that was run with other settings."""
        differ = [
            key
            for key, value in self.settings.items()
            # compared as JSON, since the earlier ones were read from a file: tuples are lists there
            if key not in ("jobs", "trials") and json.dumps(earlier.settings.get(key)) != json.dumps(value)
        ]
        if differ:
            was = ", ".join(f"{key} was {earlier.settings.get(key)!r}, is {self.settings[key]!r}" for key in differ)
            raise InputError(f"cannot go on from that result, its settings differ: {was}")
        # copies of the lists: the earlier result must not grow with this one
        self._traces, self._finals = list(earlier._traces), list(earlier._finals)
        self.seconds, self.elapsed = dict(earlier.seconds), earlier.elapsed

    @property
    def trace(self) -> pd.DataFrame:
        """A tidy row per trial, strategy, round and group."""
        if not self._traces:
            return pd.DataFrame(columns=list(TRACE_COLUMNS))
        if len(self._traces) > 1:
            kinds = {c: pd.CategoricalDtype(list(v)) for c, v in (("strategy", self.labels), ("group", self.groups))}
            frames = [frame.astype(kinds) for frame in self._traces]
            # joined when first looked at and kept so: a run of
            # many blocks would copy all earlier ones at each
            self._traces = [self._ordered(pd.concat(frames, ignore_index=True), ["round", "group"])]
        return self._traces[0]

    @property
    def final(self) -> pd.DataFrame:
        """A row per trial, strategy and group: where each run ended."""
        if not self._finals:
            return pd.DataFrame(columns=list(FINAL_COLUMNS))
        if len(self._finals) > 1:
            self._finals = [self._ordered(pd.concat(self._finals, ignore_index=True), [])]
        return self._finals[0]

    @property
    def deployed(self) -> pd.DataFrame:
        """The test risk of the model one would deploy, a row per trial, strategy and group; the error where no other is."""
        final, kind = self.final, "chosen" if self.settings["final"] == "chosen" else "final"
        if not len(final):
            return pd.DataFrame(columns=["trial", "strategy", "group", "risk"])
        risk = f"{kind}_test_risk"
        found = final[risk] if risk in final else 1 - final[f"{kind}_test_accuracy"]
        return final[["trial", "strategy", "group"]].assign(risk=found)

    def _ordered(self, frame: pd.DataFrame, rest: list[str]) -> pd.DataFrame:
        """Strategies in the order given, then trials; the same for every number of jobs."""
        # blocks come in any order, and categories of each are its own
        rank = pd.Categorical(frame["strategy"], categories=list(self.labels)).codes
        keys = pd.DataFrame({"s": rank, "t": frame["trial"]} | {key: _codes(frame[key]) for key in rest})
        order = keys.sort_values(list(keys.columns), kind="stable").index
        return frame.loc[order].reset_index(drop=True)

    def summary(self) -> JsonObject:
        """Means, standard deviations and paired differences, as plain values (what `summary.json` holds)."""
        shown = ("source", "budget", "trials", "seed", "jobs")
        return {
            "schema": 1,
            **{key: self.settings[key] for key in (*shown, "risk", "positive") if key in self.settings},
            "elapsed": self.elapsed,
            "interrupted": self.interrupted,
            "versions": {name: version(name) for name in _PACKAGES},
            "strategies": summarise(self.final, self.labels, self.seconds),
            "differences": differences(self.final, self.labels),
            "groups": list(self.groups),
            "fair_mixture": self.fair_mixture,
            "settings": self.settings,
        }

    def curve(self, label: str, column: str, group: str | None = None) -> pd.DataFrame:
        """Mean and standard deviation over trials of a column of the trace, by labels: of a group, or of the worst one."""
        own = self.trace[(self.trace["strategy"] == label) & self.trace[column].notna()]
        keys = ["trial", "labels"]
        found = worst_by(own, keys, column) if group is None else own[own["group"] == group].set_index(keys)[column]
        return pd.DataFrame(found.groupby(level="labels").agg(["mean", "std"]).fillna({"std": 0.0}))

    def plot_mixture(self, group: str | None = None) -> Figure:
        """Each strategy's mixture over time, mean ± 1 sd, with π* where it is known."""
        from evenhand.plotting.results import plot_mixture

        return plot_mixture(self, group)

    @property
    def measured(self) -> str:
        """The column of the trace that the simulation is about: `test_accuracy`, or `test_risk` for another risk."""
        return "test_accuracy" if self.settings["risk"] == "error" else "test_risk"

    def plot_worst_group(self) -> Figure:
        """Test accuracy of the worst group, or its risk, against labels spent, mean ± 1 sd."""
        from evenhand.plotting.results import plot_worst_group

        return plot_worst_group(self)

    def plot_groups(self, strategies: Sequence[str] | None = None) -> Figure:
        """Test accuracy of every group, or its risk, a panel for each strategy."""
        from evenhand.plotting.results import plot_groups

        return plot_groups(self, strategies)

    def report(self) -> str:
        """The result as one self-contained HTML page."""
        from evenhand.simulation.page import render

        return render(self)

    def save(self, folder: str | PathLike[str]) -> None:
        """Write `trace.parquet`, `final.parquet` and `summary.json`."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / "trace.parquet", lambda path: self.trace.to_parquet(path, index=False))
        write_atomically(folder / "final.parquet", lambda path: self.final.to_parquet(path, index=False))
        # the summary last: a folder that has one is complete
        text = json.dumps(self.summary(), indent=2, allow_nan=False)
        write_atomically(folder / "summary.json", lambda path: path.write_text(text + "\n", encoding="utf-8"))

    @classmethod
    def load(cls, folder: str | PathLike[str]) -> Self:
        """Load a result that `save` wrote."""
        folder = Path(folder)
        try:
            summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
            trace, final = (pd.read_parquet(folder / name) for name in ("trace.parquet", "final.parquet"))
        except FileNotFoundError as error:
            raise InputError(f"{folder} holds no saved result: {Path(str(error.filename)).name} is missing") from None
        return cls(
            summary["settings"],
            tuple(summary["groups"]),
            tuple(summary["strategies"]),
            summary["fair_mixture"],
            {label: found["seconds"] for label, found in summary["strategies"].items()},
            summary["elapsed"],
            summary["interrupted"],
            [trace] if len(trace) else [],
            [final] if len(final) else [],
        )


def _codes(column: pd.Series) -> Any:
    return column.cat.codes if isinstance(column.dtype, pd.CategoricalDtype) else column

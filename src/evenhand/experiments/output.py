"""The folder an experiment ends in: figures, CSV, `results.json` and the gallery."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.experiments.base import Experiment, Findings
from evenhand.experiments.drawing import watermark
from evenhand.experiments.gallery import render
from evenhand.experiments.study import Study
from evenhand.files import write_atomically

if TYPE_CHECKING:
    from evenhand.experiments.run import Options

__all__ = ["Output"]

_PACKAGES = ("evenhand", "numpy", "scipy", "scikit-learn", "pandas", "matplotlib")
_FORMATS = ("png", "svg", "csv")


class Output:
    """`results.json` and what belongs to it; entries of earlier runs stay until they are run again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        results = folder / "results.json"
        if folder.exists() and any(folder.iterdir()) and not results.exists() and not (folder / "trials").exists():
            raise ValueError(f"{folder} is not empty and holds no earlier reproduction: choose another folder")
        folder.mkdir(parents=True, exist_ok=True)
        self.entries: dict[str, Any] = {}
        if results.exists():
            self.entries = json.loads(results.read_text(encoding="utf-8"))["experiments"]

    def has(self, name: str, key: str) -> bool:
        """Whether this very experiment is there with all its files."""
        entry = self.entries.get(name, {})
        return entry.get("key") == key and all((self.folder / f"{name}.{kind}").exists() for kind in _FORMATS)

    def take(
        self,
        experiment: Experiment,
        findings: Findings,
        runs: Mapping[str, Mapping[str, Any]],
        studies: Mapping[str, Study],
        failures: list[dict[str, Any]],
        absent: Mapping[str, str],
        options: Options,
        key: str,
        seconds: float,
    ) -> None:
        """Write the figure and the table, and enter the findings."""
        quick = options.scale == "quick"
        if quick:
            watermark(findings.figure, "quick scale, not the paper's")
        self._draw(experiment.id, findings)
        table = findings.table.to_csv(index=False, float_format="%.6g")
        write_atomically(self.folder / f"{experiment.id}.csv", lambda path: path.write_text(table, encoding="utf-8"))
        records = [record for found in runs.values() for record in found.values()]
        self.entries[experiment.id] = self._about(experiment, options) | {
            "status": "failed" if failures else "done",
            "key": key,
            "studies": {name: _described(study) for name, study in studies.items()},
            "numbers": [asdict(number) for number in findings.numbers],
            "claims": [asdict(claim) for claim in findings.claims],
            "notes": list(findings.notes),
            "failures": failures,
            "absent": dict(absent),
            "seconds": round(seconds, 1),
            "worker_seconds": round(sum(record.seconds for record in records), 1),
        }

    def skip(self, experiment: Experiment, absent: Mapping[str, str], options: Options) -> None:
        """Enter why an experiment could not run, unless findings of an earlier run are there."""
        if self.entries.get(experiment.id, {}).get("status") not in ("done", "failed"):
            about = self._about(experiment, options)
            self.entries[experiment.id] = about | {"status": "skipped", "absent": dict(absent)}

    def fail(self, experiment: Experiment, failures: list[dict[str, Any]], options: Options) -> None:
        """Enter an experiment of which some strategy has no trial at all."""
        self.entries[experiment.id] = self._about(experiment, options) | {"status": "failed", "failures": failures}

    def write(self) -> None:
        """Write `results.json` and `index.html`."""
        from evenhand.experiments.catalogue import experiments

        order = [name for name in experiments() if name in self.entries]
        entries = {name: self.entries[name] for name in order}
        text = json.dumps({"schema": 1, "experiments": entries}, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        write_atomically(self.folder / "results.json", lambda path: path.write_text(text, encoding="utf-8"))
        page = render(entries)
        write_atomically(self.folder / "index.html", lambda path: path.write_text(page, encoding="utf-8"))

    def _draw(self, name: str, findings: Findings) -> None:
        import matplotlib as mpl

        # fixed ids and no date: the same numbers give the same file
        with mpl.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
            settings: dict[str, Any]
            for kind, settings in (("png", {"dpi": 110}), ("svg", {"metadata": {"Date": None}})):
                path = self.folder / f"{name}.{kind}"
                write_atomically(path, partial(findings.figure.savefig, format=kind, **settings))

    @staticmethod
    def _about(experiment: Experiment, options: Options) -> dict[str, Any]:
        command = f"evenhand reproduce {experiment.id} {options.arguments()} --jobs {options.jobs}"
        return {
            "title": experiment.title,
            "paper": experiment.paper,
            "note": experiment.note,
            "scale": options.scale,
            "command": command,
            "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "versions": {"python": platform.python_version()} | {name: version(name) for name in _PACKAGES},
            "cores": os.cpu_count(),
        }


def _described(study: Study) -> dict[str, Any]:
    found = asdict(study)
    del found["quick"], found["block"]
    return found

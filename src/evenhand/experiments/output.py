"""The output folder: figures, CSV, `results.json`, the values of every trial that verdicts use, the gallery."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.errors import InputError
from evenhand.experiments.base import Experiment, Findings
from evenhand.experiments.drawing import footnote, watermark
from evenhand.experiments.verdicts import FAMILY, LEVEL
from evenhand.files import write_atomically
from evenhand.notation import JsonObject

if TYPE_CHECKING:
    from evenhand.experiments.run import Options


VALUES = "verdicts.json"
SCHEMA = 1
_ABOUT = (
    "by experiment and claim, one value per trial and comparison; results.json beside it has the command, date, versions "
    "and seeds of every experiment"
)

_PACKAGES = ("evenhand", "numpy", "scipy", "scikit-learn", "pandas", "matplotlib")
_FORMATS = ("png", "svg", "csv")


class Output:
    """`results.json` and what belongs to it; entries of earlier runs stay until they are run again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        results = folder / "results.json"
        # a folder with other things in it must not fill up with figures
        if folder.exists() and any(folder.iterdir()) and not results.exists() and not (folder / "trials").exists():
            raise InputError(f"{folder} is not empty and holds no earlier reproduction: choose another folder")
        folder.mkdir(parents=True, exist_ok=True)
        self.entries, self.measured = _entries(results), _entries(folder / VALUES)

    def has(self, name: str, key: str | None = None) -> bool:
        """Whether an experiment's findings exist with all files; with a key, they must be of just this experiment."""
        entry = self.entries.get(name, {})
        there = "key" in entry and all((self.folder / f"{name}.{kind}").exists() for kind in _FORMATS)
        return there and key in (None, entry["key"])

    def enter(
        self, experiment: Experiment, options: Options, findings: Findings | None = None, **details: object
    ) -> None:
        """Add an experiment, with its findings if there are any: the figure and the table are written at once."""
        entry = self._about(experiment, options) | details
        if findings is not None:
            if options.scale == "quick":
                watermark(findings.figure, "quick scale, not the paper's")
            elif options.image_rounds is not None and any(study.of_images for study in experiment.studies.values()):
                footnote(findings.figure, f"images: {options.image_rounds} of the paper's 500 rounds")
            self._draw(experiment.id, findings)
            entry["numbers"] = [asdict(number) for number in findings.numbers]
            entry["claims"] = [asdict(claim) for claim in experiment.claims(findings.measured)]
            self.measured[experiment.id] = {claim: one.to_dict() for claim, one in findings.measured.items()}
            entry["notes"] = list(findings.notes)
        self.entries[experiment.id] = entry

    def write(self) -> None:
        """Write `results.json` and `index.html`."""
        from evenhand.experiments.catalogue import experiments
        from evenhand.report.pages import environment

        # the paper's order, whatever was run first
        order = [name for name in experiments() if name in self.entries]
        entries = {name: self.entries[name] for name in order}
        text = (
            json.dumps({"schema": SCHEMA, "experiments": entries}, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        )
        write_atomically(self.folder / "results.json", lambda path: path.write_text(text, encoding="utf-8"))
        kept = values_text({name: self.measured[name] for name in order if name in self.measured})
        write_atomically(self.folder / VALUES, lambda path: path.write_text(kept, encoding="utf-8"))
        templates = environment()
        templates.filters["number"] = _number
        page = templates.get_template("gallery.html").render(entries=entries)
        write_atomically(self.folder / "index.html", lambda path: path.write_text(page, encoding="utf-8"))

    def _draw(self, name: str, findings: Findings) -> None:
        import matplotlib as mpl

        table = findings.table.to_csv(index=False, float_format="%.6g")
        write_atomically(self.folder / f"{name}.csv", lambda path: path.write_text(table, encoding="utf-8"))

        # fixed ids and no date: the same numbers give the same file
        with mpl.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
            settings: JsonObject
            for kind, settings in (("png", {"dpi": 110}), ("svg", {"metadata": {"Date": None}})):
                path = self.folder / f"{name}.{kind}"
                write_atomically(path, partial(findings.figure.savefig, format=kind, **settings))

    @staticmethod
    def _about(experiment: Experiment, options: Options) -> JsonObject:
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


def _number(value: float | None, sd: float | None = None) -> str:
    """A number with its standard deviation.

    >>> _number(0.2034, 0.083), _number(None)
    ('0.203 ± 0.083', '—')
    """
    if value is None:
        return "—"
    return f"{value:.3f}" if sd is None else f"{value:.3f} ± {sd:.3f}"


def _entries(path: Path) -> JsonObject:
    """The experiments in one of our files; none where it was not written yet."""
    if not path.exists():
        return {}
    try:
        found: JsonObject = json.loads(path.read_text(encoding="utf-8"))["experiments"]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is not a file of evenhand reproduce, or was damaged: {error!r}") from None
    return found


def values_text(kept: JsonObject) -> str:
    """The text of `verdicts.json`, a line for each claim so that a change can be read."""
    lines = []
    for name, claims in kept.items():
        rows = [
            f"  {json.dumps(claim, ensure_ascii=False)}: "
            + json.dumps(one, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
            for claim, one in claims.items()
        ]
        lines.append(f" {json.dumps(name)}: {{\n" + ",\n".join(rows) + "\n }")
    head = {"schema": SCHEMA, "about": _ABOUT, "level": LEVEL, "comparisons_at_most": FAMILY}
    return json.dumps(head).removesuffix("}") + ', "experiments": {\n' + ",\n".join(lines) + "\n}}\n"

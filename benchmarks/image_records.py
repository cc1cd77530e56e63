"""What image runs left behind, as `docs/results/images.json`: curves, ceilings, costs.

A run is a checkpoint (finished or not), a folder of checkpoints (one a trial), a folder that `Result.save` wrote, or one
of the folders in which `evenhand reproduce` keeps trials.
Logs are what the other subcommands of `images.py` print: JSON lines.
"""

from __future__ import annotations

import json
import os
import re
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from evenhand.simulation.result import Result
from evenhand.simulation.store import read_record
from evenhand.sources.images.images import Images
from provenance import write_json

COSTS = ("costs", "overhead", "memory")


def curve(path: Path, source: Images) -> dict[str, Any]:
    """What a checkpoint tells of its run, finished or not: test accuracies and mixture by round."""
    kept = torch.load(path, weights_only=True)
    order = np.argsort(source.test.group, kind="stable")
    y, counts = source.test.y[order], np.bincount(source.test.group, minlength=len(source.groups))
    found: dict[str, Any] = {"round": [], "accuracy": [], "at": [], "mixture": [], "final": None, "rounds": 0}
    found["update"] = re.search(r"update\W+(\w+)", kept["settings"])[1]
    for event in kept["events"]:
        found["rounds"] += event["kind"] == "fit"
        if event["kind"] == "score":
            held = event["count"].numpy()[0]
            found["at"].append(found["rounds"])
            found["mixture"].append((held / held.sum()).tolist())
        if event["kind"] in ("test", "final") and "predict" in event:
            right = event["predict"].numpy() == y
            by_group = [float(part.mean()) for part in np.split(right, np.cumsum(counts)[:-1])]
            if event["kind"] == "final":
                found["final"] = by_group
            else:
                found["round"].append(found["rounds"])
                found["accuracy"].append(by_group)
    return found


def of_checkpoints(paths: list[Path], source: Images) -> dict[str, Any]:
    """Trials kept as checkpoints; rounds that all of them tested."""
    curves = [curve(path, source) for path in paths]
    rounds = sorted(set.intersection(*(set(one["round"]) for one in curves)))
    accuracy = np.array([[one["accuracy"][one["round"].index(r)] for r in rounds] for one in curves])
    finals = [one["final"] for one in curves if one["final"] is not None]
    day = datetime.fromtimestamp(max(path.stat().st_mtime for path in paths), UTC)
    return {
        "update": curves[0]["update"],
        "rounds": min(one["rounds"] for one in curves),
        "trials": len(curves),
        "seconds": None,
        "date": day.strftime("%Y-%m-%d"),
        **_means(source.groups, rounds, accuracy),
        "mixture": _by_group(source.groups, np.mean([one["mixture"][-1] for one in curves], axis=0)),
        "final": _by_group(source.groups, np.mean(finals, axis=0)) if len(finals) == len(curves) else None,
    }


def of_result(folder: Path) -> dict[str, Any]:
    """A saved result with one strategy."""
    result = Result.load(folder)
    (label,) = result.labels
    tested = result.trace.dropna(subset=["test_accuracy"])
    by_round = tested.pivot_table("test_accuracy", ["trial", "round"], "group", observed=True)[list(result.groups)]
    rounds, trials = sorted(by_round.index.unique("round")), result.settings["trials"]
    update = re.search(r"update\W+(\w+)", result.settings["learner"])
    ends = (
        result.final.groupby("group", observed=True)[["mixture", "final_test_accuracy"]].mean().loc[list(result.groups)]
    )
    day = datetime.fromtimestamp((folder / "summary.json").stat().st_mtime, UTC)
    return {
        "update": update[1] if update else None,
        "rounds": int(result.trace["round"].max()),
        "trials": trials,
        "seconds": round(result.seconds[label], 1),
        "date": day.strftime("%Y-%m-%d"),
        **_means(result.groups, rounds, by_round.to_numpy().reshape(trials, len(rounds), -1)),
        "mixture": _by_group(result.groups, ends["mixture"]),
        "final": _by_group(result.groups, ends["final_test_accuracy"]),
    }


def of_trials(folder: Path) -> dict[str, Any]:
    """Trials of one rule that `evenhand reproduce` kept."""
    paths = sorted(folder.glob("*.npz"))
    records = [read_record(path) for path in paths]
    groups, first = records[0].groups, records[0]
    tested = np.flatnonzero(~np.isnan(first.accuracy).all(axis=(1, 2)))
    accuracy = np.concatenate([record.accuracy[tested] for record in records], axis=1)
    counts = np.concatenate([record.counts[-1] for record in records])
    update = re.search(r"update=(\w+)", json.loads((folder / "settings.json").read_text(encoding="utf-8"))["learner"])
    return {
        "update": update[1] if update else "step",
        "rounds": len(first.labels),
        "trials": len(counts),
        "seconds": round(sum(record.seconds for record in records), 1),
        "date": datetime.fromtimestamp(max(path.stat().st_mtime for path in paths), UTC).strftime("%Y-%m-%d"),
        **_means(groups, (tested + 1).tolist(), accuracy.transpose(1, 0, 2)),
        "mixture": _by_group(groups, (counts / counts.sum(axis=1, keepdims=True)).mean(axis=0)),
        "final": None,
    }


def _means(groups: tuple[str, ...], rounds: list[int], accuracy: Any) -> dict[str, Any]:
    """Means over trials: the worst group by round, every group at the end; accuracy (trial, round, group)."""
    worst = accuracy.min(axis=2)
    pairs = [[int(r), round(float(value), 4)] for r, value in zip(rounds, worst.mean(axis=0), strict=True)]
    spread = round(float(worst[:, -1].std(ddof=1)), 4) if len(worst) > 1 else None
    return {"curve": pairs, "sd": spread, "accuracy": _by_group(groups, accuracy[:, -1].mean(axis=0))}


def _by_group(groups: tuple[str, ...], values: Any) -> dict[str, float]:
    return {z: round(float(value), 4) for z, value in zip(groups, values, strict=True)}


def of_run(path: Path, source: Images) -> dict[str, Any]:
    """A run from whatever it left."""
    if (path / "summary.json").exists():
        return of_result(path)
    if (path / "settings.json").exists():
        return of_trials(path)
    paths = sorted(path.glob("*.pt")) if path.is_dir() else [path]
    if not paths:
        raise ValueError(f"{path} holds neither a saved result nor checkpoints (*.pt)")
    if len({one.stem.partition("-trial-")[0] for one in paths}) > 1:
        raise ValueError(f"{path} holds checkpoints of several rules: name the files, one run each")
    return of_checkpoints(paths, source)


def ceilings(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Accuracies by epoch, a ceiling for each training set."""
    found: dict[str, dict[str, Any]] = {}
    for line in lines:
        new = {"trained_on": line["trained on"], "images": line["images"], "accuracy": []}
        found.setdefault(line["trained on"], new)["accuracy"].append(line["accuracy"])
    return list(found.values())


def read_lines(paths: list[Path]) -> list[dict[str, Any]]:
    """The JSON lines of all files."""
    return [json.loads(line) for path in paths for line in path.read_text(encoding="utf-8").splitlines() if line]


def collect_data(
    out: Path, name: str, source: Images, runs: list[tuple[str, Path]], logs: list[Path], note: str | None = None
) -> None:
    """Replace what the file holds of a data set."""
    kept = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}
    entry = {
        "groups": list(source.groups),
        "runs": [{"rule": label, **of_run(path, source)} for label, path in runs],
        "ceilings": ceilings(read_lines(logs)),
    }
    kept.setdefault("data", {})[name] = entry
    _write(out, kept, note)


def collect_costs(out: Path, logs: list[Path], note: str | None = None) -> None:
    """Replace the costs, overheads and memory rows of which there are lines."""
    kept = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}
    lines = read_lines(logs)
    for what in COSTS:
        if rows := [{k: v for k, v in line.items() if k != "what"} for line in lines if line["what"] == what]:
            kept[what] = rows
    _write(out, kept, note)


def _write(out: Path, kept: dict[str, Any], note: str | None) -> None:
    if note is not None:
        kept["note"] = note
    packages = ("evenhand", "torch", "numpy")
    kept["versions"] = {package: version(package).partition("+")[0] for package in packages}
    kept["cores"] = os.cpu_count()
    write_json(out, kept)

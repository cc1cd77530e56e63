"""Computes verdicts again, from the values of every trial that a run stored in `verdicts.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from evenhand.errors import InputError
from evenhand.experiments.base import Measured
from evenhand.experiments.verdicts import FAMILY, LEVEL, Claim
from evenhand.notation import JsonObject

__all__ = ["VALUES", "judge_again", "read_values", "values_text"]

VALUES = "verdicts.json"
_ABOUT = (
    "by experiment and claim, one value per trial and comparison; results.json beside it has the command, date, versions "
    "and seeds of every experiment"
)


def read_values(folder: Path) -> JsonObject:
    """By experiment and claim, the values that its test uses; empty if nothing was stored."""
    path = folder / VALUES
    if not path.exists():
        return {}
    found: JsonObject = json.loads(path.read_text(encoding="utf-8"))["experiments"]
    return found


def values_text(kept: Mapping[str, JsonObject]) -> str:
    """The file's text, a line for each claim so that a change can be read."""
    lines = []
    for name, claims in kept.items():
        rows = [f"  {json.dumps(claim, ensure_ascii=False)}: {_compact(one)}" for claim, one in claims.items()]
        lines.append(f" {json.dumps(name)}: {{\n" + ",\n".join(rows) + "\n }")
    head = {"schema": 1, "about": _ABOUT, "level": LEVEL, "comparisons_at_most": FAMILY}
    return json.dumps(head).removesuffix("}") + ', "experiments": {\n' + ",\n".join(lines) + "\n}}\n"


def _compact(one: JsonObject) -> str:
    return json.dumps(one, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def judge_again(folder: Path, ids: list[str]) -> dict[str, list[tuple[Claim, str]]]:
    """For every experiment its claims, judged by the tests as they are now, and the verdict that `results.json` has."""
    from evenhand.experiments.catalogue import choose

    values, results = read_values(folder), folder / "results.json"
    if not values or not results.exists():
        raise InputError(f"{folder} has no {VALUES} beside a results.json: run evenhand reproduce --out {folder} first")
    entries = json.loads(results.read_text(encoding="utf-8"))["experiments"]
    found = {}
    for experiment in choose(ids):
        if experiment.id not in values:
            continue
        measured = {claim: Measured(**one) for claim, one in values[experiment.id].items()}
        before = {claim["text"]: claim["verdict"] for claim in entries[experiment.id]["claims"]}
        claims = experiment.claims(measured)
        found[experiment.id] = [(claim, before.get(claim.text, "not there")) for claim in claims]
    return found

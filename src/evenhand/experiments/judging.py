"""Computes verdicts again, from the values of every trial that a run stored in `verdicts.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from evenhand.errors import InputError
from evenhand.experiments.base import Experiment, Measured
from evenhand.experiments.verdicts import FAMILY, LEVEL, Claim
from evenhand.notation import JsonObject

__all__ = ["SCHEMA", "VALUES", "judge_again", "read_values", "values_text"]

VALUES = "verdicts.json"
SCHEMA = 1
_ABOUT = (
    "by experiment and claim, one value per trial and comparison; results.json beside it has the command, date, versions "
    "and seeds of every experiment"
)


def read_values(folder: Path) -> JsonObject:
    """By experiment and claim, the values that its test uses; empty if nothing was stored."""
    path = folder / VALUES
    return _read(path) if path.exists() else {}


def _read(path: Path) -> JsonObject:
    """The experiments of one of our files."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        experiments: JsonObject = found["experiments"]
        schema = found["schema"]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is not a file of evenhand reproduce, or was damaged: {error!r}") from None
    if schema != SCHEMA:
        raise InputError(f"{path} has the schema {schema!r}, this version reads {SCHEMA}")
    return experiments


def values_text(kept: Mapping[str, JsonObject]) -> str:
    """The file's text, a line for each claim so that a change can be read."""
    lines = []
    for name, claims in kept.items():
        rows = [f"  {json.dumps(claim, ensure_ascii=False)}: {_compact(one)}" for claim, one in claims.items()]
        lines.append(f" {json.dumps(name)}: {{\n" + ",\n".join(rows) + "\n }")
    head = {"schema": SCHEMA, "about": _ABOUT, "level": LEVEL, "comparisons_at_most": FAMILY}
    return json.dumps(head).removesuffix("}") + ', "experiments": {\n' + ",\n".join(lines) + "\n}}\n"


def _compact(one: JsonObject) -> str:
    return json.dumps(one, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def judge_again(folder: Path, ids: list[str]) -> dict[str, list[tuple[Claim, Claim | None]]]:
    """For every experiment its claims, judged by the tests as they are now, and the claim as `results.json` has it.

    None stands for a claim that `results.json` lacks. Values that no run can have written are refused.
    """
    from evenhand.experiments.catalogue import choose

    results = folder / "results.json"
    if not (folder / VALUES).exists() or not results.exists():
        raise InputError(f"{folder} has no {VALUES} beside a results.json: run evenhand reproduce --out {folder} first")
    _same_level(folder / VALUES)
    values, entries = read_values(folder), _read(results)
    known = {experiment.id: experiment for experiment in choose(ids)}
    published = {name: _published(entry, results) for name, entry in entries.items()}
    if not ids:
        judged = {name for name, claims in published.items() if claims}
        if strange := (judged ^ values.keys()) | (values.keys() - known.keys()):
            raise InputError(
                f"{VALUES} and results.json do not have the same experiments: see {', '.join(sorted(strange))}"
            )
    found = {}
    for name in (name for name in known if name in values):
        before, measured = published.get(name, {}), _measured(name, values[name], entries.get(name, {}))
        if missing := before.keys() - measured.keys():
            raise InputError(f"{VALUES} has no values of {min(missing)!r} of {name}, which results.json has")
        if strange := measured.keys() - {test.claim for test in known[name].tests}:
            raise InputError(f"{VALUES} has values of {min(strange)!r}, of which {name} has no test")
        _whole(known[name], measured, entries.get(name, {}))
        claims = known[name].claims(measured)
        found[name] = [(claim, before.get(claim.text)) for claim in claims]
    _same_in_the_table(values, entries)
    return found


def _same_level(path: Path) -> None:
    """Refuse values that were judged with another level than that of this version."""
    found = json.loads(path.read_text(encoding="utf-8"))
    for key, ours in (("level", LEVEL), ("comparisons_at_most", FAMILY)):
        if found.get(key) != ours:
            raise InputError(
                f"{path} has {key} {found.get(key)!r}, the tests of this version have {ours!r}: run evenhand reproduce "
                "again with the same --out, which judges the kept trials anew"
            )


def _whole(experiment: Experiment, measured: Mapping[str, Measured], entry: JsonObject) -> None:
    """Refuse an experiment that lacks a claim, has a comparison too many, or a reason not to judge that is not so."""
    again = f"run evenhand reproduce {experiment.id} again"
    sizes = _sizes(entry)
    for test in experiment.tests:
        # without the data of a study there is nothing to say about it
        if test.claim not in measured:
            if test.study and test.study not in sizes:
                continue
            raise InputError(f"{VALUES} and results.json lack the claim {test.claim!r} of {experiment.id}: {again}")
        own = measured[test.claim]
        if strange := own.values.keys() - {one.name for one in test.comparisons}:
            raise InputError(
                f"{VALUES} has values of {min(strange)!r}, which the test of {test.claim!r} of {experiment.id} does not "
                f"use: take them out, or {again}"
            )
        about = [sizes[test.study]] if test.study else list(sizes.values())
        lacking = experiment.needs.lacking(own.values, entry.get("scale", ""), min(map(_rounds, about), default=0))
        if own.untested != lacking:
            raise InputError(
                f"{VALUES} says of {test.claim!r} of {experiment.id} that it is not judged because of "
                f"{own.untested or 'nothing'!r}; by its runs that should be {lacking or 'nothing'!r}: {again}"
            )


def _sizes(entry: JsonObject) -> JsonObject:
    """What was run, by the study's name."""
    return {**entry.get("studies", {}), **entry.get("runs", {})}


def _rounds(size: JsonObject) -> int:
    """Every round draws a batch to train on and one to validate."""
    return int(size["rounds"] if "rounds" in size else size["budget"] // (2 * size.get("batch", 1)))


def _same_in_the_table(values: JsonObject, entries: JsonObject) -> None:
    """Refuse a table whose values are not those that a figure has of the same trials."""
    from evenhand.experiments.catalogue import experiments

    known = experiments()
    tables = [(table, test) for table in known.values() for test in table.tests if test.study]
    for table, test in tables:
        ours = values.get(table.id, {}).get(test.claim, {}).get("values", {})
        for figure in known.values():
            if [*figure.studies.values()] != [table.studies[test.study]]:
                continue
            size: JsonObject = next(iter(_sizes(entries.get(figure.id, {})).values()), {})
            theirs = {k: v for one in values.get(figure.id, {}).values() for k, v in one["values"].items()}
            differ = [name for name in ours if name in theirs and ours[name] != theirs[name]]
            if differ and _same_trials(size, _sizes(entries[table.id])[test.study]):
                raise InputError(
                    f"{VALUES}: {differ[0]!r} of {table.id} ({test.study}) and of {figure.id} are of the same trials and "
                    f"differ: run evenhand reproduce {table.id} {figure.id} again"
                )


def _same_trials(one: JsonObject, other: JsonObject) -> bool:
    return all(one.get(key) == other.get(key) for key in ("seed", "trials")) and _rounds(one) == _rounds(other)


def _published(entry: JsonObject, path: Path) -> dict[str, Claim]:
    try:
        claims = [Claim(**one) for one in entry.get("claims", [])]
    except (TypeError, KeyError, AttributeError) as error:
        raise InputError(f"{path} has a claim that cannot be read: {error!r}") from None
    found: dict[str, Claim] = {}
    for claim in claims:
        if claim.text in found:
            raise InputError(
                f"{path} has the claim {claim.text!r} twice: take one out, or run evenhand reproduce again"
            )
        found[claim.text] = claim
    return found


def _measured(name: str, claims: JsonObject, entry: JsonObject) -> dict[str, Measured]:
    """The stored values, looked through: finite numbers, as many of every comparison as there were trials."""
    found = {}
    for claim, one in claims.items():
        try:
            own = Measured(**one)
            sizes = {comparison: np.asarray(values, dtype=float) for comparison, values in own.values.items()}
        except (TypeError, ValueError, AttributeError) as error:
            raise InputError(f"{VALUES}: the values of {claim!r} of {name} cannot be read: {error}") from None
        for comparison, values in sizes.items():
            if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
                raise InputError(f"{VALUES}: {comparison!r} of {name} must be a list of finite numbers, one a trial")
            trials = {study["trials"] for study in _sizes(entry).values()}
            # trials that failed have no values
            if len(values) > 1 and trials and len(values) not in trials and not entry.get("failures"):
                raise InputError(
                    f"{VALUES}: {comparison!r} of {name} has {len(values)} values, results.json speaks of "
                    f"{' or '.join(map(str, sorted(trials)))} trials"
                )
        found[claim] = own
    return found

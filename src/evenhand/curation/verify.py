"""Verifies a curated result: every figure of its report is recomputed from its files by scikit-learn."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.stats import t as student

from evenhand.arrays import Floats, Ints, Values
from evenhand.curation.candidates import candidates_agree, group_weights, refits_of
from evenhand.curation.recomputing import (
    Files,
    features,
    figures,
    interval,
    predictions,
    raw_columns,
    read_rows,
    refitted,
    risk_of,
    table_features,
)
from evenhand.errors import InputError
from evenhand.notation import JsonObject

__all__ = ["Check", "verify"]

CLOSE = 1e-9
REFIT = 1e-4
"""How far the probabilities of a refitted model may lie from those of the stored one."""


@dataclass(frozen=True)
class Check:
    """One thing that was checked.

    Attributes:
        name: what it is.
        ok: whether it agrees; None if it could not be recomputed.
        found: what was found, in words.
    """

    name: str
    ok: bool | None
    found: str


def verify(path: str | PathLike[str]) -> list[Check]:
    """Check what `Curated.save(path)` wrote: rows and roles, the model, every figure, the comparison."""
    files = Files(_rows_of(Path(path)))
    report, archive = files.report(), files.model()
    encode, texts = _encoding(archive) if archive else (None, [])
    text = [report["settings"]["label"], *texts]
    rows = read_rows(files.rows, text)
    # labels and predictions are read as text: 01 and 1 may be two labels, and a CSV file does not tell
    test = read_rows(files.test, [*text, "predicted"]) if report["test"] else rows.slice(0, 0)
    found, chances = [*_roles(report, rows, test), *_majority(report, rows)], None
    if encode is None:
        name = files.beside(".model.zip").name
        found.append(Check("the model", None, f"{name} is not there: figures are recomputed from what it predicted"))
    else:
        checks, chances = _model(report, archive, encode, rows, test)
        found += checks
    if test.num_rows:
        found += _figures(report, test, chances)
    return [*found, *_trials(report)]


def _encoding(archive: dict[str, bytes]) -> tuple[Callable[[pa.Table], Any], list[str]]:
    """How rows become features, and which of their columns are text."""
    if "encoder.json" in archive:
        encoder = json.loads(archive["encoder.json"])
        if "columns" in encoder:
            return lambda table: raw_columns(table, encoder), encoder["text"]
        return lambda table: features(table, encoder), [name for name, *_ in encoder["categories"]]
    about = json.loads(archive["about.json"])
    if about["format"] != "table":
        raise InputError(f"a model stored as {about['format']!r} without an encoder cannot be recomputed")
    data = archive[about["classifier"]]
    return lambda table: table_features(table, data), []


def _rows_of(path: Path) -> Path:
    """The path of the rows, whichever of the files, or their folder, was named."""
    if path.is_dir():
        found = sorted(path.glob("*.report.json"))
        if len(found) != 1:
            raise InputError(
                f"{path} holds {len(found)} reports: name the rows of one, such as {path / 'train.parquet'}"
            )
        path = found[0]
    if path.name.endswith((".report.json", ".report.html")):
        stem = path.name.removesuffix(path.suffix).removesuffix(".report")
        there = [path.with_name(stem + ending) for ending in (".parquet", ".csv")]
        path = next((rows for rows in there if rows.exists()), there[0])
    if not path.exists():
        raise InputError(f"there is no file {str(path)!r}: name the rows that curate wrote")
    return path


def _column(table: pa.Table, name: str) -> list[Any]:
    """A bookkeeping column, by its usual name or the one used if that was taken."""
    own = f"evenhand_{name}"
    found: list[Any] = table.column(own if own in table.column_names else name).to_pylist()
    return found


def _roles(report: JsonObject, rows: pa.Table, test: pa.Table) -> Iterator[Check]:
    id = report["settings"].get("id_column", "row")
    numbers, roles, groups = (_column(rows, name) for name in (id, "role", "group"))
    yield Check("no row twice", len(set(numbers)) == len(numbers), f"{len(numbers):,} rows")
    if test.num_rows:
        held_out = _column(test, id)
        # numbers of a test file of its own count from 0 as well, and mean other rows
        shared = set(numbers) & set(held_out) if report["settings"].get("holds_out", True) else set()
        once = len(set(held_out)) == len(held_out) and not shared
        yield Check("no row in two roles", once, f"{len(held_out):,} test rows")
    wrong = []
    for row in report["by_group"]:
        for role in ("train", "validation"):
            found = sum(g == row["group"] and r == role for g, r in zip(groups, roles, strict=True))
            wrong += [f"{row['group']}: {found} {role}, not {row[role]}"] * (found != row[role])
    total = report["train"] + report["validation"] == len(numbers)
    yield Check("counts of rows by group and role", total and not wrong, "; ".join(wrong) or f"{len(numbers):,} labels")


def _majority(report: JsonObject, rows: pa.Table) -> Iterator[Check]:
    classes = report["classes"]
    y = _labels(rows.column(report["settings"]["label"]).to_pylist(), classes)
    majority = classes[int(np.argmax(np.bincount(y, minlength=len(classes))))]
    yield Check("the most frequent label", majority == report["majority"], str(majority))


def _model(
    report: JsonObject,
    archive: dict[str, bytes],
    encode: Callable[[pa.Table], Any],
    rows: pa.Table,
    test: pa.Table,
) -> tuple[list[Check], Floats | None]:
    """The model fitted again and what it predicts; and its probabilities of every class on the test rows."""
    known, classes, checks = json.loads(archive["about.json"])["classes"], report["classes"], list[Check]()
    X, y = encode(rows), _labels(rows.column(report["settings"]["label"]).to_pylist(), classes)
    choice, group = report["choice"], np.array(_column(rows, "group"))
    plain = not choice or not choice["candidates"] or choice["candidates"][0]["chosen"]
    # as they were fitted: a plain model on rows that train first, a chosen one in the order of drawing
    order = np.argsort((np.array(_column(rows, "role")) == "validation") & plain, kind="stable")
    place = np.array([classes.index(label) for label in known])
    tested = encode(test) if test.num_rows else X
    predicted, chances = predictions(archive, tested)
    weight = None if plain else group_weights(group, choice["weights"], choice["strength"])
    ordered = X.iloc[order] if hasattr(X, "iloc") else X[order]
    again = refitted(archive, ordered, y[order], None if weight is None else weight[order])
    if again is not None and chances is not None:
        distance = float(np.abs(again.predict_proba(tested) - chances).max(initial=0.0))
        said = f"probabilities differ by at most {distance:.1e}"
        checks.append(Check("the model, fitted again by scikit-learn", distance < REFIT, said))
    if choice and choice["candidates"]:
        checks.append(_candidates(report, archive, X, y, group))
    if not test.num_rows:
        return checks, None
    stated = _labels(_column(test, "predicted"), classes)
    same = bool((place[predicted] == stated).all())
    checks.append(Check("predictions of the test rows", same, f"{len(stated):,} rows"))
    if chances is None:
        return checks, None
    # figures are by the report's classes, of which the model may have seen fewer
    wide = np.zeros((len(stated), len(classes)))
    wide[:, place] = chances
    return checks, wide


def _candidates(report: JsonObject, archive: dict[str, bytes], X: Floats, y: Ints, group: Values) -> Check:
    name, again = "the candidates for the model", refits_of(archive)
    known = report["risk"] in ("error", "log", "fnr", "fpr", "balanced", "costs")
    if again is None or not report["choice"]["folds"] or not known:
        return Check(name, None, "their risks are an indication only, and not recomputed for this learner or risk")
    return Check(name, *candidates_agree(report, again, X, y, group))


def _labels(values: list[Any], classes: list[Any]) -> Ints:
    """Positions of labels among the classes; CSV files hold text."""
    place = {str(label).lower(): k for k, label in enumerate(classes)}
    # exact first: classes that differ only in case are different; a spreadsheet may have made true of True
    exact = {str(label): k for k, label in enumerate(classes)}
    return np.array([exact.get(str(v), place.get(str(v).lower(), -1)) for v in values], dtype=np.int64)


def _figures(report: JsonObject, test: pa.Table, chances: Floats | None) -> Iterator[Check]:
    predicted = _labels(_column(test, "predicted"), report["classes"])
    y = _labels(test.column(report["settings"]["label"]).to_pylist(), report["classes"])
    group = np.array(_column(test, "group"))
    wrong, risks, checked = [], [], 0
    level = 1 - report["delta"] / len(report["groups"])
    for row in report["by_group"]:
        part = group == row["group"]
        own = None if chances is None else chances[part]
        found = figures(y[part], predicted[part], own, report)
        if part.any():
            found["low"], found["high"] = interval(int((y == predicted)[part].sum()), int(part.sum()), level)
        risk = risk_of(y[part], predicted[part], own, report)
        if risk is not None:
            found["risk"], found["risk_low"], found["risk_high"] = (None if np.isnan(end) else end for end in risk)
            risks.append((row, *risk))
        wrong += [
            f"{row['group']}, {key}: {row.get(key)} is {value}"
            for key, value in found.items()
            if not _same(row.get(key), value)
        ]
        checked += len(found)
    yield Check("figures of every group", not wrong, "; ".join(wrong[:5]) or f"{checked:,} figures")
    whole = figures(y, predicted, chances, report)
    off = [key for key, value in whole.items() if not _same(report["overall"].get(key), value)]
    yield Check("figures of all test rows", not off, ", ".join(off) or f"{len(whole)} figures")
    if len(risks) < len(report["by_group"]):
        why = (
            "needs probabilities, which this model has not" if report["risk"] == "log" else "is a function of your own"
        )
        yield Check(
            "the worst-off group and its interval",
            None,
            f"the risk {report['risk']} {why}, so its figures are not recomputed; all others are",
        )
        return
    enough = [
        (row["group"], risk, low, high) for row, risk, low, high in risks if row["relevant"] >= report["min_test"]
    ]
    worst = max(enough, key=lambda found: found[1], default=None)
    named = None if report["worst"] is None else report["worst"]["group"]
    agrees = named == (None if worst is None else worst[0])
    stated = report["worst_off"]
    if stated is not None:
        # the largest low end and the largest high one: the interval of the largest risk, whichever group has it
        agrees &= _same(stated["low"], max(e[2] for e in enough)) and _same(stated["high"], max(e[3] for e in enough))
    yield Check("the worst-off group and its interval", agrees, report["title"])


def _trials(report: JsonObject) -> Iterator[Check]:
    """Means, deviations and differences of the comparison, from the figures of its trials."""
    found = report["comparison"]
    if not found["trials"]:
        return
    by_rule: dict[str, Floats] = {}
    for rule in found["rules"]:
        trials = sorted((row for row in found["by_trial"] if row["strategy"] == rule), key=lambda row: row["trial"])
        by_rule[rule] = np.array([[row["by_group"][group] for group in found["groups"]] for row in trials])
    wrong = []
    for rule, values in by_rule.items():
        pairs = [(found["worst"][rule], values.max(axis=1))]
        pairs += [(found["by_group"][rule][group], values[:, i]) for i, group in enumerate(found["groups"])]
        for stated, over in pairs:
            sd = over.std(ddof=1) if len(over) > 1 else 0.0
            wrong += [rule] * (not (_same(stated["mean"], over.mean()) and _same(stated["sd"], sd)))
    for stated in found["differences"]:
        d = by_rule[stated["b"]].max(axis=1) - by_rule[stated["a"]].max(axis=1)
        level = 1 - report["delta"] / len(found["differences"])
        # paired by trial: both rules saw the same rows, so the trial's own ease falls out of the difference
        half = student.ppf((1 + level) / 2, len(d) - 1) * d.std(ddof=1) / np.sqrt(len(d))
        ends = (d.mean(), d.mean() - half, d.mean() + half)
        agree = all(_same(stated[key], end) for key, end in zip(("mean", "low", "high"), ends, strict=True))
        wrong += [f"{stated['a']} − {stated['b']}"] * (not agree)
    # the run itself is trial 0 of the comparison: were it not, the figures beside each other would be of different models
    wrong += ["trial 0 is not this run"] * (not _is_first_trial(report))
    yield Check("the comparison, from its trials", not wrong, ", ".join(wrong) or f"{found['trials']} trials")


def _is_first_trial(report: JsonObject) -> bool:
    """Whether trial 0 of the first rule, if there, has the risks of the reported model."""
    found = report["comparison"]
    risks = {row["group"]: row["risk"] for row in report["by_group"]}
    own = [row for row in found["by_trial"] if row["trial"] == 0 and row["strategy"] == found["rules"][0]]
    return all(_same(value, risks[group]) for row in own for group, value in row["by_group"].items())


def _same(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return a is None and b is None
    return bool(np.isclose(a, b, rtol=CLOSE, atol=CLOSE))

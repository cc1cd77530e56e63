"""A curated result computed once more from its files, by scikit-learn, scipy and Arrow alone.

Nothing here uses the package's own encoder, solver or figures, so that the check is independent.
"""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from scipy.optimize import brentq
from scipy.stats import binomtest, entropy
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, confusion_matrix, log_loss, recall_score
from sklearn.preprocessing import OneHotEncoder

from evenhand.arrays import Floats, Ints, Values
from evenhand.errors import InputError
from evenhand.notation import JsonObject

__all__ = [
    "Files",
    "features",
    "figures",
    "interval",
    "logistic",
    "predictions",
    "raw_columns",
    "read_rows",
    "refitted",
    "risk_of",
    "table_features",
]


@dataclass(frozen=True)
class Files:
    """The files beside the rows of a curated set."""

    rows: Path

    def beside(self, ending: str) -> Path:
        """`train.report.json` for `.report.json`."""
        return self.rows.with_suffix(ending)

    @property
    def test(self) -> Path:
        """The test rows."""
        return self.rows.with_suffix(f".test{self.rows.suffix}")

    def report(self) -> JsonObject:
        """The report's figures."""
        path = self.beside(".report.json")
        try:
            found: JsonObject = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise InputError(f"there is no {path.name} beside {self.rows}: nothing to verify") from None
        except ValueError as error:
            raise InputError(f"{path} is not a report of curate: {error}") from None
        if found.get("schema") != 2 or "by_group" not in found:
            raise InputError(f"{path} is not a report of curate that this version can verify")
        return found

    def model(self) -> dict[str, bytes]:
        """The files inside the model's archive; empty if there is no model."""
        path = self.beside(".model.zip")
        if not path.exists():
            return {}
        with zipfile.ZipFile(path) as archive:
            return {name: archive.read(name) for name in archive.namelist()}


def read_rows(path: Path, text: list[str]) -> pa.Table:
    """Rows as they were written; the columns of `text` are text, whatever they look like."""
    if path.suffix == ".parquet":
        return pq.read_table(path)
    options = pacsv.ConvertOptions(
        column_types=dict.fromkeys(text, pa.string()),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    return pacsv.read_csv(path, convert_options=options)


def features(table: pa.Table, encoder: JsonObject) -> Floats:
    """The rows encoded: numbers shifted and scaled, gaps and categories one-hot if training had them."""
    numbers = np.column_stack([np.empty((table.num_rows, 0)), *(_numbers(table.column(n)) for n in encoder["numbers"])])
    # NaN is where the cell was empty: the indicator columns below are made of the same gaps, before they are filled
    gaps = np.isnan(numbers)
    low, scale, fill, seen = (np.array(encoder[name], dtype=float) for name in ("low", "scale", "fill", "seen"))
    scaled = (np.where(gaps, fill, numbers) - low) * scale
    blocks = [gaps[:, [encoder["numbers"].index(name)]].astype(float) for name in encoder["gaps"]]
    for name, values, missing in encoder["categories"]:
        cells = np.array([None if v is None else str(v) for v in table.column(name).to_pylist()], dtype=object)
        known = [*values, *[None] * missing]
        one_hot = OneHotEncoder(
            categories=[np.array(known, dtype=object)], handle_unknown="ignore", sparse_output=False
        )
        # an empty cell is a category of its own only where training had seen one; else all its indicators stay 0
        kept = np.array([cell is not None or missing for cell in cells], dtype=bool)
        block = np.zeros((len(cells), len(known)))
        if len(known) and kept.any():
            block[kept] = one_hot.fit(np.array(known, dtype=object)[:, None]).transform(cells[kept, None])
        blocks.append(block)
    # `seen` is 0 for a category that no training row had: its weight was never fitted and must not count
    return np.column_stack([scaled, *(b * seen[_place(i, blocks, len(low))] for i, b in enumerate(blocks))])


def raw_columns(table: pa.Table, encoder: JsonObject) -> pd.DataFrame:
    """The columns as they are, for a Pipeline that makes its own features."""
    frame: pd.DataFrame = table.select(encoder["columns"]).to_pandas(date_as_object=False)
    for name in [name for name, kind in frame.dtypes.items() if kind.kind == "O" and kind.name == "object"]:
        # exact decimals of Parquet are numbers for a Pipeline; None would make the column one of objects
        values = frame[name].map(lambda v: float(v) if isinstance(v, Decimal) else v)
        frame[name] = values.where(values.notna(), np.nan)
    return frame


def table_features(table: pa.Table, data: bytes) -> Floats:
    """Rows as the learner `table` encodes them: numbers standardised, with a column for gaps each, text one-hot."""
    with np.load(io.BytesIO(data), allow_pickle=False) as found:
        about, centre, scale = json.loads(found["about"].tobytes()), found["centre"], found["scale"]
    parts = []
    for name, middle, spread, values in zip(about["columns"], centre, scale, about["values"], strict=True):
        if values is None:
            numbers = (_numbers(table.column(name)) - middle) / spread
            # the mean stands for a missing number (0 once standardised), and the column beside it says that it was missing
            gaps = ~np.isfinite(numbers)
            parts += [np.where(gaps, 0.0, numbers)[:, None], gaps[:, None].astype(float)]
        else:
            cells = np.array(["" if v is None else str(v) for v in table.column(name).to_pylist()], dtype=object)[
                :, None
            ]
            known = np.array(values, dtype=object)
            encoder = OneHotEncoder(categories=[known], handle_unknown="ignore", sparse_output=False)
            parts.append(encoder.fit(known[:, None]).transform(cells))
    return np.hstack(parts)


def classifier_of(archive: dict[str, bytes]) -> tuple[str, bytes]:
    """The classifier's format and arrays; the learner `table` keeps its classifier within its own."""
    about = json.loads(archive["about.json"])
    data = archive[about["classifier"]]
    if about["format"] != "table":
        return about["format"], data
    with np.load(io.BytesIO(data), allow_pickle=False) as found:
        return "logistic", found["classifier"].tobytes()


def _place(i: int, blocks: list[Floats], first: int) -> slice:
    start = first + sum(block.shape[1] for block in blocks[:i])
    return slice(start, start + blocks[i].shape[1])


def _numbers(column: pa.ChunkedArray) -> Floats:
    """A column as numbers, dates and times in days."""
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        # days, so that a coefficient of a date has a size that a penalty can be fair to
        moments = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64()).cast(pa.float64(), safe=False)
        return np.asarray(moments.to_numpy(), dtype=float) / 86_400e6
    if pa.types.is_time(column.type) or pa.types.is_duration(column.type):
        kind = pa.time64("us") if pa.types.is_time(column.type) else pa.duration("us")
        length = column.cast(kind, safe=False).cast(pa.int64()).cast(pa.float64(), safe=False)
        return np.asarray(length.to_numpy(), dtype=float) / 86_400e6
    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), dtype=float)


def predictions(archive: dict[str, bytes], X: Floats) -> tuple[Ints, Floats | None]:
    """Predicted classes, as positions, and probabilities, from what the archive holds."""
    about, (form, data) = json.loads(archive["about.json"]), classifier_of(archive)
    if form == "constant":
        return np.zeros(len(X), dtype=np.int64), None
    if form == "skops":
        from skops.io import loads

        estimator = loads(data)
        chances = np.asarray(estimator.predict_proba(X)) if hasattr(estimator, "predict_proba") else None
        return _codes(estimator.predict(X), about["classes"]), chances
    if form != "logistic":
        raise InputError(f"a model stored as {form!r} cannot be recomputed by scikit-learn")
    with np.load(io.BytesIO(data), allow_pickle=False) as found:
        scores = X @ found["coef"].T + found["intercept"]
    # one class seen: the stored model is an intercept alone, its probability that of the only class
    if len(about["classes"]) == 1:
        chance = 1 / (1 + np.exp(-scores))
        return np.zeros(len(X), dtype=np.int64), chance
    # two classes have one row of weights, for the second of them: the first scores 0
    if scores.shape[1] == 1:
        scores = np.column_stack([np.zeros(len(X)), scores])
    # the largest is taken off first: exp overflows from about 700 on
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return scores.argmax(axis=1), powers / powers.sum(axis=1, keepdims=True)


def refitted(archive: dict[str, bytes], X: Floats, y: Values, weight: Floats | None) -> Any:
    """The model fitted again by scikit-learn; None if it cannot fit this kind."""
    about, (form, data) = json.loads(archive["about.json"]), classifier_of(archive)
    if form == "skops":
        from skops.io import loads

        estimator = clone(loads(data))
        return estimator.fit(X, y) if weight is None else estimator.fit(X, y, **{_weight_key(estimator): weight})
    if form != "logistic" or len(about["classes"]) < 2:
        return None
    with np.load(io.BytesIO(data), allow_pickle=False) as found:
        return logistic(X, y, weight, C=float(found["settings"][0]))


def _weight_key(estimator: Any) -> str:
    """The keyword by which a classifier takes weights: a Pipeline hands them to its last step."""
    if steps := getattr(estimator, "steps", None):
        return f"{steps[-1][0]}__{_weight_key(steps[-1][1])}"
    inner = getattr(estimator, "estimator", None)
    return _weight_key(inner) if hasattr(inner, "steps") else "sample_weight"


def logistic(X: Floats, y: Values, weight: Floats | None, *, C: float, tol: float = 1e-10) -> LogisticRegression:
    """Logistic regression, by the solver that converges reliably at this number of features."""
    # Newton's steps factor a matrix of features squared: quick and exact while there are few, out of reach for many
    solver = "newton-cholesky" if X.shape[1] <= 2000 else "lbfgs"
    return LogisticRegression(C=C, solver=solver, tol=tol, max_iter=10_000).fit(X, y, weight)


def _codes(labels: Any, classes: list[Any]) -> Ints:
    place = {label: k for k, label in enumerate(classes)}
    return np.array([place[label] for label in np.asarray(labels).tolist()], dtype=np.int64)


def figures(y: Ints, predicted: Ints, chances: Floats | None, report: JsonObject) -> dict[str, float | None]:
    """The figures of some test rows; labels are positions in the report's classes."""
    classes = report["classes"]
    found: dict[str, float | None] = {"count": len(y)}
    if not len(y):
        return found
    found["accuracy"] = float(accuracy_score(y, predicted))
    found["error"] = float(np.mean(y != predicted))
    # over the classes these rows have: one that a group lacks has no recall to average
    found["balanced_accuracy"] = float(recall_score(y, predicted, labels=np.unique(y), average="macro"))
    found["majority_accuracy"] = float(accuracy_score(y, np.full(len(y), classes.index(report["majority"]))))
    positive = None if report["positive"] is None else classes.index(report["positive"])
    if positive is not None:
        (tn, fp), (fn, tp) = confusion_matrix(y == positive, predicted == positive, labels=[False, True])
        found["false_negative_rate"] = float(fn / (fn + tp)) if fn + tp else None
        found["false_positive_rate"] = float(fp / (fp + tn)) if fp + tn else None
        found["selection_rate"], found["base_rate"] = float((tp + fp) / len(y)), float((tp + fn) / len(y))
    if chances is not None:
        chance = chances.max(axis=1) if positive is None else chances[:, positive]
        happened = y == (predicted if positive is None else positive)
        found["mean_prediction"] = float(chance.mean())
        # a probability of exactly 1 belongs to the last of the ten bins
        part = np.minimum((10 * chance).astype(int), 9)
        gaps = [abs(np.sum(chance[part == k] - happened[part == k])) for k in range(10)]
        found["calibration_error"] = float(sum(gaps) / len(y))
    return found


def risk_of(y: Ints, predicted: Ints, chances: Floats | None, report: JsonObject) -> tuple[float, float, float] | None:
    """The risk of some test rows and the ends of its interval, NaN if there is none; None if it is not recomputed."""
    name, K = report["risk"], len(report["classes"])
    groups = len(report["groups"])
    level = 1 - report["delta"] / groups
    wrong = y != predicted
    if name in ("fnr", "fpr"):
        positive = report["classes"].index(report["positive"])
        about = (y == positive) == (name == "fnr")
        wrong = (predicted != positive if name == "fnr" else predicted == positive)[about]
    if name in ("error", "fnr", "fpr"):
        return (float(wrong.mean()) if len(wrong) else np.nan, *interval(int(wrong.sum()), len(wrong), level))
    if name == "balanced":
        rates = [wrong[y == k].mean() for k in np.unique(y)]
        parts = [
            # a class's own interval, so that all of them over all groups hold at once
            interval(int(wrong[y == k].sum()), int((y == k).sum()), 1 - report["delta"] / groups / K)
            for k in range(K)
        ]
        low, high = np.mean(parts, axis=0)
        return (float(np.mean(rates)) if rates else np.nan, float(low), float(high))
    if name == "costs":
        costs = np.array(report["costs"])
        losses = costs[y, predicted]
        # losses of 0 and 1 alone are a proportion, whose exact interval is narrower than that of any bounded mean
        if np.isin(costs, (0.0, 1.0)).all():
            ends = interval(int(losses.sum()), len(y), level)
        else:
            ends = bounded(losses, level)
        return (float(losses.mean()) if len(y) else np.nan, *ends)
    if name == "log" and chances is not None:
        return (float(log_loss(y, chances, labels=np.arange(K))) if len(y) else np.nan, np.nan, np.nan)
    return None


def bounded(losses: Floats, level: float) -> tuple[float, float]:
    """The interval of a mean of numbers in [0, 1]: where n·kl(mean, p) reaches log(2 / (1 − level)) on either side."""
    n = len(losses)
    if not n:
        return 0.0, 1.0
    mean, reach = float(np.clip(losses.mean(), 0.0, 1.0)), np.log(2 / (1 - level)) / n

    def beyond(p: float) -> float:
        return float(entropy([mean, 1 - mean], [p, 1 - p]) - reach)

    # kl is infinite at 0 and 1, where a root finder cannot begin
    tiny = 1e-15
    low = 0.0 if mean <= tiny else brentq(beyond, tiny, mean, xtol=1e-14)
    high = 1.0 if mean >= 1 - tiny else brentq(beyond, mean, 1 - tiny, xtol=1e-14)
    return float(low), float(high)


def interval(right: int, n: int, level: float) -> tuple[float, float]:
    """The exact interval of a proportion; (0, 1) without any observation."""
    if not n:
        return 0.0, 1.0
    found = binomtest(right, n).proportion_ci(level, method="exact")
    return float(found.low), float(found.high)

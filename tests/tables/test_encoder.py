"""The encoder against scikit-learn's own, for one trial and for many, dense and sparse."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, OneHotEncoder, StandardScaler

from evenhand.tables.encoder import Coded, Encoder, Layout
from evenhand.tables.reading import read
from evenhand.tables.schema import Columns, infer

NUMBERS, TEXTS = ["a", "b"], ["k", "many"]
SCALERS = {"standard": StandardScaler, "minmax": MinMaxScaler, "none": FunctionTransformer}


def frame(n: int = 60, seed: int = 0, gaps: float = 0.0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    found = pd.DataFrame(
        {
            "a": rng.normal(3, 2, n),
            "k": rng.choice(["p", "q", "r"], n),
            "b": rng.exponential(1e-3, n),
            "many": rng.choice([f"v{k}" for k in range(30)], n),
        }
    )
    return found.mask(rng.random(found.shape) < gaps, None) if gaps else found


def typed(data: pd.DataFrame) -> pa.Table:
    return infer(read(data), Columns.of(max_categories=1000)).read(read(data).read()).refuse("t")


def dense(X: Any) -> np.ndarray:
    return np.asarray(X if isinstance(X, np.ndarray) else X.toarray())


@pytest.mark.parametrize("scale", SCALERS)
@pytest.mark.parametrize("texts", [["k"], ["k", "many"]], ids=["dense", "sparse"])
def test_it_is_scikit_learns(scale: Any, texts: list[str]) -> None:
    train, new = frame()[[*NUMBERS, *texts]], frame(seed=5)[[*NUMBERS, *texts]]
    layout = Layout.of(typed(train))
    encoder = Encoder.fit(layout, [layout.code(typed(train))], scale=scale)
    assert encoder.dense == (texts == ["k"])
    numbers = SCALERS[scale]().fit(train[NUMBERS])
    hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False).fit(train[texts])
    for rows in (train, new):
        expected = np.hstack([np.asarray(numbers.transform(rows[NUMBERS])), hot.transform(rows[texts])])
        np.testing.assert_allclose(dense(encoder(typed(rows))), expected, atol=1e-12)
    assert layout.names == [*NUMBERS, *(f"{c}={v}" for c, vs in zip(texts, hot.categories_, strict=True) for v in vs)]


@pytest.mark.parametrize("fill", ["category", "median"])
def test_missing_values_are_marked(fill: Any) -> None:
    train = frame(200, gaps=0.2)
    layout = Layout.of(typed(train))
    found = dense(Encoder.fit(layout, [layout.code(typed(train))], fill=fill)(typed(train)))
    plain = train[NUMBERS].astype(float)
    scaler = StandardScaler().fit(plain)
    imputed = SimpleImputer(strategy="median" if fill == "median" else "mean").fit_transform(plain)
    np.testing.assert_allclose(found[:, :2], scaler.transform(pd.DataFrame(imputed, columns=NUMBERS)), atol=1e-12)
    np.testing.assert_array_equal(found[:, 2:4], MissingIndicator(features="all").fit_transform(plain))
    where = [layout.names.index("k=(missing)"), layout.names.index("many=(missing)")]
    np.testing.assert_array_equal(found[:, where], train[TEXTS].isna())


def test_a_trial_is_encoded_by_its_own_rows() -> None:
    table = typed(frame(90))
    layout = Layout.of(table)
    coded = layout.code(table)
    parts = [coded[:30], coded[30:60], coded[60:]]
    together = Encoder.fit(layout, parts)
    for trial, rows in enumerate(parts):
        alone = Encoder.fit(layout, [rows])
        one = alone.encode(coded, np.zeros(len(coded), dtype=np.int64))
        np.testing.assert_array_equal(dense(together.encode(coded, np.full(len(coded), trial))), dense(one))
        np.testing.assert_array_equal(dense(together.of(trial)(table)), dense(one))
    mixed = np.repeat([0, 1, 2], 30)
    np.testing.assert_array_equal(
        dense(together.encode(coded, mixed)),
        np.concatenate([dense(Encoder.fit(layout, [p]).encode(p, np.zeros(30, dtype=np.int64))) for p in parts]),
    )
    np.testing.assert_array_equal(Coded.joined(parts).numbers, coded.numbers)


def test_a_rule_is_folded_into_unscaled_rows() -> None:
    table = typed(frame(80, gaps=0.2))
    layout = Layout.of(table)
    coded = layout.code(table)
    encoder = Encoder.fit(layout, [coded[:40], coded[40:]], fill="median")
    rng = np.random.default_rng(1)
    coef, intercept = rng.normal(size=(2, layout.width)), rng.normal(size=2)
    unscaled, shift, gap = encoder.fold(np.array([0, 1]), coef, intercept)
    plain = Encoder.fit(layout, [coded], scale="none")
    X = dense(plain.encode(coded, np.zeros(len(coded), dtype=np.int64)))
    holes = np.isnan(coded.numbers)
    X[:, : len(layout.numbers)][holes] = 0.0
    for trial in (0, 1):
        expected = dense(encoder.encode(coded, np.full(len(coded), trial))) @ coef[trial] + intercept[trial]
        np.testing.assert_allclose(X @ unscaled[trial] + shift[trial] + holes @ gap[trial], expected, atol=1e-9)


def test_days_and_truth_are_numbers() -> None:
    data = pd.DataFrame({"d": ["2026-11-30", "2026-12-01", "2026-12-01T12:00:00"], "f": ["yes", "no", "yes"]})
    layout = Layout.of(typed(data))
    found = Encoder.fit(layout, [layout.code(typed(data))], scale="none")(typed(data))
    np.testing.assert_allclose(found[:, 0] - found[0, 0], [0, 1, 1.5])
    np.testing.assert_array_equal(found[:, 1], [1, 0, 1])


@settings(max_examples=60)
@given(st.integers(0, 2**31), st.floats(0, 0.6), st.sampled_from(["category", "median"]), st.sampled_from([*SCALERS]))
def test_it_is_stored_as_plain_values(seed: int, gaps: float, fill: Any, scale: Any) -> None:
    table = typed(frame(12, seed, gaps))
    layout = Layout.of(table)
    encoder = Encoder.fit(layout, [layout.code(table)], fill=fill, scale=scale)
    again = Encoder.from_json(json.loads(json.dumps(encoder.to_json())))
    assert again.layout == layout
    new = typed(frame(30, seed + 1)).select(table.column_names)
    np.testing.assert_array_equal(dense(again(new)), dense(encoder(new)))
    assert np.isfinite(dense(encoder(new))).all()
    with pytest.raises(ValueError, match="do not fit"):
        Encoder.from_json({**encoder.to_json(), "low": [0.0] * 9})

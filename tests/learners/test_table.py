"""`TableLearner` against scikit-learn's own encoders, with gaps and values never seen, and stored."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

import evenhand as eh
from evenhand.errors import InputError
from evenhand.learners.parsing import describe_learner, parse_learner
from evenhand.learners.storing import dump_model, load_model
from evenhand.learners.table import TableEncoder, TableLearner

NUMBERS, TEXTS = ["age", "score", "whole"], ["city", "job"]


def frame(n: int = 200, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.normal(40, 12, n),
            "score": rng.exponential(1e-3, n),
            "whole": rng.integers(0, 9, n),
            "city": rng.choice(["Berlin", "Wien", "Zürich", "ירושלים"], n),
            "job": rng.choice(["a", "b"], n),
        }
    )


def labels(X: pd.DataFrame, classes: int = 2, seed: int = 1) -> Any:
    rng = np.random.default_rng(seed)
    slope = (X["age"] - 40) / 12 + (X["city"] == "Wien") + rng.normal(size=len(X))
    return np.array(["no", "yes", "unsure"])[np.digitize(slope, [0.0, 1.0][: classes - 1])]


def reference(C: float) -> Pipeline:
    """The same model put together from scikit-learn."""
    encode = ColumnTransformer(
        [
            ("numbers", StandardScaler(), NUMBERS),
            ("texts", OneHotEncoder(handle_unknown="ignore", sparse_output=False), TEXTS),
        ]
    )
    return Pipeline([("encode", encode), ("classify", LogisticRegression(C=C, tol=1e-10, max_iter=10_000))])


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("C", [0.05, 1.0, 20.0])
def test_it_is_standardised_numbers_and_one_hot_text(C: float, classes: int) -> None:
    X, new = frame(), frame(seed=7)
    y = labels(X, classes)
    ours, theirs = TableLearner(C=C).fit(X, y), reference(C).fit(X, y)
    assert list(ours.classes) == list(theirs.classes_)
    np.testing.assert_allclose(ours.predict_proba(new), theirs.predict_proba(new), atol=1e-5)
    assert (ours.predict(new) == theirs.predict(new)).mean() > 0.99
    np.testing.assert_allclose(ours.predict_log_proba(new), np.log(ours.predict_proba(new)))


def test_weights_are_those_of_scikit_learn() -> None:
    X, y = frame(), labels(frame())
    weight = np.random.default_rng(3).integers(1, 4, len(y)).astype(float)
    ours = TableLearner().fit(X, y, weight)
    theirs = reference(1.0).fit(X, y, classify__sample_weight=weight)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("value", [0.1, 1e-3, 12345.678, 7.0, 0.0])
def test_a_column_that_never_changes_says_nothing(value: float) -> None:
    """The mean of equal numbers is off by rounding, so that their spread is tiny, not 0."""
    X, y = frame().assign(score=value), labels(frame())
    new = frame(seed=7).assign(score=value * 1.01 + 0.01)
    ours, theirs = TableLearner().fit(X, y), reference(1.0).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
    np.testing.assert_allclose(ours.predict_proba(new), theirs.predict_proba(new), atol=1e-5)


def test_a_missing_number_is_the_mean_and_says_so() -> None:
    X = pd.DataFrame({"x": [1.0, 2.0, np.nan, 4.0], "n": [1, np.nan, 3, 5]})
    encoder = TableEncoder.fit(X)
    encoded = encoder(X)
    assert encoder.encoder.layout.names == ["x", "n", "x=(missing)", "n=(missing)"]
    seen = np.array([1.0, 2.0, 4.0])
    np.testing.assert_allclose(
        encoded[:, 0], [*((seen[:2] - seen.mean()) / seen.std()), 0.0, (4 - seen.mean()) / seen.std()]
    )
    np.testing.assert_array_equal(encoded[:, 2], [0, 0, 1, 0])
    np.testing.assert_array_equal(encoded[:, 3], [0, 1, 0, 0])
    assert np.isfinite(encoded).all()


def test_a_missing_text_is_a_value_of_its_own() -> None:
    X = pd.DataFrame({"t": ["a", None, "b", np.nan, "a"]})
    np.testing.assert_array_equal(TableEncoder.fit(X)(X).sum(axis=0), [2, 1, 2])
    np.testing.assert_array_equal(TableEncoder.fit(X)(X).sum(axis=1), np.ones(5))


def test_missing_values_as_pandas_writes_them() -> None:
    X = pd.DataFrame(
        {
            "n": pd.array([1, None, 3], dtype="Int64"),
            "t": pd.array(["a", None, "b"], dtype="string"),
            "b": pd.array([True, None, False], dtype="boolean"),
        }
    )
    plain = pd.DataFrame({"n": [1.0, np.nan, 3.0], "t": ["a", None, "b"], "b": [True, None, False]})
    np.testing.assert_array_equal(TableEncoder.fit(X)(X), TableEncoder.fit(plain)(plain))


def test_missing_values_can_be_learned_from() -> None:
    rng = np.random.default_rng(0)
    X = frame()
    gone = rng.random(len(X)) < 0.5
    X.loc[gone, "age"], X.loc[gone, "city"] = np.nan, None
    y = np.where(gone, "gone", "there")
    assert (TableLearner().fit(X, y).predict(X) == y).all()


def test_gaps_only_when_it_predicts() -> None:
    X, y = frame(), labels(frame())
    model = TableLearner().fit(X, y)
    empty = X.iloc[:3].assign(age=np.nan, score=np.nan, city=None, job=None)
    found = model.predict_proba(empty)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=1), 1)


def test_a_value_never_seen_is_none_of_those_known() -> None:
    X, y, new = frame(), labels(frame()), frame(seed=7).assign(city="Paris")
    ours, theirs = TableLearner().fit(X, y), reference(1.0).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(new), theirs.predict_proba(new), atol=1e-5)


@pytest.mark.parametrize(
    "make", [pl.from_pandas, lambda f: pa.Table.from_pandas(f, preserve_index=False)], ids=["polars", "arrow"]
)
def test_the_library_does_not_matter(make: Any) -> None:
    X, y = frame(), labels(frame())
    model = TableLearner().fit(X, y)
    again = TableLearner().fit(make(X), y)
    np.testing.assert_allclose(again.predict_proba(make(X)), model.predict_proba(X), atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(make(X)), model.predict_proba(X), atol=1e-12)


def test_truth_values_categories_and_times_are_values() -> None:
    X = pd.DataFrame(
        {
            "flag": [True, False, True, False],
            "kind": pd.Categorical(["a", "b", "a", "b"], categories=["b", "a", "unused"]),
            "day": pd.to_datetime(["2026-01-01", "2026-01-02"] * 2),
        }
    )
    y = ["yes", "no", "yes", "no"]
    model = TableLearner().fit(X, y)
    # text is one-hot, yes is 1, a time counts in days
    assert model.encoder.encoder.layout.names == ["flag", "day", "kind=a", "kind=b"]
    assert model.predict(X).tolist() == y
    some = model.predict(X.assign(flag=[True, None, None, False]))
    assert some.tolist() == y


def test_columns_go_by_name() -> None:
    X, y = frame(), labels(frame())
    model = TableLearner().fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X[[*reversed(X.columns)]].assign(more=1)), model.predict_proba(X))
    with pytest.raises(ValueError, match="no column 'age'"):
        model.predict(X.drop(columns="age"))


def test_one_class_and_one_row() -> None:
    X = frame(1)
    learner = eh.learners.as_learner(TableLearner())
    assert learner.fit(X, ["yes"]).predict(frame(3)).tolist() == ["yes"] * 3


def test_nothing_is_random_and_nothing_is_carried_over() -> None:
    X, y = frame(), labels(frame())
    one = TableLearner().fit(X, y)
    other = TableLearner().fit(X, y, previous=TableLearner().fit(X.iloc[::-1], y[::-1]), seed=9)
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))


@pytest.mark.parametrize("kind", ["text", "numbers", "truth"])
def test_it_is_stored_and_read_back(kind: str) -> None:
    X, y = frame(), labels(frame())
    X.loc[3, "age"], X.loc[4, "city"] = np.nan, None
    y = {"text": y, "numbers": (y == "yes").astype(int), "truth": y == "yes"}[kind]
    model = TableLearner(C=0.3).fit(X, y)
    form, data = dump_model(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = load_model(form, data)
    assert form == "table"
    assert b"pickle" not in data
    new = frame(seed=7).assign(job=["a", "b", None, "c"] * 50)
    np.testing.assert_array_equal(again.predict_proba(new), model.predict_proba(new))
    assert list(again.classes) == list(model.classes)
    assert [type(c) for c in again.classes.tolist()] == [type(c) for c in model.classes.tolist()]
    assert dump_model(again)[0] == "table"
    assert again.encoder.schema == model.encoder.schema
    assert again.encoder.encoder.layout == model.encoder.encoder.layout


def test_it_is_a_learner_by_name() -> None:
    rng = np.random.default_rng(0)
    X = frame(40).assign(id=[f"e{k}" for k in range(40)], group=rng.choice(["u", "v"], 40))
    c = eh.Campaign(None, "uniform", "table:C=0.5", budget=24, batch=2, seed=0, lease=None)
    c.pool(X)
    while not c.done:
        c.tell_labels({e: "yes" if int(e[1:]) % 2 else "no" for e in c.ask().examples})
    model = c.final_model()
    assert set(model.predict(X)) <= {"yes", "no"}
    assert "id" not in model.encoder.encoder.layout.columns
    assert c.verify().ok


def test_text_is_no_trouble_for_a_campaign_that_is_told_rows() -> None:
    c = eh.Campaign(["u", "v"], "uniform", "table", budget=16, batch=2)
    while not c.done:
        r = c.ask()
        X = frame(r.size, seed=r.id)
        X.loc[0, "age"], X.loc[1, "city"] = np.nan, None
        c.tell(r, X, labels(X), ids=[f"{r.id}-{k}" for k in range(r.size)])
    assert c.status()["learner_failed"] is None
    assert c.certify().version == 1
    assert c.verify().ok


@pytest.mark.parametrize(("scale", "scaler"), [("minmax", MinMaxScaler()), ("none", "passthrough")])
def test_other_scales_are_those_of_scikit_learn(scale: str, scaler: Any) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(3, 2, 80), "b": rng.normal(-1, 5, 80), "same": 4.0})
    y = frame["a"] + rng.normal(size=80) > 3
    model = TableLearner(scale=scale).fit(frame, y)
    by_hand = Pipeline([("scale", scaler), ("classify", LogisticRegression(tol=1e-10, max_iter=10_000))])
    expected = by_hand.fit(frame, y).predict_proba(frame)
    np.testing.assert_allclose(model.predict_proba(frame), expected, atol=2e-4)
    assert describe_learner(TableLearner(C=2.0, scale=scale)) == f"table:C=2.0,scale={scale}"
    assert parse_learner(f"table:scale={scale}") == TableLearner(scale=scale)
    with pytest.raises(InputError, match="scale must be one of"):
        TableLearner(scale="log")


def test_a_pool_sets_the_scale_of_its_learner(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"id": range(40), "group": ["a", "b"] * 20, "x": rng.normal(size=40)})
    url = f"sqlite:///{tmp_path / 'c.db'}"
    c = eh.Campaign.create(url, "c", None, learner="table", budget=20)
    with pytest.raises(InputError, match="scale must be one of"):
        c.pool(frame, scale="log")
    c.pool(frame, scale="minmax")
    assert eh.Campaign.open(url, "c").settings["learner"] == "table:scale=minmax"
    labelling = eh.curate(frame.assign(y=None), "y", ["group"], 20, id="id", scale="none")
    assert labelling.campaign.settings["learner"] == "table:scale=none"
    with pytest.raises(InputError, match="scale has no effect"):
        eh.Campaign(None, learner="logistic", budget=20).pool(frame, scale="minmax")

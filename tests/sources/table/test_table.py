import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler

from evenhand.risks import ERROR, Costs, as_risk
from evenhand.sources.base import RiskStream, Source, Stream
from evenhand.sources.table import stream as table_stream
from evenhand.sources.table.stream import TableStream
from evenhand.sources.table.table import Table
from evenhand.tables.problems import TableError


def people(n: int = 200, seed: int = 0) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    sex = generator.choice(["f", "m"], n)
    sex[:12] = ["f", "m"] * 6
    return pd.DataFrame(
        {
            "age": generator.integers(18, 80, n),
            "income": generator.normal(30, 9, n),
            "city": generator.choice(["Oslo", "Rome", "Lima"], n),
            "sex": sex,
            "y": [0, 1, 1] * 4 + generator.integers(0, 2, n - 12).tolist(),
        }
    )


def everything(stream: TableStream, groups: int, trials: int = 1) -> list[Any]:
    return [stream.draw(np.full(trials, z), np.full(trials, 10**6)) for z in range(groups)]


class Rule:
    """A linear rule as a model that does not tell that it is one."""

    def __init__(self, coef: Any, intercept: float) -> None:
        self.coef, self.intercept = coef, intercept

    def predict(self, X: Any) -> Any:
        return (X @ self.coef + self.intercept > 0).astype(int)


class OpenRule(Rule):
    """The same with its coefficients for all to see."""

    def __init__(self, coef: Any, intercept: float) -> None:
        super().__init__(coef, intercept)
        self.coef_, self.intercept_, self.classes_ = np.array([coef]), np.array([intercept]), np.array([0, 1])

    def predict(self, X: Any) -> Any:
        raise AssertionError("the coefficients say it all")


def test_it_is_a_source() -> None:
    table = Table(people(), label="y", groups="sex")
    assert isinstance(table, Source)
    assert isinstance(table.open(0, [0]), Stream)
    assert isinstance(table.open(0, [0]), RiskStream)


@pytest.mark.parametrize("convert", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_every_frame_gives_the_same_draws(convert: Any) -> None:
    draws = [
        Table(frame, label="y", groups=["sex"]).open(3, [5]).draw(np.array([1]), np.array([8]))
        for frame in (people(), convert(people()))
    ]
    assert draws[0].rows.tolist() == draws[1].rows.tolist()
    np.testing.assert_array_equal(draws[0].X, draws[1].X)
    np.testing.assert_array_equal(draws[0].y, draws[1].y)


@pytest.mark.parametrize("on_disk", [False, True])
def test_files_give_the_same_draws(tmp_path: Path, on_disk: bool) -> None:
    frame = people(500)
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet", row_group_size=64)
    (tmp_path / "folder").mkdir()
    frame[:123].to_parquet(tmp_path / "folder" / "0.parquet")
    frame[123:].to_parquet(tmp_path / "folder" / "1.parquet")
    expected = everything(Table(frame, label="y", groups=["sex", "city"]).open(1, [0, 4]), 6, 2)
    names = ["a.parquet", "folder"] if on_disk else ["a.csv", "a.parquet", "folder"]
    for name in names:
        table = Table(tmp_path / name, label="y", groups=["sex", "city"], on_disk=on_disk)
        for mine, theirs in zip(everything(table.open(1, [0, 4]), 6, 2), expected, strict=True):
            assert mine.rows.tolist() == theirs.rows.tolist()
            np.testing.assert_allclose(mine.X, theirs.X, atol=1e-9)
            np.testing.assert_array_equal(mine.y, theirs.y)


def test_reading_ahead_in_small_steps_changes_no_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = people(400)
    frame.to_parquet(tmp_path / "a.parquet", row_group_size=50)
    expected = everything(Table(frame, label="y", groups="sex").open(2, [0, 1]), 2, 2)
    monkeypatch.setattr(table_stream, "READ_AHEAD", 8)
    stream = Table(tmp_path / "a.parquet", label="y", groups="sex", on_disk=True).open(2, [0, 1])
    for z, whole in enumerate(expected):
        for trial in (0, 1):
            own = whole.trial == trial
            group = np.where(np.arange(2) == trial, z, -1)
            parts = [stream.draw(group, np.full(2, 7)) for _ in range(40)]
            assert np.concatenate([part.rows for part in parts]).tolist() == whole.rows[own].tolist()
            assert np.concatenate([part.validation for part in parts]).tolist() == whole.validation[own].tolist()
            assert np.concatenate([part.y for part in parts]).tolist() == whole.y[own].tolist()
    assert not stream.left().any()


def test_rows_are_those_of_the_frame() -> None:
    frame = people()
    table = Table(frame, label="y", groups="sex", test=None)
    drawn = table.open(0, [0]).draw(np.array([1]), np.array([30]))
    picked = frame.iloc[drawn.rows]
    assert (picked["sex"] == "m").all()
    assert picked["y"].tolist() == table.classes[drawn.y].tolist()
    assert table.take(drawn.rows).to_pandas()["age"].tolist() == picked["age"].tolist()


SCALERS = {"standard": StandardScaler(), "minmax": MinMaxScaler(), "none": FunctionTransformer()}


@pytest.mark.parametrize("scale", [None, *SCALERS])
def test_numbers_and_categories_follow_the_training_rows_only(scale: Any) -> None:
    frame = people()
    frame["same"] = 0.1 + 0.2
    table = Table(frame, label="y", groups="sex", **({} if scale is None else {"scale": scale}))
    drawn = everything(table.open(0, [0]), 2)
    rows = np.concatenate([d.rows for d in drawn])
    X = np.concatenate([d.X for d in drawn])
    trains = ~np.concatenate([d.validation for d in drawn])
    numbers = ["age", "income", "same"]
    scaler = SCALERS[scale or "standard"].fit(frame[numbers].iloc[rows[trains]])
    expected = np.asarray(scaler.transform(frame[numbers].iloc[rows]))
    np.testing.assert_allclose(X[:, [table.feature_names.index(name) for name in numbers]], expected, atol=1e-12)
    for city in ("Oslo", "Rome", "Lima"):
        there = (frame["city"].to_numpy()[rows] == city).astype(float)
        np.testing.assert_array_equal(X[:, table.feature_names.index(f"city={city}")], there)


def test_changing_rows_that_validate_or_test_changes_nothing_for_the_others() -> None:
    frame = people()
    before = everything(Table(frame, label="y", groups="sex").open(0, [0]), 2)
    trained = np.concatenate([d.rows[~d.validation] for d in before])
    others = np.setdiff1d(np.arange(len(frame)), trained)
    frame.loc[others, "age"] = 1000
    frame.loc[others, "city"] = "Atlantis"
    table = Table(frame, label="y", groups="sex")
    keep = [i for i, name in enumerate(table.feature_names) if name != "city=Atlantis"]
    for old, new in zip(before, everything(table.open(0, [0]), 2), strict=True):
        np.testing.assert_array_equal(old.X[~old.validation], new.X[~new.validation][:, keep])
        assert (new.X[new.validation][:, 2:] == 0).all()


@pytest.mark.parametrize("fill", ["category", "median"])
def test_missing_values(fill: Any) -> None:
    frame = people()
    frame.loc[::5, "income"] = np.nan
    frame.loc[::7, "city"] = None
    table = Table(frame, label="y", groups="sex", fill=fill, test=None, scale="minmax")
    drawn = everything(table.open(0, [0]), 2)
    rows = np.concatenate([d.rows for d in drawn])
    X = np.concatenate([d.X for d in drawn])
    trains = ~np.concatenate([d.validation for d in drawn])
    names = table.feature_names
    assert X[:, names.index("city=(missing)")].tolist() == frame["city"].isna().to_numpy()[rows].astype(float).tolist()
    gone = frame["income"].isna().to_numpy()[rows]
    assert X[:, names.index("income=(missing)")].tolist() == gone.astype(float).tolist()
    income = frame["income"].to_numpy()[rows][trains]
    filled = np.nanmedian(income) if fill == "median" else np.nanmin(income)
    expected = (filled - np.nanmin(income)) / (np.nanmax(income) - np.nanmin(income))
    np.testing.assert_allclose(X[gone, names.index("income")], expected)


def test_group_columns_are_features_only_when_asked() -> None:
    assert not any("sex" in name for name in Table(people(), label="y", groups="sex").feature_names)
    table = Table(people(), label="y", groups="sex", use_group_as_feature=True)
    assert {"sex=f", "sex=m"} <= set(table.feature_names)
    assert "group columns (sex) are also features" in table.notes


def test_intersections_and_bins() -> None:
    frame = people()
    frame.loc[frame["sex"] == "f", "city"] = "Oslo"
    table = Table(frame, label="y", groups=["sex", "city"])
    assert table.groups == ("sex=f, city=Oslo", "sex=m, city=Lima", "sex=m, city=Oslo", "sex=m, city=Rome")
    assert set(table.empty_groups) == {"sex=f, city=Rome", "sex=f, city=Lima"}
    assert "no row of 'sex=f, city=Rome'" in table.notes
    frame = frame.drop(frame[(frame["sex"] == "m") & (frame["city"] == "Rome")].index[3:])
    assert any(
        "3 rows of 'sex=m, city=Rome': too few" in n for n in Table(frame, label="y", groups=["sex", "city"]).notes
    )
    binned = Table(frame, label="y", groups=["age:25,65"])
    assert binned.groups == ("under 25", "25 to under 65", "65 and over")
    ages = frame["age"].to_numpy()
    assert binned.counts.tolist() == [(ages < 25).sum(), ((ages >= 25) & (ages < 65)).sum(), (ages >= 65).sum()]
    np.testing.assert_allclose(binned.population.sum(), 1)


def test_ordered_categories_give_the_order_of_groups_but_not_of_labels() -> None:
    frame = people()
    frame["sex"] = pd.Categorical(frame["sex"], categories=["m", "x", "f"], ordered=True)
    frame["y"] = pd.Categorical(frame["y"].map({0: "no", 1: "yes"}), categories=["yes", "no"], ordered=True)
    table = Table(frame, label="y", groups="sex")
    assert table.groups == ("m", "f")
    assert table.classes.tolist() == ["no", "yes"]


def test_excluded_groups_are_never_drawn() -> None:
    frame = people()
    frame.loc[0, "city"] = "Nuuk"
    table = Table(frame, label="y", groups="city", exclude=["Nuuk"], test=None)
    assert table.groups == ("Lima", "Oslo", "Rome")
    assert all(0 not in d.rows for d in everything(table.open(0, [0]), 3))


def test_a_group_that_runs_out_says_so() -> None:
    frame = people()
    table = Table(frame, label="y", groups="sex", test=None)
    stream = table.open(0, [0, 1])
    size = int(table.counts[0])
    assert stream.left().tolist() == [table.counts.tolist()] * 2
    drawn = stream.draw(np.array([0, -1]), np.array([size - 1, 5]))
    assert set(drawn.trial) == {0}
    assert stream.left()[0, 0] == 1
    assert len(stream.draw(np.array([0, -1]), np.array([2, 0])).rows) == 1
    assert stream.left()[0, 0] == 0
    assert len(stream.draw(np.array([0, -1]), np.array([2, 0])).rows) == 0


def test_halves_go_on_without_end() -> None:
    stream = Table(people(), label="y", groups="sex", replace="halves").open(0, [0])
    assert stream.left() is None
    drawn = stream.draw(np.array([0]), np.array([5000]))
    assert len(drawn.rows) == 5000
    assert not set(drawn.rows[drawn.validation]) & set(drawn.rows[~drawn.validation])


def test_draws_do_not_depend_on_rounds_or_on_the_block() -> None:
    table = Table(people(), label="y", groups="sex")
    whole = table.open(0, [3]).draw(np.array([1]), np.array([40]))
    stream = table.open(0, [1, 3])
    parts = [stream.draw(np.array([0, 1]), np.array([3, k])) for k in (1, 7, 12, 20)]
    mine = [part.trial == 1 for part in parts]
    rows = np.concatenate([part.rows[m] for part, m in zip(parts, mine, strict=True)])
    X = np.concatenate([part.X[m] for part, m in zip(parts, mine, strict=True)])
    assert rows.tolist() == whole.rows.tolist()
    np.testing.assert_array_equal(X, whole.X)


@pytest.mark.parametrize("kind", ["share", "given"])
@pytest.mark.parametrize("classes", [2, 3])
def test_accuracy_is_that_of_the_model_on_the_test_rows(kind: str, classes: int) -> None:
    frame = people(400)
    frame.loc[::9, "income"] = np.nan
    if classes == 3:
        frame["y"] = np.random.default_rng(5).integers(0, 3, len(frame))
    frame["many"] = np.random.default_rng(1).choice(list("abcdefghijklmnopqrstuvwxyz"), len(frame))
    test: Any = 0.25 if kind == "share" else frame[300:]
    table = Table(frame if kind == "share" else frame[:300], label="y", groups="sex", test=test)
    stream = table.open(0, [0, 1])
    generator = np.random.default_rng(2)
    coef, intercept = generator.normal(size=(2, len(table.feature_names))), generator.normal(size=2)
    models = [Rule(c, b) for c, b in zip(coef, intercept, strict=True)]
    found = stream.accuracies(models)
    assert found.shape == (2, 2)
    if classes == 2:
        open_rules = [OpenRule(c, b) for c, b in zip(coef, intercept, strict=True)]
        np.testing.assert_allclose(stream.accuracies(open_rules), found)
        mixed = stream.accuracies([models[0], open_rules[1]])
        np.testing.assert_allclose(mixed, found)
        np.testing.assert_array_equal(np.isnan(stream.accuracies([None, models[1]])), [[True] * 2, [False] * 2])
        for risk in (as_risk("fnr", 1), as_risk("fpr", 1), as_risk("balanced"), Costs([[0, 2], [1, 0]])):
            measure = risk.for_classes([0, 1])
            np.testing.assert_allclose(
                stream.accuracies_and_risks(open_rules, measure),
                stream.accuracies_and_risks(models, measure),
                atol=1e-12,
            )
        np.testing.assert_allclose(stream.accuracies_and_risks(open_rules, ERROR.for_classes([0, 1]))[1], 1 - found)
    if kind == "given":
        z = np.repeat([0, 1], [(test["sex"] == "f").sum(), (test["sex"] == "m").sum()])
        y = test.sort_values("sex", kind="stable")["y"].to_numpy()
        part = stream.tests()[0]
        assert part.y.tolist() == y.tolist()
        assert part.counts.tolist() == np.bincount(z).tolist()


def test_a_group_without_test_rows_is_nan() -> None:
    frame = people()
    test = people(seed=5)
    table = Table(frame, label="y", groups="sex", test=test[test["sex"] == "f"])
    found = table.open(0, [0]).accuracies([Rule(np.zeros(len(table.feature_names)), 1.0)])
    assert np.isnan(found).tolist() == [[False, True]]
    assert "no test row of group 'm'" in table.notes
    assert np.isnan(Table(frame, label="y", groups="sex", test=None).open(0, [0]).accuracies([Rule([], 0)])).all()


def test_an_unseen_category_at_test_counts_as_none_and_is_named() -> None:
    test = people(30, seed=1)
    test.loc[3, "city"] = "Atlantis"
    with pytest.raises(TableError, match=r"'city' has values never seen in the pool \('Atlantis'\).*unseen='ignore'"):
        Table(people(), label="y", groups="sex", test=test)
    table = Table(people(), label="y", groups="sex", test=test, unseen="ignore")
    assert any("Atlantis" in note for note in table.notes)


def test_another_validation_share() -> None:
    table = Table(people(), label="y", groups="sex", test=None)
    drawn = table.with_validation(0.25).open(0, [0]).draw(np.array([0]), np.array([80]))
    assert drawn.validation.sum() == 20
    assert table.validation == 0.5


def test_sparse_and_dense_features_agree_with_scikit_learn() -> None:
    frame = people(300)
    frame["letters"] = np.random.default_rng(0).choice([f"k{i}" for i in range(40)], len(frame))
    table = Table(frame, label="y", groups="sex", test=None, scale="minmax", scale_by="pool")
    drawn = everything(table.open(0, [0]), 2)
    X = np.concatenate([d.X.toarray() for d in drawn])
    rows = np.concatenate([d.rows for d in drawn])
    picked = frame.iloc[rows]
    scaled = (picked[["age", "income"]] - frame[["age", "income"]].min()) / np.ptp(frame[["age", "income"]], axis=0)
    expected = pd.concat([scaled, pd.get_dummies(picked[["city", "letters"]], dtype=float)], axis=1)
    np.testing.assert_allclose(X, expected.to_numpy())
    assert LogisticRegression().fit(X, picked["y"]).score(X, picked["y"]) > 0.5


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_row_ever_has_two_roles(data: st.DataObject) -> None:
    n = data.draw(st.integers(12, 80))
    generator = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    m = data.draw(st.integers(1, 4))
    frame = pd.DataFrame(
        {
            "a": generator.normal(size=n),
            "b": generator.choice(list("xyz"), n),
            "g": np.r_[np.repeat(np.arange(m), 2), generator.integers(0, m, n - 2 * m)],
            "y": np.r_[[0, 0, 1, 1], generator.integers(0, 2, n - 4)],
        }
    )
    test = data.draw(st.sampled_from([None, 0.1, 0.3, 0.6]))
    replace = data.draw(st.sampled_from(["never", "halves"]))
    share = data.draw(st.sampled_from([0.2, 0.5, 0.8]))
    table = Table(frame, label="y", groups="g", test=test, replace=replace, validation=share)
    stream = table.open(data.draw(st.integers(0, 100)), [0, 7])
    role: dict[tuple[int, int], str] = {}
    draws = data.draw(st.lists(st.tuples(st.integers(-1, m - 1), st.integers(1, 9)), max_size=30))
    for (z1, k1), (z2, k2) in itertools.pairwise(draws):
        drawn = stream.draw(np.array([z1, z2]), np.array([k1, k2]))
        for trial, row, validates in zip(drawn.trial, drawn.rows, drawn.validation, strict=True):
            new = (trial, row) not in role
            assert role.setdefault((trial, row), str(validates)) == str(validates)
            assert new or replace == "halves"
    for trial in (0, 1):
        held_out = {row for z in range(m) for row in table._pool.by_group[z][stream._orders[trial][z].test].tolist()}
        assert not held_out & {row for t, row in role if t == trial}
        if test and replace == "never":
            assert len(held_out) == sum(stream.tests()[trial].counts)

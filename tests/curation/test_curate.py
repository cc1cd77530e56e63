import json
import os
import signal
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fairlearn.metrics import MetricFrame, count
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ttest_1samp
from sklearn.metrics import accuracy_score

from evenhand.curation.curate import Curated, curate
from evenhand.curation.model import CuratedModel
from evenhand.datasets import load
from evenhand.learners import Logistic
from evenhand.sources.table.table import Table
from evenhand.strategies import Optimistic


def pool(n: int = 300, seed: int = 0) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    hard = generator.random(n) < 0.3
    x = generator.normal(size=(n, 2))
    y = np.where(hard, x[:, 0] * x[:, 1] > 0, x[:, 0] > 0)
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "sex": np.where(hard, "f", "m")})
    return frame.assign(y=np.where(y, "yes", "no"), city=generator.choice(["Rome", "Oslo"], n))


def curated(data: Any = None, **given: Any) -> Curated:
    data = pool() if data is None else data
    return curate(data, **({"label": "y", "groups": "sex", "budget": 60, "compare": 0} | given))


def test_rows_carry_their_columns_and_what_happened_to_them() -> None:
    frame = pool()
    found = curated(frame)
    rows = found.rows
    assert list(rows.columns) == [*frame.columns, "row", "round", "role", "group"]
    assert len(rows) == 60
    assert rows["row"].is_unique
    pd.testing.assert_frame_equal(frame.iloc[rows["row"]], rows[frame.columns])
    assert (rows["group"] == rows["sex"]).all()
    assert rows["role"].value_counts().to_dict() == {"train": 30, "validation": 30}
    assert rows.groupby("round").size().eq(2).all()


@pytest.mark.parametrize("kind", [pl.from_pandas, pa.Table.from_pandas, lambda f: pl.from_pandas(f).lazy()])
def test_rows_are_of_the_type_given(kind: Any) -> None:
    given = kind(pool())
    rows = curated(given).rows
    expected = pl.DataFrame if isinstance(given, pl.LazyFrame) else type(given)
    assert isinstance(rows, expected)
    as_pandas = rows.to_pandas()
    assert as_pandas["row"].tolist() == curated().rows["row"].tolist()
    assert as_pandas["role"].tolist() == curated().rows["role"].tolist()


def test_files_give_pandas_rows(tmp_path: Path) -> None:
    pool().to_csv(tmp_path / "pool.csv", index=False)
    pool().to_parquet(tmp_path / "pool.parquet")
    expected = curated().rows["row"].tolist()
    for name in ("pool.csv", "pool.parquet"):
        rows = curated(tmp_path / name).rows
        assert isinstance(rows, pd.DataFrame)
        assert rows["row"].tolist() == expected
    assert curated(tmp_path / "pool.parquet", on_disk=True).rows["row"].tolist() == expected


def test_columns_of_the_same_name_are_left_alone() -> None:
    frame = pool().assign(row="mine")
    rows = curated(frame, ignore=["row"]).rows
    assert set(rows["row"]) == {"mine"}
    assert rows["evenhand_row"].is_unique


def test_the_run_is_the_first_trial_of_the_simulation() -> None:
    found = curated(compare=2, budget=80)
    final = found.result.final
    own = final[(final["strategy"] == "optimistic") & (final["trial"] == 0)].set_index("group")
    np.testing.assert_allclose(found.by_group["accuracy"], own["chosen_test_accuracy"])
    trained = found.rows[found.rows["role"] == "train"]["group"].value_counts(normalize=True)
    np.testing.assert_allclose(own["mixture"], trained[own.index])
    assert list(found.result.labels) == ["optimistic", "uniform", "uncurated"]


def test_by_group_reads_like_fairlearn() -> None:
    frame = pool(2000)
    found = curated(frame)
    rows = found.test_rows
    truth, predicted = rows["y"], rows["predicted"]
    expected = MetricFrame(
        metrics={"accuracy": accuracy_score, "count": count},
        y_true=truth,
        y_pred=predicted,
        sensitive_features=rows["sex"],
    )
    table = found.by_group
    assert table.index.name == "group"
    assert table.index.tolist() == ["f", "m"]
    assert list(table.columns[:7]) == ["accuracy", "low", "high", "count", "train", "validation", "pool"]
    np.testing.assert_allclose(table["accuracy"], expected.by_group["accuracy"])
    np.testing.assert_array_equal(table["count"], expected.by_group["count"])
    assert found.overall["accuracy"] == pytest.approx(expected.overall["accuracy"])
    assert table["pool"].sum() == len(frame)
    several = curated(frame, groups=["sex", "city"]).by_group
    assert several.index[0] == "sex=f, city=Oslo"


def test_the_model_takes_rows_as_they_are_and_reads_back_from_its_file(tmp_path: Path) -> None:
    frame = pool(600).assign(a=lambda f: f["a"].where(f["a"] > -1), city=lambda f: f["city"].where(f["b"] < 1))
    found = curated(frame)
    rows = found.test_rows
    assert found.model.predict(rows).tolist() == rows["predicted"].tolist()
    found.model.save(tmp_path / "model.zip")
    again = CuratedModel.load(tmp_path / "model.zip")
    np.testing.assert_array_equal(again.predict_proba(frame), found.model.predict_proba(frame))
    shuffled = pl.from_pandas(frame[["city", "b", "a"]])
    assert again.predict(shuffled).tolist() == found.model.predict(frame).tolist()
    unknown = frame.assign(city="Lima").head(3)
    assert len(again.predict(unknown)) == 3
    with pytest.raises(ValueError, match="no column 'a'"):
        again.predict(frame[["city", "b"]])
    with pytest.raises(ValueError, match="holds no model"):
        CuratedModel.load(tmp_path / "nothing.zip")


def test_a_scikit_learn_model_is_stored_without_a_pickle(tmp_path: Path) -> None:
    from sklearn.linear_model import LogisticRegression

    found = curated(learner=LogisticRegression())
    found.save(tmp_path / "train.parquet")
    with zipfile.ZipFile(tmp_path / "train.model.zip") as archive:
        assert set(archive.namelist()) == {"about.json", "schema.json", "encoder.json", "classifier.skops"}
    again = CuratedModel.load(tmp_path / "train.model.zip")
    assert again.predict(pool()).tolist() == found.model.predict(pool()).tolist()


class _Constant:
    """A learner whose model nobody can store."""

    def fit(self, X: Any, y: Any, *, previous: Any = None, seed: int = 0) -> Any:
        class Model:
            classes = np.array(["no", "yes"])

            def predict(self, X: Any) -> Any:
                return np.full(X.shape[0], "yes")

        return Model()


def test_a_model_that_cannot_be_stored_is_named_in_the_report(tmp_path: Path) -> None:
    found = curated(learner=_Constant())
    written = found.save(tmp_path / "train.parquet")
    assert not any("model" in path.name for path in written)
    assert any("cannot be stored" in note for note in found.summary["notes"])
    assert found.by_group["mean_prediction"].isna().all() if "mean_prediction" in found.by_group else True


def test_test_rows_are_neither_trained_on_nor_validated_on(tmp_path: Path) -> None:
    frame = pool(400)
    found = curated(frame, test=0.25)
    rows, test = found.rows, found.test_rows
    assert not set(rows["row"]) & set(test["row"])
    pd.testing.assert_frame_equal(frame.iloc[test["row"]], test[frame.columns])
    assert test["group"].value_counts().to_dict() == found.by_group["count"].astype(int).to_dict()
    own = curated(frame.iloc[:300], test=frame.iloc[300:])
    assert sorted(own.test_rows["row"]) == list(range(100))
    assert (own.test_rows["a"].to_numpy() == frame.iloc[300:]["a"].to_numpy()[own.test_rows["row"]]).all()


def test_every_column_of_the_comparison_comes_from_the_same_trials() -> None:
    found = curated(pool(1500), compare=4, budget=80)
    comparison, final = found.summary["comparison"], found.result.final
    assert comparison["trials"] == 4
    assert comparison["rules"] == ["optimistic", "uniform", "uncurated"]
    by_trial = 1 - final.pivot_table(index="trial", columns=["strategy", "group"], values="chosen_test_accuracy")
    for rule in comparison["rules"]:
        for group in ("f", "m"):
            assert comparison["by_group"][rule][group]["mean"] == pytest.approx(by_trial[rule][group].mean())
            assert comparison["by_group"][rule][group]["sd"] == pytest.approx(by_trial[rule][group].std())
        assert comparison["worst"][rule]["mean"] == pytest.approx(by_trial[rule].max(axis=1).mean())
    for difference in comparison["differences"]:
        d = by_trial[difference["b"]].max(axis=1) - by_trial["optimistic"].max(axis=1)
        interval = ttest_1samp(d, 0).confidence_interval(0.975)  # two comparisons: each at half of 5 %
        assert (difference["low"], difference["high"]) == (pytest.approx(interval.low), pytest.approx(interval.high))


@pytest.mark.parametrize("risk", ["fnr", "fpr", "balanced", "log", "costs:0,1;5,0"])
def test_another_risk_is_the_one_everywhere(risk: str) -> None:
    found = curated(pool(1200), risk=risk, positive="no", compare=2, budget=80)
    rows, summary = found.test_rows, found.summary
    truth, said, chance = rows["y"] == "no", rows["predicted"] == "no", found.model.predict_proba(rows)
    cost = np.select([truth & ~said, ~truth & said], [0.2, 1.0], 0.0)  # 1 and 5, scaled by the dearest
    values = {"fnr": ~said, "fpr": said, "log": -np.log(np.where(truth, chance[:, 0], chance[:, 1])), "costs": cost}
    relevant = {"fnr": truth, "fpr": ~truth}.get(risk, truth | True)
    for group, row in found.by_group.iterrows():
        part = (rows["group"] == group) & relevant
        if risk == "balanced":
            expected = np.mean([(truth != said)[part & (truth == t)].mean() for t in (True, False)])
        else:
            expected = np.mean(np.asarray(values[risk.split(":")[0]])[part])
        assert row["risk"] == pytest.approx(expected)
        assert row["relevant"] == part.sum()
    assert summary["worst"]["group"] == found.by_group["risk"].idxmax()
    assert found.by_group.loc["f", "false_negative_rate"] == pytest.approx(
        np.mean(~said[truth & (rows["group"] == "f")])
    )
    own = found.result.final.query("strategy == 'optimistic' and trial == 0").set_index("group")["chosen_test_risk"]
    np.testing.assert_allclose(found.by_group["risk"], own)
    worst = found.result.final.groupby(["strategy", "trial"])["chosen_test_risk"].max().groupby("strategy").mean()
    assert summary["comparison"]["worst"]["uniform"]["mean"] == pytest.approx(worst["uniform"])
    assert f"Worst-off: {summary['worst']['group']}" in found.report()


def test_groups_with_few_test_rows_stand_apart() -> None:
    frame = pd.concat([pool(900), pool(40).assign(sex="x", y="no")])
    found = curated(frame, budget=80)
    assert found.by_group["few"].to_dict() == {"f": False, "m": False, "x": True}
    assert found.summary["worst"]["group"] != "x"
    assert "more test rows of x" in found.summary["next"][0]
    everyone = curated(frame, budget=80, min_test=10_000).summary
    assert everyone["worst"] is None
    assert everyone["title"] == "No group has 10,000 test rows: who is worst off is not known"


def test_a_group_that_runs_out_is_announced(tmp_path: Path) -> None:
    frame = pool(120)
    found = curated(frame, budget=80, strategy="uniform", test=None)
    assert list(found.summary["used_up"]) == ["f"]
    assert len(found.rows) == 80
    assert "ran out after round" in found.report()


def test_a_pool_smaller_than_the_budget_is_used_up() -> None:
    frame = pool(60)
    found = curated(frame, budget=500, test=None)
    assert set(found.summary["used_up"]) == {"f", "m"}
    assert len(frame) - 2 <= len(found.rows) <= len(frame)
    assert found.by_group["accuracy"].isna().all()
    assert "No test part" in found.report()


class _Interrupting(Optimistic):
    """Sends Ctrl-C to its own process at the tenth choice."""

    def __call__(self, standing: Any, uniforms: Any) -> Any:
        if standing.counts.sum() == 10:
            os.kill(os.getpid(), signal.SIGINT)
        return super().__call__(standing, uniforms)


@pytest.mark.parametrize("c1", [0.0, 0.1])
def test_an_interrupted_run_is_kept_and_goes_on(tmp_path: Path, c1: float) -> None:
    path = tmp_path / "train.parquet"
    first = curated(strategy=_Interrupting(c1=c1), compare=3)
    assert first.interrupted
    assert len(first.rows) == 22
    assert first.result.interrupted
    first.save(path)
    assert "Go on with" in path.with_suffix(".report.html").read_text()
    second = curated(strategy=Optimistic(c1=c1), resume=path)
    whole = curated(strategy=Optimistic(c1=c1))
    pd.testing.assert_frame_equal(second.rows, whole.rows)
    assert second.summary["rounds"] == whole.summary["rounds"]
    assert not second.interrupted


def test_a_comparison_cut_short_keeps_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: Any, **settings: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("evenhand.simulation.blocks.run_block", interrupted)
    found = curated(compare=2)
    assert found.interrupted
    assert len(found.rows) == 60
    assert "comparison cut short" in found.report()


def test_a_finished_run_goes_on_with_a_larger_budget(tmp_path: Path) -> None:
    path = tmp_path / "train.csv"
    curated(budget=40).save(path)
    pd.testing.assert_frame_equal(curated(budget=70, resume=path).rows, curated(budget=70).rows)


def test_going_on_refuses_another_pool_or_other_settings(tmp_path: Path) -> None:
    path = tmp_path / "train.parquet"
    with pytest.raises(ValueError, match=r"nothing to resume from: train\.checkpoint\.json"):
        curated(resume=path)
    curated().save(path)
    with pytest.raises(ValueError, match="seed was 0, is 1"):
        curated(seed=1, resume=path)
    same_size = pool().assign(a=lambda f: f["a"] + 1)
    with pytest.raises(ValueError, match="not the one these rows"):
        curated(same_size, resume=path)


@pytest.mark.parametrize(
    "changed",
    [
        {"budget": 50},
        {"features": ["a"]},
        {"ignore": ["city"]},
        {"scale": "minmax"},
        {"missing": "median"},
        {"test": 0.2},
        {"use_group_as_feature": True},
        {"learner": Logistic(C=2.0)},
        {"batch": 2},
        {"strategy": "uniform"},
        {"merge_below": 10},
        {"validation": 0.4},
    ],
)
def test_going_on_refuses_any_changed_setting(tmp_path: Path, changed: dict[str, Any]) -> None:
    path = tmp_path / "train.parquet"
    curated(compare=0).save(path)
    with pytest.raises(ValueError, match="cannot resume"):
        curated(**changed, resume=path)


def test_a_checkpoint_is_kept_while_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Dying(Optimistic):
        def __call__(self, standing: Any, uniforms: Any) -> Any:
            if standing.counts.sum() == 20:
                raise OSError("the machine is gone")
            return super().__call__(standing, uniforms)

    monkeypatch.setattr("evenhand.curation.rounds.KEEP_EVERY", 0.0)
    path = tmp_path / "deep" / "train.parquet"
    with pytest.raises(OSError, match="gone"):
        curated(strategy=Dying(), out=path)
    assert [found.name for found in path.parent.iterdir()] == ["train.checkpoint.json"]
    resumed = curated(strategy=Optimistic(), resume=path)
    pd.testing.assert_frame_equal(resumed.rows, curated(strategy=Optimistic()).rows)


def test_outputs_never_replace_an_input(tmp_path: Path) -> None:
    frame = pool()
    frame.to_csv(tmp_path / "pool.csv", index=False)
    pool(100, seed=1).to_csv(tmp_path / "train.test.csv", index=False)
    asked = {"label": "y", "groups": "sex", "budget": 20, "compare": 0}
    found = curate(tmp_path / "pool.csv", **asked)
    with pytest.raises(ValueError, match=r"written onto the input .*pool\.csv"):
        found.save(tmp_path / "pool.csv")
    tested = curate(tmp_path / "pool.csv", test=tmp_path / "train.test.csv", **asked)
    with pytest.raises(ValueError, match=r"onto the input .*train\.test\.csv"):
        tested.save(tmp_path / "train.csv")
    (tmp_path / "folder").mkdir()
    frame.to_parquet(tmp_path / "folder" / "part.parquet")
    with pytest.raises(ValueError, match="onto the input"):
        curate(tmp_path / "folder", out=tmp_path / "folder" / "train.parquet", **asked)


def test_giveaway_columns_and_copies_are_noted() -> None:
    frame = pool(600)
    odd = frame.assign(
        score=np.where(frame["y"] == "yes", 1.0, 0.0) + np.random.default_rng(0).normal(0, 0.01, 600),
        title=np.where(frame["sex"] == "f", "Ms", "Mr"),
        serial=[f"n{i}" for i in range(600)],
    )
    notes = " ".join(curated(pd.concat([odd, odd.head(7)])).summary["notes"])
    assert "column 'score' alone predicts the label almost perfectly" in notes
    assert "column 'title' gives the group away" in notes
    assert "7 rows are exact copies" in notes
    assert "`serial` (600 values in 607 rows)" in notes
    assert "column 'serial'" not in notes
    plain = " ".join(curated(frame).summary["notes"])
    assert "perfectly" not in plain
    assert "gives the group away" not in plain
    assert "copies" not in plain


def test_a_curated_file_is_a_pool_without_its_bookkeeping(tmp_path: Path) -> None:
    first = curated(pool(600), budget=300)
    first.save(tmp_path / "train.parquet")
    again = curate(tmp_path / "train.parquet", label="y", groups="sex", budget=60, compare=0)
    assert set(again.summary["features"]) == {"a", "b", "city"}
    assert any("columns that curate wrote are left out: row, round, role, group" in n for n in again.summary["notes"])
    assert "evenhand_row" in again.rows


@settings(deadline=None, max_examples=15, derandomize=True)
@given(st.integers(20, 90), st.integers(2, 5), st.integers(0, 99), st.sampled_from([None, "person"]), st.integers(1, 3))
def test_no_row_is_in_two_roles(n: int, groups: int, seed: int, split_by: str | None, batch: int) -> None:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"x": rng.normal(size=n), "person": rng.integers(0, n // 2, n), "g": np.arange(n) % groups})
    frame["y"] = np.arange(n) % 2
    budget = max(2 * batch * groups, n // 3)
    try:
        found = curate(
            frame, label="y", groups="g", budget=budget, batch=batch, compare=0, split_by=split_by, seed=seed
        )
    except ValueError as error:
        assert "too few units" in str(error)  # noqa: PT017
        return
    rows, test = found.rows, found.test_rows
    assert rows["row"].is_unique
    assert test["row"].is_unique
    assert not set(rows["row"]) & set(test["row"])
    if split_by:
        sides = [set(part["person"]) for part in (rows[rows.role == "train"], rows[rows.role == "validation"], test)]
        assert not sides[0] & sides[1]
        assert not (sides[0] | sides[1]) & sides[2]


@pytest.mark.parametrize(
    "change", [Path.unlink, lambda path: path.write_text("{}"), lambda path: path.write_text("no")]
)
def test_resuming_reads_the_checkpoint_alone(tmp_path: Path, change: Any) -> None:
    path = tmp_path / "train.parquet"
    curated(budget=40).save(path)
    for ending in (".parquet", ".report.html", ".report.json"):
        change(path.with_suffix(ending))
    resumed, whole = curated(budget=70, resume=path), curated(budget=70)
    pd.testing.assert_frame_equal(resumed.rows, whole.rows)
    assert resumed.summary["rounds"] == whole.summary["rounds"]


@pytest.mark.parametrize(
    ("text", "message"),
    [("no", "is not a checkpoint"), ("{}", "is not a checkpoint"), ('{"schema": 99}', "another version")],
)
def test_a_checkpoint_that_cannot_be_read_is_named(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "train.checkpoint.json").write_text(text)
    with pytest.raises(ValueError, match=rf"^train\.checkpoint\.json .*{message}"):
        curated(resume=tmp_path / "train.parquet")


def test_saving_writes_rows_report_and_json(tmp_path: Path) -> None:
    found = curated(compare=2)
    found.save(tmp_path / "deep" / "train.parquet")
    saved = pq.read_table(tmp_path / "deep" / "train.parquet").to_pandas()
    assert saved["row"].tolist() == found.rows["row"].tolist()
    page = (tmp_path / "deep" / "train.report.html").read_text()
    assert found.summary["title"] in page
    assert "30 to train on, 30 that validated" in page
    summary = json.loads((tmp_path / "deep" / "train.report.json").read_text())
    assert summary["train"] == 30
    assert [row["group"] for row in summary["by_group"]] == ["f", "m"]
    with pytest.raises(ValueError, match=r"\.parquet or \.csv"):
        found.save(tmp_path / "train.xlsx")


def test_ctrl_c_while_saving_waits_until_all_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = curated()
    page = found.report()

    def interrupt(self: Curated) -> str:
        os.kill(os.getpid(), signal.SIGINT)
        return page

    monkeypatch.setattr(Curated, "report", interrupt)
    with pytest.raises(KeyboardInterrupt):
        found.save(tmp_path / "train.parquet")
    assert {path.name for path in tmp_path.iterdir()} == {
        "train.parquet",
        "train.test.parquet",
        "train.model.zip",
        "train.checkpoint.json",
        "train.report.html",
        "train.report.json",
    }


def test_settings_are_checked() -> None:
    with pytest.raises(ValueError, match="name the label"):
        curate(pool(), budget=10)
    with pytest.raises(ValueError, match="knows its label"):
        curate(load("german"), label="credit", budget=10)
    with pytest.raises(ValueError, match="smaller than one warm-up round"):
        curated(budget=3)


def test_a_table_can_be_given() -> None:
    table = Table(pool(), label="y", groups="sex")
    assert curate(table, budget=60, compare=0).rows["row"].tolist() == curated().rows["row"].tolist()


def test_three_classes_and_another_learner() -> None:
    from sklearn.tree import DecisionTreeClassifier

    frame = pool().assign(y=lambda f: np.digitize(f["a"], [-0.5, 0.5]))
    found = curated(frame, learner=DecisionTreeClassifier(random_state=0))
    assert (found.by_group["accuracy"] > 0.4).all()


def test_a_model_reads_later_files_as_the_table_it_was_trained_on(tmp_path: Path) -> None:
    """Dates, decimal commas, `;`, missing words and typed frames: the schema goes with the model."""
    rng = np.random.default_rng(0)
    n = 400
    frame = pool(n).assign(
        hired=pd.date_range("2020-01-01", periods=n).strftime("%Y-%m-%d"),
        flag=rng.choice(["yes", "no"], n),
        score=rng.normal(size=n).round(3),
    )
    frame["code"] = [f"{k % 12:03d}" for k in range(n)]
    frame.to_csv(tmp_path / "pool.csv", index=False)
    found = curate(tmp_path / "pool.csv", "y", ["sex"], 60, compare=0)
    found.save(tmp_path / "train.csv")
    model = CuratedModel.load(tmp_path / "train.model.zip")
    expected = model.predict_proba(tmp_path / "pool.csv")
    np.testing.assert_array_equal(expected, found.model.predict_proba(tmp_path / "pool.csv"))
    commas = frame.drop(columns="y").assign(score=[str(v).replace(".", ",") for v in frame["score"]])
    commas.to_csv(tmp_path / "excel.csv", index=False, sep=";")
    (tmp_path / "excel.csv").write_bytes((tmp_path / "excel.csv").read_text().encode("utf-16"))
    typed = frame.assign(hired=pd.to_datetime(frame["hired"]), flag=frame["flag"] == "yes")
    typed.to_parquet(tmp_path / "typed.parquet")
    for later in (tmp_path / "excel.csv", tmp_path / "typed.parquet", typed, frame.iloc[:, ::-1], frame.astype(str)):
        np.testing.assert_allclose(model.predict_proba(later), expected, atol=1e-12)
    with pytest.raises(ValueError, match="row 3: hired: 'soon' is not a date"):
        model.predict(frame.head(5).assign(hired=["2020-01-01", "", "soon", "", ""]))
    # the chosen rows are read back as they are
    again = Table(tmp_path / "train.csv", label="y", groups="sex", test=None)
    assert again.schema["hired"].kind == "date"
    assert set(pd.read_csv(tmp_path / "train.csv", dtype=str)["code"]) <= set(frame["code"])

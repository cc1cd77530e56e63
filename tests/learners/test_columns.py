"""Pipelines over raw columns: what they are fitted on, in simulations, curated sets and campaigns, and what is refused."""

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from typer.testing import CliRunner

import evenhand as eh
from evenhand.cli import app
from evenhand.curation.model import CuratedModel
from evenhand.errors import InputError
from evenhand.learners.columns import needs_columns
from evenhand.tables.problems import TableError

WORDS = np.array(["late", "fine", "broken", "quick", "kind", "wrong", "lost", "thanks"])


def reviews(n: int = 400, seed: int = 0) -> pd.DataFrame:
    """Numbers and categories with gaps, a categorical column, and free text that says most about the label."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    told = [WORDS[rng.integers(4 * v if rng.random() < 0.8 else 0, 4 * v + 4, 3)] for v in y]
    return pd.DataFrame(
        {
            "uid": np.arange(n),
            "sex": rng.choice(["f", "m"], n, p=[0.3, 0.7]),
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.normal(40, 9, n) + 3 * y),
            "city": pd.Series(rng.choice(["Oslo", "Rome", "Lima"], n)).where(rng.random(n) > 0.1),
            "kind": pd.Categorical(rng.choice(["x", "y"], n)),
            "text": [" ".join([*words, f"no{i}"]) for i, words in enumerate(told)],
            "y": np.where(y == 1, "yes", "no"),
        }
    )


class Recorder(BaseEstimator, TransformerMixin):  # type: ignore[misc]
    """Passes a column on and remembers which rows it was fitted on."""

    seen: ClassVar[list[set[int]]] = []

    def fit(self, X: pd.DataFrame, y: Any = None) -> "Recorder":
        assert isinstance(X, pd.DataFrame)
        self.seen.append(set(X["uid"].astype(int)))
        self.fitted_ = True
        return self

    def transform(self, X: pd.DataFrame) -> Any:
        return X[["uid"]].to_numpy(dtype=float) * 0


def recording() -> Pipeline:
    parts = [("seen", Recorder(), ["uid"]), ("text", TfidfVectorizer(), "text")]
    Recorder.seen.clear()
    return make_pipeline(ColumnTransformer(parts), LogisticRegression())


def pipeline() -> Pipeline:
    """What one would write for such a table."""
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    categories = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    parts = [("n", numbers, ["age"]), ("c", categories, ["city", "kind"]), ("t", TfidfVectorizer(), "text")]
    return make_pipeline(ColumnTransformer(parts), LogisticRegression())


def storable() -> Pipeline:
    parts = [("c", OneHotEncoder(handle_unknown="ignore"), ["city", "kind"]), ("t", TfidfVectorizer(), "text")]
    return make_pipeline(ColumnTransformer(parts), LogisticRegression())


def table(frame: Any = None, **settings: Any) -> eh.Table:
    return eh.Table(
        reviews() if frame is None else frame, label="y", groups="sex", **{"max_categories": 100} | settings
    )


@pytest.mark.parametrize("final", ["plain", "chosen"])
def test_a_simulation_fits_on_training_rows_only(final: str) -> None:
    source, learner = table(), recording()
    eh.simulate(source, ["uniform"], learner, budget=40, batch=5, trials=1, seed=3, final=final)
    stream = source.open_columns(3, [0])
    drawn = [stream.draw(np.array([z]), np.array([200])) for z in (0, 1)]
    roles = {int(row): bool(v) for d in drawn for row, v in zip(d.rows, d.validation, strict=True)}
    test = set(stream.tests()[0].numbers.tolist())
    last = [len(seen) for seen in Recorder.seen].index(40)  # all labels: the model to deploy
    searching, deployed = Recorder.seen[:last], Recorder.seen[last:]
    assert searching
    assert all(not roles[row] for seen in searching for row in seen)
    assert any(roles[row] for row in deployed[0])
    assert not any(seen & test for seen in Recorder.seen)
    assert all(seen <= deployed[0] for seen in deployed)
    assert (len(deployed) > 1) == (final == "chosen")


def test_a_curated_model_sees_no_test_row_and_its_rounds_no_validation_row() -> None:
    curated = eh.curate(reviews(), "y", ["sex"], 40, learner=recording(), batch=5, compare=0, max_categories=100)
    rows, test = curated.rows, set(curated.test_rows["uid"])
    trained = set(rows.loc[rows["role"] == "train", "uid"])
    last = [len(seen) for seen in Recorder.seen].index(40)
    assert last > 0
    assert all(seen <= trained for seen in Recorder.seen[:last])
    assert Recorder.seen[last] == set(rows["uid"])
    assert not any(seen & test for seen in Recorder.seen)


def test_a_campaign_fits_on_training_rows_and_deploys_on_all_but_test_labels(tmp_path: Path) -> None:
    frame = reviews()
    labels = dict(zip(frame["uid"].astype(str), frame["y"], strict=True))
    frame.drop(columns="y").assign(id=frame["uid"]).to_parquet(tmp_path / "pool.parquet")
    c = eh.Campaign(None, learner=recording(), budget=60, batch=5, test_labels=20)
    c.pool(tmp_path / "pool.parquet", group="sex")
    while not c.done:
        c.tell_labels({name: labels[name] for name in c.ask().examples})
    rounds = list(Recorder.seen)
    trained, validated = ({int(id) for id in part.ids} for part in (c.training_set(), c.validation_set()))
    assert rounds
    assert all(seen <= trained for seen in rounds)
    c.final_model()
    assert Recorder.seen[len(rounds)] == trained | validated
    assert len(trained | validated) == 40


def test_the_numbers_are_those_of_scikit_learn_on_the_same_rows() -> None:
    frame, source = reviews(), table()
    result = eh.simulate(source, ["uniform"], pipeline(), budget=60, batch=5, trials=1, seed=1)
    stream = source.open_columns(1, [0])
    drawn = [stream.draw(np.array([z]), np.array([30])) for z in (0, 1)]
    rows, test = np.concatenate([d.rows for d in drawn]), stream.tests()[0]
    fitted = pipeline().fit(frame.iloc[rows], frame["y"].iloc[rows])
    held = frame.iloc[test.numbers]
    right = pd.Series(fitted.predict(held) == held["y"]).groupby(held["sex"]).mean()
    found = result.final.set_index("group")["final_test_accuracy"]
    np.testing.assert_allclose(found.reindex(["f", "m"]), right.reindex(["f", "m"]), atol=0.03)


def test_frames_and_files_are_one_and_the_same(tmp_path: Path) -> None:
    frame = reviews()
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    sources = [table(frame), table(tmp_path / "t.csv"), table(tmp_path / "t.parquet", on_disk=True)]
    run = {"budget": 40, "batch": 5, "trials": 2}
    found = [eh.simulate(each, ["optimistic"], pipeline(), **run).final for each in sources]
    for other in found[1:]:
        pd.testing.assert_frame_equal(found[0], other)
    test = reviews(200, seed=9)
    learner = GridSearchCV(pipeline(), {"logisticregression__C": [0.1, 1.0]}, cv=2)
    assert eh.simulate(table(frame, test=test), ["uniform"], learner, **run).final["final_test_accuracy"].notna().all()
    minimax = eh.Minimax(storable(), rounds=2, folds=2)
    assert (
        eh.simulate(table(frame), ["uniform"], minimax, budget=20, batch=5, trials=1)
        .final["final_test_accuracy"]
        .notna()
        .all()
    )


def test_who_gets_raw_columns() -> None:
    by_type = make_pipeline(
        ColumnTransformer([("n", StandardScaler(), make_column_selector(dtype_include="number"))]), LogisticRegression()
    )
    by_place = make_pipeline(ColumnTransformer([("n", StandardScaler(), [0, 1])]), LogisticRegression())
    raw = [pipeline(), by_type, eh.Minimax(pipeline()), GridSearchCV(pipeline(), {}), eh.SklearnLearner(pipeline())]
    assert all(needs_columns(each) for each in raw)
    encoded = [
        by_place,
        LogisticRegression(),
        eh.Logistic(),
        eh.Minimax(),
        eh.SklearnLearner(pipeline(), columns="encoded"),
    ]
    assert not any(needs_columns(each) for each in encoded)
    assert needs_columns(eh.SklearnLearner(LogisticRegression(), columns="raw"))
    with pytest.raises(InputError, match="columns must be"):
        eh.SklearnLearner(LogisticRegression(), columns="all")


def test_what_is_refused() -> None:
    run = {"budget": 20, "trials": 1}
    names_sex = make_pipeline(ColumnTransformer([("c", OneHotEncoder(), ["sex"])]), LogisticRegression())
    with pytest.raises(InputError, match=r"'sex', which is a group column.*use_group_as_feature=True"):
        eh.simulate(table(), ["uniform"], names_sex, **run)
    assert len(eh.simulate(table(use_group_as_feature=True), ["uniform"], names_sex, **run).final)
    with pytest.raises(InputError, match="the column 'text', which is ignored"):
        eh.simulate(table(ignore=["text"]), ["uniform"], pipeline(), **run)
    wrong = make_pipeline(ColumnTransformer([("t", TfidfVectorizer(), "txt")]), LogisticRegression())
    with pytest.raises(InputError, match="the column 'txt'; the columns it gets are 'uid', 'age'"):
        eh.simulate(table(), ["uniform"], wrong, **run)
    only = ["text"]
    with pytest.raises(TableError, match=r"no column can be made numbers: 'text'.*TfidfVectorizer"):
        eh.simulate(table(features=only), ["uniform"], **run)
    assert table().left_out["text"] == "texts are not learned from yet"
    with pytest.raises(InputError, match="Pipeline takes columns by name, and the source synthetic1:I has none"):
        eh.simulate(eh.SyntheticModel1.instance("I"), ["uniform"], pipeline(), **run)
    with pytest.raises(InputError, match="'sex', which is a group"):
        eh.Campaign(None, learner=names_sex, budget=20).pool(reviews().drop(columns="y"), id="uid", group="sex")


@pytest.mark.parametrize("name", ["train.parquet", "train.csv"])
def test_what_curate_wrote_loads(tmp_path: Path, name: str) -> None:
    curated = eh.curate(reviews(), "y", "sex", 60, learner=storable(), batch=5, compare=0, max_categories=100)
    curated.save(tmp_path / name)
    new = reviews(50, seed=4)
    loaded = CuratedModel.load(tmp_path / "train.model.zip")
    new.to_csv(tmp_path / "new.csv", index=False)
    assert (loaded.predict(tmp_path / "new.csv") == curated.model.predict(new)).all()
    with pytest.raises(InputError, match="no column 'text'"):
        loaded.predict(new.drop(columns="text"))


def test_a_model_that_cannot_be_stored_is_named(tmp_path: Path) -> None:
    curated = eh.curate(reviews(), "y", "sex", 20, learner=pipeline(), batch=5, compare=0, max_categories=100)
    written = curated.save(tmp_path / "train.parquet")
    assert "train.model.zip" not in [path.name for path in written]
    assert any("SimpleImputer" in note for note in curated.summary["notes"])


def test_a_campaign_certifies_a_pipeline_it_can_store(tmp_path: Path) -> None:
    frame = reviews(200)
    labels = dict(zip(frame["uid"].astype(str), frame["y"], strict=True))
    url = f"sqlite:///{tmp_path / 'c.db'}"
    for name, learner in (("plain", storable()), ("imputed", pipeline())):
        c = eh.Campaign.create(url, name, None, learner=learner, budget=60, batch=5)
        c.pool(frame.drop(columns="y"), id="uid", group="sex")
        for _ in range(3):
            c.tell_labels({each: labels[each] for each in c.ask().examples})
        if name == "imputed":
            with pytest.raises(InputError, match=r"cannot be frozen.*SimpleImputer"):
                c.certify()
            continue
        c.certify()
        c.tell_labels({each: labels[each] for each in c.ask().examples})
        assert sum(c.certificate().n) > 0
        again = eh.Campaign.open(url, name, learner=learner).certified_model()
        assert (again.predict(frame) == c.certified_model().predict(frame)).all()


def test_labels_made_step_by_step_train_a_pipeline(tmp_path: Path) -> None:
    frame, out = reviews(200), tmp_path / "train.parquet"
    labels = dict(zip(frame["uid"].astype(str), frame["y"], strict=True))
    settings = {"learner": storable(), "batch": 5, "id": "uid", "out": out, "test_labels": 20}
    labelling = eh.curate(frame.assign(y=None), "y", ["sex"], 40, **settings)
    while not labelling.done:
        labelling.tell({name: labels[name] for name in labelling.todo["uid"]})
        labelling = eh.curate(frame.assign(y=None), "y", ["sex"], 40, **settings)  # as another process would
    labelling.save(out)
    test = pd.read_parquet(tmp_path / "train.test.parquet")
    assert (CuratedModel.load(tmp_path / "train.model.zip").predict(test) == test["predicted"]).all()


def test_a_factory_names_a_pipeline_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENHAND_ALLOW", "test_columns")
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    frame = reviews(200)
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.drop(columns="y").to_csv(tmp_path / "pool.csv", index=False)
    learner, db = "factory:test_columns.pipeline", f"sqlite:///{tmp_path / 'c.db'}"

    def run(*words: str) -> str:
        found = CliRunner().invoke(app, list(words))
        assert found.exit_code == 0, found.output
        return found.output

    options = ["--label", "y", "--group", "sex", "--learner", learner, "--max-categories", "100", "--budget", "20"]
    assert "uniform" in run("simulate", str(tmp_path / "t.csv"), *options, "--trials", "1", "--strategy", "uniform")
    run("campaign", "create", "c", "--budget", "20", "--batch", "5", "--learner", learner, "--db", db)
    run("campaign", "pool", "c", str(tmp_path / "pool.csv"), "--id", "uid", "--group", "sex", "--db", db)
    run("campaign", "ask", "c", "--out", str(tmp_path / "todo.csv"), "--db", db)
    todo = pd.read_csv(tmp_path / "todo.csv")
    todo["label"] = frame.set_index("uid")["y"].reindex(todo["uid"]).to_numpy()
    todo.to_csv(tmp_path / "done.csv", index=False)
    run("campaign", "tell", "c", str(tmp_path / "done.csv"), "--db", db)
    run("campaign", "ask", "c", "--db", db)

"""Tables whose labels are still to be made, from Python and from the shell."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import evenhand as eh
from evenhand.cli import app


def people(n: int = 600, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """A table without labels, and what people would say of its rows."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"hours": rng.normal(38, 8, n), "city": rng.choice(["Lima", "Oslo"], n)})
    frame["sex"] = rng.choice(["women", "men"], n, p=[0.3, 0.7])
    noise = rng.normal(size=n) * np.where(frame["sex"] == "women", 8, 3)
    return frame, np.where(frame["hours"] + noise > 38, "yes", "no")


def finish(labelling: Any, truth: np.ndarray) -> None:
    for _ in range(30):
        if labelling.done:
            return
        todo = labelling.todo
        labelling.tell(todo.assign(hired=truth[todo["row"].astype(int)]))
    raise AssertionError("it never ends")


def test_the_loop_from_python() -> None:
    frame, truth = people()
    found = eh.curate(frame, new_label="hired", groups=["sex"], budget=100, test_labels=40, per_round=30)
    assert found.model is None
    assert set(found.todo["hired"]) == {None}
    finish(found, truth)
    rows, test = found.rows, found.test_rows
    assert len(rows) == 60
    assert len(test) == 40
    assert not set(rows["row"]) & set(test["row"])
    assert set(rows["role"]) == {"train", "validation"}
    assert set(test["role"]) == {"test"}
    assert found.by_group["count"].to_dict() == {"men": 20, "women": 20}
    assert test["predicted"].tolist() == found.model.predict(frame.iloc[test["row"].astype(int)]).tolist()
    right = test["predicted"] == test["hired"]
    assert found.by_group["accuracy"].to_dict() == pytest.approx(right.groupby(test["group"]).mean().to_dict())
    assert len(found.todo) == 0


def test_labels_that_are_there_are_taken_in_and_cost_nothing() -> None:
    frame, truth = people()
    half = frame.assign(hired=np.where(np.arange(600) < 50, truth, None))
    found = eh.curate(half, label="hired", groups="sex", budget=40, per_round=20)
    assert len(found.rows) == 50
    assert found.campaign.labels_used == 0
    assert not set(found.todo["row"].astype(int)) & set(range(50))
    finish(found, truth)
    assert len(found.rows) == 90


def test_partly_filled_lists_and_mappings() -> None:
    frame, truth = people()
    found = eh.curate(frame, new_label="hired", groups="sex", budget=60, per_round=20)
    first = found.todo
    assert found.tell({name: truth[int(name)] for name in first["row"][:5]}) == 5
    assert set(first["row"][5:]) <= set(found.todo["row"])
    with pytest.raises(ValueError, match="no row has a label yet"):
        found.tell(found.todo)
    with pytest.raises(ValueError, match="no column 'hired'"):
        found.tell(found.todo.drop(columns="hired"))


def test_the_ledger_beside_the_output_goes_on(tmp_path: Path) -> None:
    frame, truth = people()
    out = tmp_path / "train.parquet"
    asked = {"new_label": "hired", "groups": "sex", "budget": 60, "per_round": 20, "out": out}
    first = eh.curate(frame, **asked).todo
    given = {name: truth[int(name)] for name in first["row"]}
    again = eh.curate(frame, labels=given, **asked)
    assert len(again.rows) == 20
    assert not set(again.todo["row"]) & set(first["row"])
    with pytest.raises(ValueError, match="batch was 1, is 2"):
        eh.curate(frame, batch=2, **asked)
    with pytest.raises(ValueError, match="budget was 60, is 50"):
        eh.curate(frame, **(asked | {"budget": 50}))
    with pytest.raises(ValueError, match="not the one this labelling began with"):
        eh.curate(frame.assign(hours=0.0), **asked)
    assert eh.curate(frame, **(asked | {"budget": 80})).campaign.budget == 80


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"compare": 2}, "compare has no effect here, labels are still to be made"),
        ({"fill": "median"}, "fill has no effect while labels are made"),
        ({"test": 0.3}, "test has no effect while labels are made"),
        ({"new_label": None, "label": "hour"}, "did you mean 'hours'.*name the column to fill"),
        ({"new_label": "city"}, "has a column 'city' already"),
        ({"label": "city"}, "give label .* or new_label"),
        ({"new_label": None}, "name the label and the groups"),
        ({"show": "town"}, "no column 'town'"),
    ],
)
def test_settings_of_labelled_tables_are_refused(settings: dict[str, Any], message: str, tmp_path: Path) -> None:
    out = tmp_path / "train.parquet"
    with pytest.raises(ValueError, match=message):
        eh.curate(people()[0], out=out, **({"new_label": "hired", "groups": "sex", "budget": 40} | settings))
    assert not list(tmp_path.iterdir())


def test_the_list_for_people_has_the_answer_first_and_only_what_is_to_be_shown(tmp_path: Path) -> None:
    frame, truth = people()
    frame["city"] = np.where(frame["city"] == "Oslo", "=1+1", "Lima")
    found = eh.curate(frame, new_label="hired", groups="sex", budget=40, per_round=20, show=["city"])
    assert list(found.todo) == ["hired", "row", "city"]
    found.write_todo(tmp_path / "todo.csv")
    assert {"'=1+1", "Lima"} == set(pd.read_csv(tmp_path / "todo.csv")["city"])
    found.write_todo(tmp_path / "todo.parquet")
    given = pd.read_parquet(tmp_path / "todo.parquet")
    assert {"=1+1", "Lima"} == set(given["city"])
    assert given["hired"].isna().all()
    given.assign(hired=truth[given["row"].astype(int)]).to_parquet(tmp_path / "done.parquet")
    assert found.tell(tmp_path / "done.parquet") == 20


def test_settings_of_unlabelled_tables_are_refused() -> None:
    frame, truth = people()
    with pytest.raises(ValueError, match="test_labels has no effect here, every row has a label"):
        eh.curate(frame.assign(hired=truth), label="hired", groups="sex", budget=40, test_labels=10)


def test_a_few_labels_are_missing_and_the_budget_is_for_those_that_are_there() -> None:
    frame, truth = people()
    with pytest.raises(
        ValueError, match="the 10 rows that have no 'hired': to choose among the 590 rows that have one"
    ):
        eh.curate(frame.assign(hired=[None] * 10 + list(truth[10:])), label="hired", groups="sex", budget=40)


def test_the_loop_from_the_shell(tmp_path: Path) -> None:
    frame, truth = people()
    pool, out, todo = tmp_path / "pool.csv", tmp_path / "train.csv", tmp_path / "train.todo.csv"
    frame.insert(0, "case", [f"c{i:03d}" for i in range(600)])
    frame.to_csv(pool, index=False)
    said = dict(zip(frame["case"], truth, strict=True))
    asked = [
        "curate",
        pool,
        "--new-label",
        "hired",
        "--group",
        "sex",
        "--budget",
        60,
        "--test-labels",
        20,
        "--id",
        "case",
    ]
    asked += ["--per-round", 20, "--out", out]

    def run(*more: object) -> Any:
        return CliRunner().invoke(app, [str(a) for a in (*asked, *more)])

    done = run()
    assert done.exit_code == 0, done.exception
    assert "20 rows to label" in done.output
    for _ in range(3):
        rows = pd.read_csv(todo)
        assert rows["hired"].isna().all()
        rows.assign(hired=rows["case"].map(said)).to_csv(todo, index=False)
        # labels that nobody has given are never written over
        assert "labels that were not given yet" in str(run().exception)
        done = run("--labels", todo)
        assert done.exit_code == 0, done.exception
    assert "every label that the budget buys is there" in done.output
    assert json.loads(out.with_suffix(".report.json").read_text())["test"] == 20
    assert len(pd.read_csv(out)) == 40
    assert "move it away" in str(run("--force").exception)
    # a second run in the same folder has a list of its own, and one that is refused leaves nothing behind
    second = tmp_path / "second.csv"
    before = sorted(tmp_path.iterdir())
    for budget, message in ((100_000, "more than the 600 rows that have no"), (0, "from 1 up")):
        assert message in str(run("--out", second, "--budget", budget).exception)
    assert "is not there" in str(run("--out", second, "--labels", todo).exception)
    assert sorted(tmp_path.iterdir()) == before
    assert run("--out", second).exit_code == 0
    assert second.with_suffix(".todo.csv").exists()

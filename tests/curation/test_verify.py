import json
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from typer.testing import CliRunner

import evenhand as eh
from evenhand.cli import app
from evenhand.curation.choice import choice_values
from evenhand.curation.curate import curate
from evenhand.curation.verify import verify
from evenhand.datasets import load
from evenhand.learners.choosing import Candidate, Choice


def pool(n: int = 500, classes: Any = ("no", "yes"), seed: int = 0) -> pd.DataFrame:
    """Numbers with gaps, categories with gaps, dates, truth values, codes that look like numbers."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    place = np.digitize(x + rng.normal(size=n), np.linspace(-1, 1, len(classes) + 1)[1:-1])
    return pd.DataFrame(
        {
            "x": np.where(rng.random(n) < 0.1, np.nan, x),
            "city": np.where(rng.random(n) < 0.1, None, rng.choice(["Rome", "Oslo", 'Ri"o, x'], n)),
            "code": rng.choice(["01", "1", "007"], n),
            "day": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
            "flag": rng.random(n) < 0.5,
            "sex": rng.choice(["f", "m"], n, p=[0.3, 0.7]),
            "y": np.array(classes)[place],
        }
    )


@pytest.mark.parametrize("name", ["train.parquet", "train.csv"])
@pytest.mark.parametrize(
    ("classes", "settings"),
    [
        (("no", "yes"), {"compare": 2}),
        ((0, 1), {"missing": "median"}),
        ((False, True), {"test": None}),
        (("a", "b", "c"), {}),
        (("no", "yes"), {"learner": LogisticRegression(C=0.3, max_iter=1000), "use_group_as_feature": True}),
    ],
)
def test_what_was_written_recomputes(tmp_path: Path, name: str, classes: Any, settings: dict[str, Any]) -> None:
    asked = {"budget": 60, "compare": 0} | settings
    curate(pool(classes=classes), label="y", groups="sex", **asked).save(tmp_path / name)
    checks = verify(tmp_path / name)
    assert [check for check in checks if not check.ok] == []
    assert len(checks) >= (4 if settings.get("test", 0.3) is None else 7)


def half_wrong(model: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """A risk of one's own."""
    return 0.5 * (model.predict(X) != y), np.ones(len(y), dtype=bool)


@pytest.mark.parametrize(
    ("settings", "left"),
    [
        ({"risk": eh.Costs([[0, 5], [1, 0]], classes=["yes", "no"])}, []),
        ({"risk": half_wrong}, ["the candidates for the model", "the worst-off group and its interval"]),
        ({"learner": DecisionTreeClassifier(max_depth=3, random_state=0)}, ["the model"]),
    ],
)
def test_what_cannot_be_recomputed_is_said(tmp_path: Path, settings: dict[str, Any], left: list[str]) -> None:
    curate(pool(900), label="y", groups="sex", budget=80, compare=2, **settings).save(tmp_path / "train.csv")
    checks = verify(tmp_path / "train.csv")
    assert [check.name for check in checks if check.ok is None] == left
    assert not [check for check in checks if check.ok is False]


def test_the_model_is_the_chosen_one_with_its_table_in_every_form(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    # two groups that need opposite rules, of which a plain model learns the more frequent one's
    frame = pd.DataFrame({"x": rng.normal(size=900), "z": rng.normal(size=900), "g": rng.choice(["a", "b"], 900)})
    side = np.where(frame["g"] == "a", frame["x"], frame["z"] - frame["x"])
    frame["y"] = np.where(side + 0.3 * rng.normal(size=900) > 0, "yes", "no")
    few = frame.drop(frame.query("g == 'b'").index[100:])
    found = curate(few, "y", "g", 200, strategy="uncurated", compare=2)
    choice, rows = found.summary["choice"], found.rows
    chosen = next(c for c in choice["candidates"] if c["chosen"])
    assert chosen["strength"] > 0
    assert chosen["name"] == choice["chosen"]
    found.save(tmp_path / "train.parquet")
    assert all(check.ok for check in verify(tmp_path))
    # by hand: groups weighted so that group z counts q_z
    size = rows["group"].value_counts()
    full = rows["group"].map({g: q * len(rows) / size[g] for g, q in choice["weights"].items()})
    weight = 1 + chosen["strength"] * (full - 1)
    numbers = (rows[["x", "z"]] - found.model.encoder.low[0]) * found.model.encoder.scale[0]
    by_hand = LogisticRegression(C=chosen["C"], tol=1e-10, solver="newton-cholesky").fit(numbers, rows["y"], weight)
    test = (found.test_rows[["x", "z"]] - found.model.encoder.low[0]) * found.model.encoder.scale[0]
    assert (by_hand.predict(test) == found.test_rows["predicted"]).mean() > 0.99
    assert choice["sentence"] in unescape(found.report()).replace("\u00a0", " ")
    plain = curate(few, "y", "g", 200, strategy="uncurated", compare=2, final="plain")
    assert plain.summary["choice"]["sentence"] == "Plain: asked for."
    own = plain.result.final.query("strategy == 'uncurated' and trial == 0")["final_test_accuracy"]
    assert np.allclose(plain.by_group["accuracy"], own)
    with pytest.raises(ValueError, match="final must be 'chosen' or 'plain'"):
        curate(frame, "y", "g", 40, final="best")


def test_a_test_table_of_its_own_recomputes(tmp_path: Path) -> None:
    curate(pool(), label="y", groups="sex", budget=60, compare=0, test=pool(200, seed=1)).save(
        tmp_path / "train.parquet"
    )
    assert all(check.ok for check in verify(tmp_path))


def test_the_command_says_what_differs(tmp_path: Path) -> None:
    curate(load("german"), budget=60, compare=2).save(tmp_path / "train.parquet")
    path = tmp_path / "train.report.json"
    whole = json.loads(path.read_text())

    def run() -> Any:
        return CliRunner().invoke(app, ["verify", str(tmp_path / "train.parquet")])

    done = run()
    assert done.exit_code == 0, done.output
    assert "DIFFERS" not in done.output
    changes: list[tuple[Any, str]] = [
        (lambda r: r["by_group"][0].update(accuracy=0.9), "figures of every group"),
        (lambda r: r["by_group"][1].update(low=0.1), "figures of every group"),
        (lambda r: r["by_group"][1].update(train=0), "counts of rows"),
        (lambda r: r["worst_off"].update(high=0.2), "the worst-off group"),
        (lambda r: r["comparison"]["worst"]["uniform"].update(mean=0.2), "the comparison"),
        (lambda r: r["comparison"]["differences"][0].update(low=0.2), "the comparison"),
        (lambda r: r["choice"]["candidates"][3].update(risk=0.1), "the candidates for the model"),
        (lambda r: r["choice"]["candidates"][4]["by_group"].update(men=0.9), "the candidates for the model"),
        (lambda r: r["comparison"]["by_trial"][0]["by_group"].update(men=0.9), "the comparison"),
        (lambda r: r["overall"].update(false_positive_rate=0.0), "figures of all test rows"),
    ]
    for change, named in changes:
        report = json.loads(json.dumps(whole))
        change(report)
        path.write_text(json.dumps(report))
        done = run()
        assert done.exit_code == 2
        assert f"DIFFERS      {named}" in done.output


def test_files_that_are_no_result_are_bad_input(tmp_path: Path) -> None:
    for name in ("nothing.parquet", ""):
        with pytest.raises(ValueError, match=r"there is no file|holds 0 reports"):
            verify(tmp_path / name)
    pool().to_parquet(tmp_path / "pool.parquet")
    with pytest.raises(ValueError, match=r"no pool\.report\.json"):
        verify(tmp_path / "pool.parquet")


def test_a_candidate_is_called_the_same_in_the_sentence_and_in_the_table() -> None:
    tried = (Candidate(0.0, 1.0, 0.4, 0.1, 0.0, 0.0, {}), Candidate(0.0, 0.1, 0.3, 0.1, 0.1, 0.2, {}))
    why = f"the best candidate, {tried[1].name}, is not clearly better"
    found = choice_values(Choice(tried[0].name, why, "error", {}, tried))
    assert found is not None
    names = [row["name"] for row in found["candidates"]]
    assert names == ["plain, C=1", "equal weights, C=0.1"]
    assert f"candidate, {names[1]}," in found["sentence"]

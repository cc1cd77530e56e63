"""What `curate` wrote, computed again from its files by scikit-learn and scipy alone."""

import json
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, ttest_1samp
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, balanced_accuracy_score, log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from evenhand.curation.curate import curate
from evenhand.curation.summary import choice_values
from evenhand.learners.choosing import Candidate, Choice


def pool(n: int = 500, classes: Any = ("no", "yes"), seed: int = 0) -> pd.DataFrame:
    """Numbers with gaps, categories with gaps, codes that look like numbers."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    place = np.digitize(x + rng.normal(size=n), np.linspace(-1, 1, len(classes) + 1)[1:-1])
    return pd.DataFrame(
        {
            "x": np.where(rng.random(n) < 0.1, np.nan, x),
            "city": np.where(rng.random(n) < 0.1, None, rng.choice(["Rome", "Oslo", 'Ri"o, x'], n)),
            "code": rng.choice(["01", "1", "007"], n),
            "sex": rng.choice(["f", "m"], n, p=[0.3, 0.7]),
            "y": np.array(classes)[place],
        }
    )


def written(path: Path) -> tuple[dict[str, Any], pd.DataFrame, pd.DataFrame]:
    """The report, the rows and the test rows, with all labels as text."""
    read = pd.read_parquet if path.suffix == ".parquet" else lambda p: pd.read_csv(p, dtype={"code": str})
    rows, test = (read(p).astype({"y": str}) for p in (path, path.with_suffix(f".test{path.suffix}")))
    return json.loads(path.with_suffix(".report.json").read_text()), rows, test.astype({"predicted": str})


@pytest.mark.parametrize("name", ["train.parquet", "train.csv"])
@pytest.mark.parametrize(
    ("classes", "settings"),
    [
        (("no", "yes"), {"compare": 3}),
        ((0, 1), {"missing": "median"}),
        (("a", "b", "c"), {"test": pool(200, ("a", "b", "c"), 1)}),
    ],
)
def test_every_figure_recomputes(tmp_path: Path, name: str, classes: Any, settings: dict[str, Any]) -> None:
    asked = {"budget": 60, "compare": 0} | settings
    curate(pool(classes=classes), label="y", groups="sex", **asked).save(tmp_path / name)
    report, rows, test = written(tmp_path / name)
    assert rows["row"].is_unique
    assert test["row"].is_unique
    assert isinstance(asked.get("test"), pd.DataFrame) or not set(rows["row"]) & set(test["row"])
    assert report["train"] + report["validation"] == len(rows)
    right, level = test["predicted"] == test["y"], 1 - report["delta"] / 2
    for row in report["by_group"]:
        own, mine = test["group"] == row["group"], rows["group"] == row["group"]
        assert {role: (mine & (rows["role"] == role)).sum() for role in ("train", "validation")}.items() <= row.items()
        exact = binomtest(int(right[own].sum()), int(own.sum())).proportion_ci(level, method="exact")
        assert [row[key] for key in ("low", "high")] == pytest.approx([exact.low, exact.high])
        recomputed(row, test[own], report)
    recomputed(report["overall"], test, report)
    accuracy = right.groupby(test["group"]).mean()
    assert report["worst"]["group"] == accuracy.idxmin()
    assert report["worst_off"]["high"] == pytest.approx(1 - min(row["low"] for row in report["by_group"]))
    compared(report)


def recomputed(row: dict[str, Any], test: pd.DataFrame, report: dict[str, Any]) -> None:
    y, said = test["y"], test["predicted"]
    assert row["count"] == len(test)
    assert row["accuracy"] == pytest.approx(accuracy_score(y, said))
    assert row["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(y, said))
    assert row["majority_accuracy"] == pytest.approx((y == str(report["majority"])).mean())
    if report["positive"] is not None:
        positive = str(report["positive"])
        assert row["false_negative_rate"] == pytest.approx((said != positive)[y == positive].mean())
        assert row["false_positive_rate"] == pytest.approx((said == positive)[y != positive].mean())


def compared(report: dict[str, Any]) -> None:
    """The comparison from the figures of its trials."""
    found = report["comparison"]
    by_trial = pd.DataFrame(
        [{"rule": one["strategy"], "trial": one["trial"], **one["by_group"]} for one in found["by_trial"]]
    )
    worst = {rule: part[found["groups"]].max(axis=1).to_numpy() for rule, part in by_trial.groupby("rule")}
    for rule, values in worst.items():
        assert found["worst"][rule]["mean"] == pytest.approx(values.mean())
    for one in found["differences"]:
        level = 1 - report["delta"] / len(found["differences"])
        ends = ttest_1samp(worst[one["b"]] - worst[one["a"]], 0).confidence_interval(level)
        assert (one["low"], one["high"]) == pytest.approx((ends.low, ends.high))
    # the run itself is trial 0 of the comparison
    first = by_trial.query("trial == 0").set_index("rule").loc[found["rules"][0]]
    assert all(first[row["group"]] == pytest.approx(row["risk"]) for row in report["by_group"])


def scaled_as(found: Any) -> FunctionTransformer:
    """Numbers shifted and scaled as by the encoder, whose figures are of rows the test does not know."""
    encoder = found.model.encoder
    return FunctionTransformer(lambda X: (np.asarray(X) - encoder.low[0]) * encoder.scale[0])


def test_the_model_and_its_log_loss_are_scikit_learns() -> None:
    found = curate(pool(900), label="y", groups="sex", budget=300, compare=0, final="plain", risk="log")
    numbers = make_pipeline(scaled_as(found), SimpleImputer(strategy="constant", fill_value=0, add_indicator=True))
    features = make_column_transformer((numbers, ["x"]), (OneHotEncoder(), ["city", "code"]))
    model = make_pipeline(features, LogisticRegression(tol=1e-10, solver="newton-cholesky"))
    model.fit(found.rows, found.rows["y"])
    test = found.test_rows
    np.testing.assert_allclose(found.model.predict_proba(test), model.predict_proba(test), atol=1e-6)
    for group, row in found.by_group.iterrows():
        own = test[test["group"] == group]
        assert row["risk"] == pytest.approx(log_loss(own["y"], model.predict_proba(own)), abs=1e-6)


def test_the_chosen_model_weights_groups_as_its_table_says() -> None:
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
    # groups weighted so that group z counts q_z
    size = rows["group"].value_counts()
    full = rows["group"].map({g: q * len(rows) / size[g] for g, q in choice["weights"].items()})
    scale = scaled_as(found)
    by_hand = LogisticRegression(C=chosen["C"], tol=1e-10, solver="newton-cholesky")
    by_hand.fit(scale.transform(rows[["x", "z"]]), rows["y"], 1 + chosen["strength"] * (full - 1))
    tested = by_hand.predict(scale.transform(found.test_rows[["x", "z"]]))
    assert (tested == found.test_rows["predicted"]).mean() > 0.99
    assert choice["sentence"] in unescape(found.report()).replace("\u00a0", " ")
    plain = curate(few, "y", "g", 200, strategy="uncurated", compare=2, final="plain")
    assert plain.summary["choice"]["sentence"] == "Plain: asked for."
    own = plain.result.final.query("strategy == 'uncurated' and trial == 0")["final_test_accuracy"]
    assert np.allclose(plain.by_group["accuracy"], own)
    with pytest.raises(ValueError, match="final must be 'chosen' or 'plain'"):
        curate(frame, "y", "g", 40, final="best")


def test_a_candidate_is_called_the_same_in_the_sentence_and_in_the_table() -> None:
    tried = (Candidate(0.0, 1.0, 0.4, 0.1, 0.0, 0.0, {}), Candidate(0.0, 0.1, 0.3, 0.1, 0.1, 0.2, {}))
    why = f"the best candidate, {tried[1].name}, is not clearly better"
    found = choice_values(Choice(tried[0].name, why, "error", {}, tried))
    assert found is not None
    names = [row["name"] for row in found["candidates"]]
    assert names == ["plain, C=1", "equal weights, C=0.1"]
    assert f"candidate, {names[1]}," in found["sentence"]

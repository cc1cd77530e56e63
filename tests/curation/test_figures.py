"""The figures of a report against scikit-learn, fairlearn and scipy; what its intervals promise, by simulation."""

from typing import Any

import fairlearn.metrics as fair
import numpy as np
import pytest
from evidence.random_groups import random_groups
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.calibration import calibration_curve
from sklearn.metrics import accuracy_score, balanced_accuracy_score

from evenhand.curation.figures import Predictions, by_group, overall, picked, worst_off
from evenhand.risks import as_risk


class _Model:
    """Predicts what it is given."""

    def __init__(self, classes: Any) -> None:
        self.classes = np.asarray(classes)

    def predict(self, X: Any) -> Any:
        return np.asarray(X)


def made(
    group: Any, y: Any, predicted: Any, *, classes: int = 2, risk: Any = "error", positive: int | None = 1
) -> Predictions:
    group, y, predicted = (np.asarray(values, dtype=np.int64) for values in (group, y, predicted))
    measure = as_risk(risk, positive if risk in ("fnr", "fpr") else None).for_classes(np.arange(classes))
    chances = np.random.default_rng(0).dirichlet(np.ones(classes), len(y))
    names = tuple(f"g{z}" for z in range(group.max(initial=0) + 1))
    outcomes = measure.of_model(_Model(measure.classes), predicted, y)
    return Predictions(names, group, y, predicted, chances, measure, outcomes, 0, positive)


rows = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=120)


@given(rows)
@settings(deadline=None, max_examples=25)
def test_figures_are_those_of_fairlearn_and_scipy(found: list[tuple[int, int, int]]) -> None:
    group, y, predicted = map(list, zip(*found, strict=True))
    m = max(group) + 1
    metrics = {
        "accuracy": accuracy_score,
        "false_negative_rate": fair.false_negative_rate,
        "false_positive_rate": fair.false_positive_rate,
        "selection_rate": fair.selection_rate,
        "count": fair.count,
    }
    frame = fair.MetricFrame(metrics=metrics, y_true=y, y_pred=predicted, sensitive_features=group)
    table = made(group, y, predicted)
    for z, row in enumerate(by_group(table, least=1)):
        truth = [t for g, t in zip(group, y, strict=True) if g == z]
        if not truth:
            assert row["count"] == 0
            assert row["accuracy"] is None
            continue
        said = frame.by_group.loc[z]
        for name in ("accuracy", "selection_rate", "count"):
            assert row[name] == pytest.approx(said[name])
        # fairlearn says 0 where there is nobody to go wrong with; we say nothing
        assert row["false_negative_rate"] == (pytest.approx(said["false_negative_rate"]) if 1 in truth else None)
        assert row["false_positive_rate"] == (pytest.approx(said["false_positive_rate"]) if 0 in truth else None)
        right = round(said["accuracy"] * said["count"])
        exact = binomtest(right, int(said["count"])).proportion_ci(1 - 0.05 / m, "exact")
        assert (row["low"], row["high"]) == (pytest.approx(exact.low), pytest.approx(exact.high))
        assert (row["risk_low"], row["risk_high"]) == (pytest.approx(1 - exact.high), pytest.approx(1 - exact.low))
    assert overall(table)["accuracy"] == pytest.approx(accuracy_score(y, predicted))


def test_balanced_accuracy_and_calibration_are_scikit_learns() -> None:
    rng = np.random.default_rng(1)
    group, y, predicted = rng.integers(0, 2, 500), rng.integers(0, 2, 500), rng.integers(0, 2, 500)
    table = made(group, y, predicted)
    assert table.chances is not None
    for z, row in enumerate(by_group(table, least=30)):
        part = group == z
        assert row["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(y[part], predicted[part]))
        chance = table.chances[part, 1]
        happened, said = calibration_curve(y[part], chance, n_bins=10)
        weight = np.histogram(chance, np.linspace(0, 1, 11))[0]
        assert row["calibration_error"] == pytest.approx(np.average(abs(happened - said), weights=weight[weight > 0]))
        assert row["mean_prediction"] == pytest.approx(chance.mean())
        assert row["majority_accuracy"] == pytest.approx(np.mean(y[part] == 0))


@pytest.mark.parametrize("risk", ["error", "fnr", "fpr", "balanced", "costs:0,1;4,0"])
def test_an_interval_of_the_risk_covers_for_all_groups_at_once(risk: str) -> None:
    rng = np.random.default_rng(5)
    chance = np.array([[0.6, 0.1], [0.1, 0.2]])  # of true and predicted class
    truth = float(as_risk(risk, 1 if risk in ("fnr", "fpr") else None).for_classes([0, 1]).of_confusion(chance))
    missed = picked_missed = worst_missed = 0
    for _ in range(300):
        cell = rng.choice(4, 480, p=chance.ravel())
        found = by_group(made(np.repeat(np.arange(8), 60), cell // 2, cell % 2, risk=risk), least=1)
        outside = [not row["risk_low"] <= truth <= row["risk_high"] for row in found]
        missed += any(outside)
        worst, whole = picked(found), worst_off(found)
        assert worst is not None
        assert whole is not None
        picked_missed += outside[found.index(worst)]
        worst_missed += not whole["low"] <= truth <= whole["high"]
    assert max(missed, picked_missed, worst_missed) <= 0.07 * 300


def test_groups_with_few_test_rows_are_never_picked() -> None:
    table = made([0] * 40 + [1] * 40 + [2] * 5, [1] * 85, [1] * 30 + [0] * 10 + [1] * 40 + [0] * 5)
    found = by_group(table, least=30)
    assert [row["few"] for row in found] == [False, False, True]
    worst, shown, whole = picked(found), worst_off(found), worst_off(found, with_few=True)
    assert worst is not None
    assert shown is not None
    assert whole is not None
    assert worst["group"] == "g0"
    assert shown["groups"] == 2
    assert whole["high"] == 1.0
    assert picked(by_group(table, least=100)) is None


def test_the_log_loss_has_no_interval_but_the_accuracy_has() -> None:
    class Sure(_Model):
        def predict_proba(self, X: Any) -> Any:
            return np.tile([0.25, 0.75], (len(X), 1))

    measure = as_risk("log").for_classes([0, 1])
    y = np.array([0, 1, 1, 1])
    outcomes = measure.of_model(Sure([0, 1]), np.ones(4, dtype=int), y)
    found = by_group(Predictions(("a",), y * 0, y, y * 0 + 1, None, measure, outcomes, 1, 1), least=1)[0]
    assert found["risk"] == pytest.approx(-(np.log(0.25) + 3 * np.log(0.75)) / 4)
    assert found["risk_low"] is None
    assert worst_off([found]) is None
    assert found["low"] < 0.75 < found["high"]


def test_intervals_cover_on_random_groups() -> None:
    found = np.array([random_groups(16, seed) for seed in range(12)])
    assert (found[:, :2].mean(axis=0) >= 11 / 12).all()

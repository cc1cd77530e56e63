"""Risks against fairlearn's and scikit-learn's metrics, and what they refuse."""

from typing import Any

import numpy as np
import pytest
from fairlearn.metrics import MetricFrame, false_negative_rate, false_positive_rate
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, log_loss, zero_one_loss

import evenhand as eh
from evenhand.errors import InputError
from evenhand.learners import SklearnModel
from evenhand.risks import ERROR, Measure, as_risk

GROUPS = 4


class Fixed:
    """A model that predicts what it was given."""

    def __init__(self, predicted: Any, classes: Any) -> None:
        self.predicted, self.classes = np.asarray(predicted), np.asarray(classes)

    def predict(self, X: Any) -> Any:
        return self.predicted


def by_group(measure: Measure, predicted: Any, y: Any, group: Any) -> Any:
    outcomes = measure.of_model(Fixed(predicted, measure.classes), None, y)
    return measure.tally(outcomes, group, GROUPS).mean


@st.composite
def answers(draw: Any, classes: int = 2) -> tuple[Any, Any, Any]:
    n = draw(st.integers(40, 120))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return rng.integers(0, classes, n), rng.integers(0, classes, n), rng.integers(0, GROUPS, n)


@given(answers())
def test_two_classes_agree_with_metric_frame(found: Any) -> None:
    y, predicted, group = found
    metrics = {
        "error": zero_one_loss,
        "fnr": false_negative_rate,
        "fpr": false_positive_rate,
        "balanced": lambda y_true, y_pred: 1 - np.mean([np.mean(y_pred[y_true == k] == k) for k in np.unique(y_true)]),
    }
    frame = MetricFrame(metrics=metrics, y_true=y, y_pred=predicted, sensitive_features=group).by_group
    for name in metrics:
        risk = as_risk(name, positive=1 if name in ("fnr", "fpr") else None)
        ours = by_group(risk.for_classes([0, 1]), predicted, y, group)
        for z, value in frame[name].items():
            known = name in ("error", "balanced") or (y[group == z] == (name == "fnr")).any()
            assert ours[z] == pytest.approx(value, abs=1e-12) if known else np.isnan(ours[z])


@given(answers(classes=3))
def test_three_classes(found: Any) -> None:
    y, predicted, group = found
    names = np.array(["a", "b", "c"])
    costs = np.array([[0, 1, 4], [2, 0, 0.5], [3, 1, 0]])
    ours = {
        str(risk): by_group(risk.for_classes(names), names[predicted], names[y], group)
        for risk in (ERROR, as_risk("balanced"), as_risk("fnr", "b"), as_risk("fpr", "b"), eh.Costs(costs))
    }
    for z in np.unique(group):
        t, p = y[group == z], predicted[group == z]
        if len(np.unique(t)) == 3:
            assert ours["balanced"][z] == pytest.approx(1 - balanced_accuracy_score(t, p), abs=1e-12)
        assert ours["error"][z] == pytest.approx(np.mean(t != p), abs=1e-12)
        if (t == 1).any():
            assert ours["fnr"][z] == pytest.approx(np.mean(p[t == 1] != 1), abs=1e-12)
        if (t != 1).any():
            assert ours["fpr"][z] == pytest.approx(np.mean(p[t != 1] == 1), abs=1e-12)
        assert ours[str(eh.Costs(costs))][z] == pytest.approx(np.mean(costs[t, p]) / 4, abs=1e-12)


@given(answers(classes=3))
def test_confusions_give_the_same_as_examples(found: Any) -> None:
    y, predicted, group = found
    for risk in (ERROR, as_risk("balanced"), as_risk("fnr", 2), as_risk("fpr", 2), eh.Costs(1 - np.eye(3))):
        measure = risk.for_classes([0, 1, 2])
        confusion = np.zeros((GROUPS, 3, 3))
        np.add.at(confusion, (group, y, predicted), 1)
        np.testing.assert_allclose(measure.of_confusion(confusion), by_group(measure, predicted, y, group), atol=1e-12)


def test_log_loss_is_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.choice(["x", "y", "z"], 200)
    model = SklearnModel(LogisticRegression().fit(X, y))
    outcomes = as_risk("log").for_classes(["x", "y", "z"]).of_model(model, X, y)
    assert outcomes.values.mean() == pytest.approx(log_loss(y, model.predict_proba(X)), abs=1e-12)
    assert as_risk("log").claimed is ERROR


def test_costs_follow_the_order_of_their_classes() -> None:
    costs = eh.Costs([[0, 1], [5, 0]], classes=["no", "yes"])  # a missed yes is dear
    table = costs.for_classes(["no", "yes"]).table
    turned = eh.Costs([[0, 5], [1, 0]], classes=["yes", "no"]).for_classes(["no", "yes"]).table
    np.testing.assert_array_equal(table, [[0, 0.2, 0.2], [1, 0, 1]])
    np.testing.assert_array_equal(table, turned)


def test_the_positive_class_may_be_written_out() -> None:
    assert as_risk("fnr", "1").for_classes([0, 1]).relevant.tolist() == [False, True]
    assert as_risk("fpr", "0").for_classes([0, 1]).relevant.tolist() == [False, True]
    assert as_risk("fnr", "true").for_classes([False, True]).relevant.tolist() == [False, True]
    assert as_risk("fnr", True).for_classes(["false", "true"]).relevant.tolist() == [False, True]
    assert not as_risk("fnr", "ill").for_classes(["well"], final=False).relevant.any()


def test_a_prediction_that_is_no_class_is_wrong() -> None:
    y, predicted = np.array([0, 1]), np.array([7, 7])
    for risk, values in ((ERROR, [1, 1]), (as_risk("fnr", 1), [1, 1]), (as_risk("fpr", 1), [0, 0])):
        outcomes = risk.for_classes([0, 1]).of_model(Fixed(predicted, [0, 1, 7]), None, y)
        assert outcomes.values.tolist() == values
        assert outcomes.wrong.all()


def test_own_risk() -> None:
    def lateness(model: Any, X: Any, y: Any) -> Any:
        return np.abs(X[:, 0]) / 10, y == 1

    X, y = np.array([[1.0], [5.0], [3.0]]), np.array([1, 0, 1])
    measure = as_risk(lateness).for_classes([0, 1])
    tally = measure.tally(measure.of_model(Fixed([0, 0, 0], [0, 1]), X, y), np.zeros(3, dtype=int), 1)
    assert tally.mean[0] == pytest.approx(0.2)
    assert (tally.behind[0], tally.n[0], tally.wrong[0]) == (2, 3, 2)
    assert str(as_risk(lateness)) == "lateness"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: as_risk("f1"), "unknown risk 'f1'"),
        (lambda: as_risk("fnr"), "needs the positive class"),
        (lambda: as_risk("error", positive=1), "has no use for it"),
        (lambda: as_risk("fnr", "sick").for_classes(["ill", "well"]), "positive='sick' is not a class"),
        (lambda: eh.Costs([[0, 1, 2], [1, 0, 1]]), "row and a column"),
        (lambda: eh.Costs([[0, 1], [np.nan, 0]]), "numbers from 0 up"),
        (lambda: eh.Costs([[0, 1], [-1, 0]]), "numbers from 0 up"),
        (lambda: eh.Costs([[0, 0], [0, 0]]), "all costs are 0"),
        (lambda: eh.Costs([[2, 2], [2, 2]]), "all costs are 2"),
        (lambda: eh.Costs([["a", "b"], ["c", "d"]]), "table of numbers"),
        (lambda: as_risk("fnr", np.array([0, 1])), "must be one class"),
        (lambda: eh.Costs([[0, 1], [1, 0]]).for_classes([0, 1, 2]), "2 classes, but there are 3"),
    ],
)
def test_refused(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize(
    ("gives", "message"),
    [
        (np.zeros(3), "must give two arrays"),
        ((np.zeros(2), np.ones(3)), "for 3 examples"),
        ((np.array([0.1, np.nan, 0.2]), np.ones(3)), "gave nan"),
        ((np.array([0.1, 2.0, 0.2]), np.ones(3)), r"gave 2.0 .* \[0, 1\]"),
        ((np.zeros(3), np.array([0.2, 1, 1])), "true or false"),
        ((["a", "b", "c"], np.ones(3)), "gave no numbers"),
    ],
)
def test_own_risks_are_checked(gives: Any, message: str) -> None:
    measure = as_risk(lambda model, X, y: gives).for_classes([0, 1])
    with pytest.raises(InputError, match=message):
        measure.of_model(Fixed([0, 0, 0], [0, 1]), np.zeros((3, 1)), np.array([0, 1, 0]))


def test_a_function_is_not_taken_for_a_risk_of_ours() -> None:
    def error(model: Any, X: Any, y: Any) -> Any:
        return np.full(len(y), 0.5), np.ones(len(y))

    with pytest.raises(InputError, match="named 'error', like a built-in risk"):
        as_risk(error)


def test_a_function_that_fails_is_named_and_changes_nothing() -> None:
    def careless(model: Any, X: Any, y: Any) -> Any:
        X[:] = 0
        return y * 0.0, y == y

    X, y = np.ones((2, 1)), np.array([0, 1])
    with pytest.raises(InputError, match=r"the risk 'careless' failed: ValueError: .*read-only") as raised:
        as_risk(careless).for_classes([0, 1]).of_model(Fixed([0, 0], [0, 1]), X, y)
    assert isinstance(raised.value.__cause__, ValueError)
    assert X.all()

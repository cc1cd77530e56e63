"""Learners and tables that leave little to choose: what comes out is plain, and it is said."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

import evenhand as eh
from evenhand.errors import LearnerError


def rows(sizes: list[int], label: Any = None) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    group = np.repeat([f"g{i}" for i in range(len(sizes))], sizes)
    X = rng.normal(size=(len(group), 3))
    y = X[:, 0] + rng.normal(size=len(group)) > 0 if label is None else label(group)
    return pd.DataFrame(X, columns=list("abc")).assign(group=group, y=np.where(y, "yes", "no"))


def simulate(frame: pd.DataFrame, learner: Any, **settings: Any) -> eh.Result:
    table = eh.Table(frame, label="y", groups="group")
    run = {"budget": 60, "batch": 10, "trials": 2, "final": "chosen"} | settings
    return eh.simulate(table, ["uniform"], learner, **run)


@pytest.mark.parametrize(
    ("sizes", "learner", "said"),
    [
        ([200, 200], KNeighborsClassifier(), "KNeighborsClassifier takes no sample_weight"),
        ([400], eh.Logistic(), "there is one group"),
        ([200, 200], eh.Minimax(rounds=2, folds=2), "Minimax is trained for the worst-off group already"),
    ],
)
def test_chosen_is_plain_and_it_is_said(sizes: list[int], learner: Any, said: str) -> None:
    frame = rows(sizes)
    with pytest.warns(UserWarning, match=f"the chosen models will be the plain ones: {said}"):
        final = simulate(frame, learner).final
    pd.testing.assert_series_equal(final["chosen_test_accuracy"], final["final_test_accuracy"], check_names=False)
    curated = eh.curate(frame, "y", "group", 60, learner=learner, batch=10, compare=2)
    assert said in curated.model.choice.why
    assert curated.model.choice.chosen == "plain"
    assert said in curated.report()


@pytest.mark.parametrize("learner", [eh.Logistic(), LogisticRegression()], ids=["own", "scikit-learn"])
@pytest.mark.parametrize(
    "frame",
    [
        rows([300, 3]),
        rows([150, 150], lambda group: (group == "g0") | (np.arange(300) % 2 == 0)),
        rows([150, 150], lambda group: np.arange(300) % 100 == 0),
    ],
    ids=["three rows", "a group of one class", "folds of one class"],
)
def test_few_rows_and_few_of_a_class_are_taken_as_they_are(frame: pd.DataFrame, learner: Any) -> None:
    assert simulate(frame, learner, budget=40).final["mixture"].notna().all()
    curated = eh.curate(frame, "y", "group", 40, learner=learner, batch=5, compare=0)
    assert curated.model.choice is not None
    assert len(curated.rows) == 40
    X, y, group = frame[list("abc")].to_numpy(), frame["y"].to_numpy(), frame["group"].to_numpy()
    fair = eh.Minimax(learner, rounds=3).fit(X, y, groups=group)
    assert fair.weights_.sum() == pytest.approx(1)
    assert set(fair.predict(X)) <= {"yes", "no"}


def test_a_classifier_that_wants_more_rows_is_named() -> None:
    with pytest.raises(LearnerError, match=r"KNeighborsClassifier failed in predict.*n_neighbors"):
        simulate(rows([200, 200]), KNeighborsClassifier(), batch=1, final="plain")

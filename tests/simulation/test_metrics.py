import statistics

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import evenhand as eh
from evenhand.simulation import metrics
from evenhand.simulation.trace import differences


def test_the_worst_group_is_the_same_in_arrays_frames_and_lists():
    accuracy = np.random.default_rng(0).random((5, 3))
    expected = [min(row) for row in accuracy.tolist()]
    assert metrics.worst(accuracy).tolist() == expected
    rows = [{"trial": t, "accuracy": value} for t, row in enumerate(accuracy) for value in row]
    assert metrics.worst_by(pd.DataFrame(rows), ["trial"], "accuracy").tolist() == expected
    assert [row[metrics.worst_first(row.tolist())[0]] for row in accuracy] == expected
    assert metrics.gap(accuracy).tolist() == [max(row) - min(row) for row in accuracy.tolist()]


def test_groups_without_test_rows_come_last_and_do_not_count():
    assert metrics.worst_first([None, 0.5, 0.5, None, 0.1]) == [4, 1, 2, 0, 3]
    frame = pd.DataFrame({"trial": [0, 0, 1, 1], "accuracy": [0.9, np.nan, 0.7, 0.8]})
    assert metrics.worst_by(frame, ["trial"], "accuracy").tolist() == [0.9, 0.7]


def test_spread_is_that_of_the_statistics_module():
    values = np.random.default_rng(1).random((4, 7))
    mean, sd = metrics.spread(values)
    assert mean == pytest.approx([statistics.mean(row) for row in values.tolist()])
    assert sd == pytest.approx([statistics.stdev(row) for row in values.tolist()])
    assert metrics.spread(values[:, :1])[1].tolist() == [0.0] * 4


def test_differences_are_of_the_trials_both_have():
    rng = np.random.default_rng(2)
    rows = [
        {"trial": trial, "strategy": rule, "group": group, "test_accuracy": rng.random()}
        for rule, trials in (("a", range(8)), ("b", range(3, 11)), ("c", range(8, 9)))
        for trial in trials
        for group in "uv"
    ]
    final = pd.DataFrame(rows)
    (found,) = differences(final[final["strategy"] != "c"], ["a", "b"])
    worst = final.groupby(["strategy", "trial"])["test_accuracy"].min()
    ends = stats.ttest_rel(worst["a"].loc[3:], worst["b"].loc[:7]).confidence_interval(0.95)
    assert found["trials"] == 5
    assert (found["low"], found["high"]) == pytest.approx((ends.low, ends.high))
    # no trial, or a single one, has no interval
    assert differences(final[final["strategy"] != "b"], ["a", "c"]) == []
    assert differences(final[final["strategy"] != "a"], ["b", "c"]) == []


def test_a_strategy_without_a_finished_trial_draws_an_empty_line():
    result = eh.simulate(eh.SyntheticModel1.instance("I"), ["uniform"], budget=20, trials=2)
    result.labels = ("uniform", "greedy")
    lines = result.plot_worst_group().axes[0].lines
    assert [len(line.get_xdata()) for line in lines] == [10, 0]

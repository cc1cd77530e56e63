import statistics

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import evenhand as eh
from evenhand.simulation import metrics


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


def test_pairs_are_the_trials_both_have():
    generator = np.random.default_rng(2)
    a = pd.Series(generator.random(8), index=range(8))
    b = pd.Series(generator.random(8), index=range(3, 11))
    gain, trials = metrics.paired_by_trial(a, b)
    assert trials == 5
    assert gain is not None
    test = stats.ttest_rel(a.loc[3:].to_numpy(), b.loc[:7].to_numpy())
    ends = test.confidence_interval(0.95)
    assert gain == pytest.approx(((a.loc[3:] - b.loc[:7]).mean(), ends.low, ends.high))
    assert metrics.paired_by_trial(a, b.loc[8:]) == (None, 0)


def test_a_strategy_without_a_finished_trial_draws_an_empty_line():
    result = eh.simulate(eh.SyntheticModel1.instance("I"), ["uniform"], budget=20, trials=2)
    result.labels = ("uniform", "greedy")
    lines = result.plot_worst_group().axes[0].lines
    assert [len(line.get_xdata()) for line in lines] == [10, 0]

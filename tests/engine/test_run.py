from itertools import islice

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.engine.run import Settings, each_round, run_block
from evenhand.engine.trials import Trials

SETTINGS = Settings(40, seed=2, evaluate=4)


def trials(rule):
    return Trials(eh.datasets.load("german"), rule, eh.Logistic(), SETTINGS, [0, 3])


@pytest.mark.parametrize("rule", [eh.Optimistic(c1=0.1), eh.Uniform()])
def test_rounds_stopped_and_taken_up_again_are_those_of_a_whole_run(rule):
    block = trials(rule)
    done = list(islice(each_round(block), 7))
    done += each_round(block, first=len(done))
    record = run_block(eh.datasets.load("german"), rule, eh.Logistic(), SETTINGS, [0, 3])
    assert np.array_equal([r.step.chosen for r in done], record.chosen)
    tested = [r.accuracy is not None for r in done]
    assert np.array_equal(tested, SETTINGS.evaluated())
    expected = record.accuracy[tested]
    assert np.array_equal([r.accuracy for r in done if r.accuracy is not None], expected)


def test_scores_come_after_every_round_where_somebody_wants_them():
    assert sum(r.losses is not None for r in each_round(trials(eh.Uniform()))) == 4
    assert all(r.losses is not None for r in each_round(trials(eh.Uniform()), score=True))
    assert all(r.accuracy is None for r in each_round(trials(eh.Uniform()), test=False))


@pytest.mark.parametrize("rule", [eh.Optimistic(), eh.Uniform()])
def test_a_group_that_runs_out_leaves_no_label_unspent(rule):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=300), "g": ["few"] * 31 + ["many"] * 269})
    frame["y"] = frame["x"] + rng.normal(size=300) > 0
    table = eh.Table(frame, label="y", groups="g", test=0.1)
    record = run_block(table, rule, eh.Logistic(), Settings(200, batch=10), [0, 1])
    assert record.labels[-1].tolist() == [200, 200]
    assert len(record.labels) > Settings(200, batch=10).rounds
    assert not np.isnan(record.accuracy[-1]).any()

import numpy as np
import pytest

import evenhand as eh
from evenhand.engine.run import Settings
from evenhand.experiments.peers import Peers, parse, run_block

SOURCE = eh.SyntheticModel1.instance("I")


def test_one_step_a_round_on_one_example_of_the_worst_group():
    """The first steps of one trial, by hand."""
    rule = Peers(epsilon=0.0, rate=0.5)
    record = run_block(SOURCE, rule, Settings(budget=40, seed=5, evaluate=100), [3])
    stream = SOURCE.open(5, [3])
    held = []
    for z in range(2):
        draw = stream.draw(np.array([z]), np.array([20]))
        X = np.column_stack([draw.X, np.ones(20)])
        held.append((X[1::2], draw.y[1::2]))
    w = np.zeros(3)
    for z in range(2):
        X, y = held[z]
        assert record.validation_loss[0, 0, z] == np.mean((X @ w > 0) != (y == 1))
    assert len(record.chosen) == 20
    assert (record.labels == 40).all()
    assert (record.counts.sum(axis=-1)[:, 0] == np.arange(1, 21)).all()
    worst_chosen = record.validation_loss[np.arange(20), 0, record.chosen[:, 0]]
    np.testing.assert_array_equal(worst_chosen, record.validation_loss[:, 0].max(axis=-1))


def test_exploring_follows_the_population():
    source = eh.SyntheticModel1(SOURCE.means, shares={"u": 0.3, "v": 0.7})
    record = run_block(source, Peers(epsilon=1.0), Settings(budget=1000), range(20))
    share = record.counts[-1, :, 0].sum() / record.counts[-1].sum()
    assert share == pytest.approx(0.3, abs=0.02)


def test_it_learns():
    record = run_block(SOURCE, Peers(passes=2), Settings(budget=400), range(20))
    worst = record.accuracy[-1].min(axis=-1).mean()
    assert len(record.labels) == 400
    assert 0.85 < worst < 1 - SOURCE.worst_risk(SOURCE.pi_star())


def test_trials_do_not_depend_on_their_company():
    together = run_block(SOURCE, Peers(), Settings(budget=100), [1, 2])
    alone = run_block(SOURCE, Peers(), Settings(budget=100), [2])
    np.testing.assert_array_equal(together.accuracy[:, 1], alone.accuracy[:, 0])


def test_tables_too():
    record = run_block(eh.datasets.load("german"), Peers(), Settings(budget=200), [0, 1])
    assert record.groups == ("men", "women")
    assert record.accuracy[-1].min() > 0.4


def test_text():
    assert parse("peers:epsilon=0.3,passes=2") == Peers(epsilon=0.3, passes=2)
    assert str(parse("peers")) == "peers:epsilon=0.1,rate=0.1,passes=1"

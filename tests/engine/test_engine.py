"""Random numbers by place, roles by the seed, and the counts behind a standing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import evenhand as eh
from evenhand.engine.engine import Engine
from evenhand.engine.labels import Labels
from evenhand.engine.memories.base import Scores
from evenhand.uniforms import Uniforms, uniform


def test_uniform_numbers_are_uniform_and_unrelated():
    found = uniform(3, np.arange(40)[:, None], np.arange(500))
    assert stats.kstest(found.ravel(), "uniform").pvalue > 0.001
    neighbours = np.corrcoef(found[:, :-1].ravel(), found[:, 1:].ravel())[0, 1]
    assert abs(neighbours) < 0.03
    across = np.corrcoef(found[:-1].ravel(), found[1:].ravel())[0, 1]
    assert abs(across) < 0.03
    assert not np.isin(uniform(4, np.arange(100)), found).any()
    assert not np.isin(uniform(4, np.arange(40)[:, None], np.arange(500)), found).any()
    assert uniform(4, 3) != uniform(3, 4)
    assert uniform(0, 4, 3) != uniform(0, 3, 4)


@given(st.integers(0, 2**70), st.lists(st.integers(0, 1000), min_size=1, max_size=6))
def test_uniforms_do_not_depend_on_the_way_there(seed, requests):
    trials = np.array([5, 9])
    uniforms = Uniforms(seed, 0, trials, 3)
    for k in requests:
        found = uniforms.at(np.array([k, k + 3]))
        assert np.array_equal(found[0], uniform(seed, 0, 5, k, np.arange(3)))
        assert np.array_equal(found[1], uniform(seed, 0, 9, k + 3, np.arange(3)))


def engine(validation=0.5, trials=(0,), m=2, seed=0):
    return Engine([f"g{i}" for i in range(m)], eh.Uniform(), None, trials=trials, seed=seed, validation=validation)


@given(
    st.floats(0.05, 0.95),
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 30)), min_size=1, max_size=12),
    st.integers(0, 10**6),
)
def test_roles_keep_each_groups_share(validation, deliveries, seed):
    e = engine(validation, m=3, seed=seed)
    for group, size in deliveries:
        where = np.full(size, group)
        roles = e.roles(np.zeros(size, dtype=int), where)
        e.tally(np.zeros(size, dtype=int), where, roles)
        told = e.counts[0] + e.held[0]
        assert (np.abs(e.held[0] - told * validation) <= 2).all()
        assert (e.held[0][told == 2] == 1).all()


def test_roles_of_a_mixed_delivery_are_those_of_its_groups():
    mixed, apart = engine(0.4, m=2), engine(0.4, m=2)
    group = np.array([0, 1, 1, 0, 0, 1, 0, 1, 1, 0])
    roles = mixed.roles(np.zeros(10, dtype=int), group)
    for g in (0, 1):
        own = np.flatnonzero(group == g)
        assert np.array_equal(apart.roles(np.zeros(len(own), dtype=int), group[own]), roles[own])


def test_every_row_may_validate():
    share = np.mean([engine(seed=s).roles(np.zeros(4, dtype=int), np.zeros(4, dtype=int)) for s in range(4000)], axis=0)
    assert np.allclose(share, 0.5, atol=0.04)


def test_recent_accuracies_are_one_per_refit_and_fresh_group():
    e = engine()
    one = np.zeros(2, dtype=int)
    for accuracy in (0.5, 0.6, 0.7):
        e.tally(one, one, np.array([False, True]))
        e.report(Scores.of_errors(np.full((1, 2), 10 - int(10 * accuracy)), np.full((1, 2), 10)))
    standing = e.standing().trial(0)
    assert standing.accuracies[0, :3].tolist() == [0.5, 0.6, 0.7]
    assert np.isnan(standing.accuracies[1]).all()
    assert standing.trend[0] == pytest.approx(3 / np.sqrt(3 * 2 * 11 / 18))
    assert standing.trend[1] == 0


def test_labels_of_one_kind():
    labels = Labels()
    assert labels.learn(labels.read(np.array([True, False])))
    assert not labels.learn(labels.read([False]))
    with pytest.raises(ValueError, match="different kinds"):
        labels.learn(["a"])
    with pytest.raises(ValueError, match="missing"):
        Labels().read([1.0, float("nan")])

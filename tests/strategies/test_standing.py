"""What is known per group where the risk is about some examples only: shares, warm-up, groups without a loss."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenhand as eh
from evenhand.engine.run import Settings, run_block
from evenhand.risks import as_risk
from evenhand.strategies import UNIFORMS
from evenhand.strategies.decision import KINDS
from evenhand.strategies.standing import awaited


def standing(loss_sum, validated, scored, pending=None, available=None):
    m = len(validated)
    zero = np.zeros(m, dtype=int)
    return eh.Standing(
        groups=tuple("abcdefgh"[:m]),
        counts=np.asarray(scored),
        pending=zero,
        validated=np.asarray(validated),
        pending_validation=zero if pending is None else np.asarray(pending),
        loss_sum=np.asarray(loss_sum, dtype=float),
        accuracies=np.full((m, 20), np.nan),
        trend=np.zeros(m),
        available=np.ones(m, dtype=bool) if available is None else np.asarray(available),
        starting=np.array(False),
        scored=None if scored is None else np.asarray(scored),
    )


def test_open_requests_count_by_the_share_the_risk_is_about():
    found = standing([2.0, 3.0, 1.0], [4, 10, 1], [8, 10, 4], pending=[6, 6, 0])
    assert found.mean_loss == pytest.approx([2 / (4 + 6 / 2), 3 / 16, 1.0])


@given(st.lists(st.tuples(st.integers(1, 99), st.integers(0, 9), st.integers(0, 99)), min_size=1, max_size=5))
def test_where_the_risk_is_about_all_it_is_the_plain_mean_to_the_last_bit(groups):
    n, pending, errors = (np.array(column) for column in zip(*groups, strict=True))
    found = standing(np.minimum(errors, n), n, n, pending)
    assert found.mean_loss.tolist() == replace(found, scored=None).mean_loss.tolist()
    assert found.mean_loss.tolist() == (np.minimum(errors, n) / (n + pending)).tolist()


def test_a_group_without_a_relevant_example_has_the_largest_loss_of_the_others():
    assert standing([0, 2, 3], [0, 10, 10], [9, 20, 20]).mean_loss.tolist() == [0.3, 0.2, 0.3]
    # not that of a group that cannot be asked any more: nobody could be sent there instead
    gone = standing([0, 2, 3], [0, 10, 10], [9, 20, 20], available=[True, True, False])
    assert gone.mean_loss.tolist() == [0.2, 0.2, 0.3]
    assert standing([0, 0], [0, 0], [9, 9]).mean_loss.tolist() == [0.0, 0.0]
    # nothing scored at all is something else: no guess is made
    assert standing([0, 3], [0, 10], [0, 10]).mean_loss.tolist() == [0.0, 0.3]


def test_a_block_has_what_its_trials_have():
    parts = [standing([0, 2], [0, 4], [5, 8]), standing([1, 0], [2, 0], [9, 3])]
    names = [name for name in vars(parts[0]) if name not in ("groups", "population", "batch")]
    block = replace(parts[0], **{name: np.stack([getattr(part, name) for part in parts]) for name in names})
    for j, part in enumerate(parts):
        assert block.mean_loss[j].tolist() == part.mean_loss.tolist() == block.trial(j).mean_loss.tolist()
        uniforms = np.full(UNIFORMS, 0.5)
        assert eh.Optimistic()(block, np.tile(uniforms, (2, 1))).index[j] == eh.Optimistic()(part, uniforms).index


@pytest.mark.parametrize(
    ("scored", "validated", "told", "batch", "waits"),
    [
        (0, 0, 500, 1, True),  # nothing is scored: there is nothing to compare
        (5, 0, 10, 1, True),
        (9, 0, 19, 1, True),
        (10, 0, 20, 1, False),  # patience is over
        (40, 0, 80, 50, True),  # but never before one request of this size was answered
        (50, 0, 100, 50, False),
        (1, 1, 2, 1, False),
    ],
)
def test_warm_up_waits_for_a_relevant_example_but_not_for_ever(scored, validated, told, batch, waits):
    arrays = (np.array([n]) for n in (scored, validated, told))
    assert awaited(np.array([True]), *arrays, batch).tolist() == [waits]
    assert not awaited(np.array([False]), np.array([0]), np.array([0]), np.array([0]), batch).any()


class OneSided(eh.SyntheticModel1):
    """Group v never has the label 1."""

    def examples(self, group, normals):
        X, y = super().examples(group, normals)
        return (X, y) if group == 0 else (X, np.zeros_like(y))


def test_a_group_without_positives_does_not_hold_up_the_run():
    source = OneSided(eh.SyntheticModel1.instance("I").means)
    record = run_block(source, eh.Optimistic(), eh.Logistic(), Settings(200, risk=as_risk("fnr", 1)), range(4))
    kinds = np.array(KINDS)[record.kind]
    assert (kinds == "warm-up").sum(axis=0).max() <= 20
    assert (kinds[-1] != "warm-up").all()
    assert np.isnan(record.validation_loss[-1, :, 1]).all()
    assert (record.counts[-1] > 10).all()

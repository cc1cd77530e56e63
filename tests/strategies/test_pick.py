"""The choice of the largest score: one campaign and a block of trials alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from evenhand.strategies.base import either, pick

SCORES = hnp.arrays(float, st.tuples(st.integers(1, 5), st.integers(1, 6)), elements=st.sampled_from([0.0, 1.0, 2.5]))


@given(score=SCORES, data=st.data())
def test_one_campaign_is_a_block_of_one(score: Any, data: st.DataObject) -> None:
    allowed = data.draw(hnp.arrays(bool, score.shape).filter(lambda mask: mask.any(axis=1).all()))
    uniform = data.draw(hnp.arrays(float, len(score), elements=st.floats(0, 1, exclude_max=True)))
    together = pick(score, allowed, uniform)
    assert together.tolist() == [int(pick(*one)) for one in zip(score, allowed, uniform, strict=True)]
    assert allowed[np.arange(len(score)), together].all()


def test_a_score_that_is_no_number_is_refused() -> None:
    bad = np.array([[0.0, 1.0], [np.nan, 1.0]])
    for score in (bad, bad[1]):
        with pytest.raises(ValueError, match="not a number"):
            pick(score, np.ones(score.shape, dtype=bool), np.zeros(score.shape[:-1]))
    assert pick(bad[1], np.array([False, True]), np.array(0.5)) == 1  # nobody asks for that group


def test_either_takes_plain_truth_too() -> None:
    assert either(True, 1, 2) == 1
    assert either(np.array([True, False]), np.eye(2), np.zeros((2, 2))).tolist() == [[1, 0], [0, 0]]

"""A_opt on plain numbers chooses what the rule chooses on arrays, and says the same of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from evenhand.live.quick import as_quick, choose
from evenhand.standing import Standing
from evenhand.stats import RunningTrend
from evenhand.strategies import Greedy, Optimistic

COUNT = st.integers(0, 400)


@st.composite
def standings(draw: st.DrawFn) -> Standing:
    m = draw(st.integers(1, 6))
    column = st.lists(COUNT, min_size=m, max_size=m)
    validated = draw(column)
    accuracies = np.full((m, 4), np.nan)
    for z in range(m):
        values = draw(st.lists(st.floats(0, 1), max_size=4))
        accuracies[z, : len(values)] = values
    return Standing(
        groups=tuple(f"g{z}" for z in range(m)),
        counts=np.array(draw(column)),
        pending=np.array(draw(st.lists(st.integers(0, 3), min_size=m, max_size=m))),
        validated=np.array(validated),
        pending_validation=np.array(draw(st.lists(st.integers(0, 3), min_size=m, max_size=m))),
        loss_sum=np.array([draw(st.floats(0, 4 * n)) for n in validated]),
        accuracies=accuracies,
        trend=RunningTrend.of(accuracies).trend,
        available=np.array(draw(st.lists(st.booleans(), min_size=m, max_size=m).filter(any))),
        starting=np.array(draw(st.booleans())),
    )


def even(*counts: int) -> Standing:
    """Nothing but counts to go by."""
    m = len(counts)
    zeros = np.zeros(m, dtype=int)
    none = np.full((m, 4), np.nan)
    return Standing(
        tuple(f"g{z}" for z in range(m)), np.array(counts), zeros, zeros + 1, zeros, np.zeros(m), none,
        np.zeros(m), np.ones(m, dtype=bool), np.array(False),
    )  # fmt: skip


@given(
    standing=standings(),
    c0=st.sampled_from([0.0, 0.1, 2.0]),
    c1=st.sampled_from([0.0, 0.3]),
    xi=st.one_of(st.sampled_from([0.5, 0.25, 1 / 3]), st.floats(0.01, 0.99)),
    coin=st.floats(0, 1, exclude_max=True),
)
@example(standing=even(2, 14), c0=0.1, c1=0.0, xi=0.25, coin=0.0)  # 2 is just what 16 examples ask for
@example(standing=even(10, 90), c0=0.1, c1=0.0, xi=0.5, coin=0.0)
@example(standing=even(3, 24), c0=0.1, c1=0.0, xi=1 / 3, coin=0.0)
@example(standing=even(0, 0), c0=0.1, c1=0.0, xi=0.5, coin=0.9)
def test_the_same_choice(standing: Standing, c0: float, c1: float, xi: float, coin: float) -> None:
    rule = Optimistic(c0=c0, c1=c1, xi=xi)
    known = as_quick(rule)
    assert known is not None
    place, found = choose(
        known,
        standing.groups,
        examples=standing.examples.tolist(),
        validated=(standing.validated + standing.pending_validation).tolist(),
        loss_sum=standing.loss_sum.tolist(),
        trend=standing.trend.tolist(),
        available=standing.available.tolist(),
        starting=bool(standing.starting),
        coin=coin,
    )
    expected = rule(standing, np.array([coin, 0.0, 0.0]))
    assert found == expected
    assert found.as_dict() == expected.as_dict()
    assert (place, found.group, found.kind) == (int(expected.index), expected.group, expected.kind)


def test_other_rules_are_left_to_arrays() -> None:
    class Mine(Optimistic):
        pass

    others: list[Any] = [
        Greedy(),
        Mine(),
        Optimistic(terms=(lambda s: s.counts * 0.0,)),
        Optimistic.theoretical(_bound),
    ]
    assert [as_quick(rule) for rule in others] == [None] * 4


def _bound(n: Any, groups: int = 1) -> Any:
    return 1 / np.sqrt(n)

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.sources import order as module
from evenhand.sources.order import Order


@given(st.integers(2, 200), st.integers(0, 50), st.integers(0, 2**32))
def test_an_order_is_a_permutation_with_the_test_rows_first(size: int, held_out: int, seed: int) -> None:
    held_out = min(held_out, size - 2)
    order = Order((seed, 0, 0), size, held_out=held_out)
    rows, validates = order.known()
    assert sorted([*order.test, *rows]) == list(range(size))
    assert len(validates) == len(rows) == order.pool
    assert not order.more()


def test_blocks_make_one_permutation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK", 16)
    order = Order((1, 2, 3), 50, held_out=5)
    first = order.known()[0].copy()
    while order.more():
        pass
    rows, _ = order.known()
    assert sorted([*order.test, *rows]) == list(range(50))
    assert rows[: len(first)].tolist() == first.tolist()


def test_halves_reshuffle_within_their_role() -> None:
    order = Order((0, 0, 0), 11, replace="halves")
    for _ in range(3):
        assert order.more()
    rows, validates = order.known()
    assert len(rows) == 44
    assert not set(rows[validates]) & set(rows[~validates])
    assert (np.bincount(rows) == 4).all()
    assert rows[:11].tolist() != rows[11:22].tolist()


def test_every_order_is_equally_likely() -> None:
    seen = [tuple(Order((seed, 0, 0), 3).known()[0].tolist()) for seed in range(1200)]
    counts = np.array([seen.count(found) for found in set(seen)])
    assert len(counts) == 6
    assert (np.abs(counts - 200) < 5 * np.sqrt(200)).all()

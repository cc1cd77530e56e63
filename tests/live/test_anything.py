"""Whatever people do, in whatever order: the ledger replays to the same state and spends no more than the budget."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import evenhand as eh
from evenhand import live
from evenhand.ledger import Ledger, State
from evenhand.live import LiveCampaign
from evenhand.live.verify import verify

BUDGET = 24
STEPS = st.one_of(
    st.tuples(st.just("ask"), st.integers(1, 4)),
    st.tuples(st.just("tell"), st.integers(1, 9)),
    st.tuples(st.just("tell again"), st.integers(1, 9)),
    st.tuples(st.just("abandon"), st.integers(1, 9)),
    st.tuples(st.just("wait"), st.integers(1, 100)),
    st.tuples(st.just("add"), st.integers(1, 5)),
    st.tuples(st.just("refit"), st.just(0)),
    st.tuples(st.just("retire"), st.sampled_from(["u", "v"])),
    st.tuples(st.just("other process"), st.just(0)),
)


def rows(k: int, n: int = 2) -> tuple[Any, Any]:
    rng = np.random.default_rng(k)
    return rng.normal(size=(n, 2)), np.arange(n) % 2


def do(kept: LiveCampaign, now: list[float], step: str, value: Any) -> None:
    """One step; those that make no sense are refused."""
    try:
        if step == "ask":
            kept.ask_many(value)
        elif step in ("tell", "tell again"):
            kept.tell(value, *rows(value))
        elif step == "abandon":
            kept.abandon(value)
        elif step == "wait":
            now[0] += value
        elif step == "add":
            kept.add(*rows(100 + value, value), ["u"] * value)
        elif step == "refit":
            kept.refit()
        else:
            kept.retire(value, back=True)
    except (ValueError, eh.NothingToAsk):
        pass


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(steps=st.lists(STEPS, min_size=5, max_size=40), rule=st.sampled_from(["optimistic:c1=0.1", "greedy", "uniform"]))
def test_anything(steps: list[tuple[str, Any]], rule: str) -> None:
    now = [1e9]
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/l.db?synchronous=normal"
        with Ledger(url, create=True) as ledger:
            live.create(ledger, "s", ["u", "v"], rule, budget=BUDGET, lease="60s", refit="background")
            kept = LiveCampaign(ledger, "s", clock=lambda: now[0])
            for step, value in steps:
                if step == "other process":
                    kept = LiveCampaign(ledger, "s", clock=lambda: now[0])
                else:
                    do(kept, now, step, value)
                state = kept.refresh()
                assert state.unspent >= 0
                assert state.asked == len(state.open) + len(state.expired) + state.answered + state.abandoned
            assert State().fold(ledger.events(kept.number)) == kept.refresh()
            assert State.from_json(kept.refresh().as_json()) == kept.refresh()
            assert verify(kept)["problems"] == []

"""A campaign says of every request why it was made."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.errors import NothingToAsk
from evenhand.strategies.decision import Decision


@pytest.mark.parametrize("strategy", ["optimistic", "epsilon-greedy:epsilon=0.5", "greedy", "uniform", "uncurated"])
def test_every_request_has_its_reason_before_it_is_made_and_afterwards(strategy: str) -> None:
    rng = np.random.default_rng(0)
    campaign = eh.Campaign(["u", "v"], strategy, budget=200, batch=2, warmup=2, population=[0.7, 0.3])
    before, asked = [], []
    while not campaign.done:
        before.append(campaign.explain())
        request = campaign.ask()
        X = rng.normal(size=(request.size, 2))
        campaign.tell(request, X, (X[:, 0] > (request.group == "v")).astype(int))
        asked.append(request)
    assert len(asked) == 50
    for early, request in zip(before, asked, strict=True):
        found = campaign.explain(request)
        assert found["decision"] == early["decision"]
        assert found["decision"]["group"] == request.group
        assert request.group in found["words"].replace(",", " ").replace(".", " ").split()
        if found["decision"]["kind"] == "score":
            scores = {name: sum(term[name] for term in found["decision"]["terms"].values()) for name in ("u", "v")}
            assert scores[request.group] == max(scores.values())


def losing(**settings: Any) -> eh.Campaign:
    """A campaign whose scores come from outside: `u` is worst off, then `v`, then `w`."""
    c = eh.Campaign(["u", "v", "w"], "greedy", None, budget=60, **settings)
    for _ in range(3):
        c.tell(c.ask(), n=2)
    c.tell_losses({"u": (0.9, 0.1, 4), "v": (0.5, 0.5, 4), "w": (0.1, 0.9, 4)})
    return c


def test_a_group_that_cannot_be_asked_is_neither_beaten_nor_next() -> None:
    c = losing()
    assert "is the largest. " in c.explain()["words"]
    assert "Next comes v" in c.explain()["words"]
    c.retire("u")
    words = c.explain()["words"]
    assert words.startswith("v may be the group worst off: its score")
    assert "the largest of the groups that can be asked" in words
    assert "u" not in words.replace(",", " ").replace(".", " ").split()
    c.retire("v", back=False)
    assert "Next comes" not in c.explain()["words"]
    request = c.ask()
    assert c.explain(request)["words"] == c.explain(request.id)["words"]
    assert "Next comes" not in c.explain(request)["words"]


def test_a_group_whose_pool_is_used_up_does_not_come_next() -> None:
    c = eh.Campaign(None, "uniform", None, budget=60)
    c.pool(pd.DataFrame({"id": range(24), "group": ["u"] * 20 + ["v"] * 4, "x": range(24)}))
    while c.status()["groups"]["v"]["left"]:
        c.tell_labels(dict.fromkeys(c.ask().examples, 1))
    for _ in range(3):
        c.tell_labels(dict.fromkeys(c.ask().examples, 1))
    words = c.explain()["words"]
    assert words.startswith("u has the fewest examples of the groups that can be asked")


def test_once_the_budget_is_spent_the_last_request_is_explained() -> None:
    c = eh.Campaign(["u", "v"], "uniform", None, budget=4)
    for _ in range(2):
        last = c.ask()
        c.tell(last, n=2)
    found = c.explain()
    assert found["request"] == last.id
    assert found["decision"] == c.explain(last)["decision"]
    assert found["words"].startswith("Nothing can be asked (budget spent). The last request: ")
    with pytest.raises(NothingToAsk, match="no pool yet"):
        eh.Campaign(None, "uniform", None, budget=40).explain()


def test_done_needs_no_strategy_of_ones_own(tmp_path: Path) -> None:
    def mine(standing: Any, uniforms: Any) -> Any:
        return Decision.of(standing, "u")

    url = f"sqlite:///{tmp_path / 'l.db'}"
    with eh.Campaign.create(url, "c", ["u", "v"], mine, None, budget=4) as c:
        c.tell(c.ask(), n=2)
        with eh.Campaign.open(url, "c") as stranger:
            assert stranger.done is False, "there may be more to ask"
            assert stranger.status()["nothing_to_ask"] is None
            c.tell(c.ask(), n=2)
            assert stranger.done is True, "the budget is spent, whatever the strategy says"

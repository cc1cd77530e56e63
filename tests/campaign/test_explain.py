"""A campaign says of every request why it was made."""

import numpy as np
import pytest

import evenhand as eh


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

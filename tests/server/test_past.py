"""Histories behind the page: short ones come with it, long ones after it."""

from __future__ import annotations

import numpy as np
import pytest

import evenhand as eh
from evenhand.server.pages import past
from evenhand.server.pages.past import Histories


def test_a_long_history_is_not_read_while_a_page_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = eh.Campaign(["u", "v"], "uniform", budget=100)
    for _ in range(3):
        campaign.tell(campaign.ask(), np.eye(2), [0, 1])
    histories = Histories()
    found = histories.at_hand(campaign)  # short: at once
    assert found is not None
    assert found.points[-1].labels == 6
    monkeypatch.setattr(past, "_SHORT", 2)
    others = Histories()
    assert others.at_hand(campaign) is None
    assert others.at_hand(campaign) is None  # nor did asking begin to read it
    assert others.begin(campaign).result(20).points[-1].labels == 6
    campaign.tell(campaign.ask(), np.eye(2), [0, 1])
    again = others.at_hand(campaign)  # known now, and followed
    assert again is not None
    assert again.points[-1].labels == 8
    for one in (histories, others):
        one.shutdown()

"""What the tests of connectors share."""

from __future__ import annotations

import pytest
from tests.connectors.paper import Paper, campaign, rows

from evenhand.connectors import Sync


@pytest.fixture
def pair():
    tool, c = Paper(rows()), campaign()
    return tool, c, Sync(c, tool, features=["age"])

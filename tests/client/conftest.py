"""One server for all tests of the client, and the database it serves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.server.conftest import Running, start

__all__ = ["start"]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The database of the server."""
    return f"sqlite:///{tmp_path_factory.mktemp('client') / 'ledger.db'}"


@pytest.fixture(scope="module")
def server(database: str) -> Iterator[Running]:
    """A real server process on loopback."""
    found = Running(database)
    yield found
    found.stop()

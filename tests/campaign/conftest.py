"""A server for the tests that hold of a campaign wherever it is."""

from __future__ import annotations

import inspect
import itertools
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.server.conftest import Running

import evenhand as eh

Create = Callable[..., Any]
_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def server() -> Iterator[Any]:
    """The campaigns of one real server process, which all tests share."""
    with tempfile.TemporaryDirectory() as folder:
        running = Running(f"sqlite:///{folder}/ledger.db?synchronous=normal")
        with eh.connect(running.url) as found:
            yield found
        running.stop()


@pytest.fixture(scope="session")
def create_remote(server: Any) -> Create:
    """Makes campaigns on that server, as `Campaign.create` does in a database; fits come before asks."""

    def created(*given: Any, **settings: Any) -> Any:
        return server.create(f"survey {next(_NUMBERS)}", *given, **{"refit": "always", "seed": 0, **settings})

    return created


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out, on the server, what needs this process: a clock of its own, or what is marked `here`.

    A file with `ON_SERVER` names the tests that run there.
    """
    gone = [item for item in items if isinstance(item, pytest.Function) and _on_server(item) and _needs_this(item)]
    if gone:
        config.hook.pytest_deselected(items=gone)
        items[:] = [item for item in items if item not in set(gone)]


def _on_server(item: pytest.Function) -> bool:
    return hasattr(item, "callspec") and "server" in [item.callspec.params.get(name) for name in ("place", "ledger")]


def _needs_this(item: pytest.Function) -> bool:
    chosen = getattr(item.module, "ON_SERVER", None)
    if chosen is not None and item.originalname not in chosen:
        return True
    arguments = inspect.signature(item.function).parameters
    return item.get_closest_marker("here") is not None or not arguments.keys().isdisjoint({"clock", "ledger"})

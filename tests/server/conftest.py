"""A real server process on loopback, for each test that wants one."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest


class Running:
    """A server process, the address it answers at, and a client."""

    def __init__(self, database: str, options: tuple[str, ...] = (), environment: dict[str, str] | None = None) -> None:
        command = [sys.executable, "-m", "evenhand", "serve", "--db", database, "--port", "0", *options]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **(environment or {})},
        )
        self.url = self._address()
        self.client = httpx.Client(base_url=self.url, timeout=60, trust_env=False)
        self._wait()

    def _address(self) -> str:
        stdout: Any = self.process.stdout
        ready, _, _ = select.select([stdout], [], [], 60)
        line = stdout.readline() if ready else ""
        found = re.search(r"http://\S+", line)
        if found is None:
            raise AssertionError(f"the server did not start: {line!r}, exit {self.process.poll()}")
        return found[0].rstrip("/")

    def _wait(self) -> None:
        for _ in range(600):
            try:
                if self.client.get("/health").status_code == 200:
                    return
            except httpx.TransportError:
                time.sleep(0.1)
        raise AssertionError("the server does not answer")

    def post(self, path: str, body: Any = None, **options: Any) -> httpx.Response:
        return self.client.post(path, json={} if body is None else body, **options)

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def stop(self) -> int:
        self.client.close()
        self.process.terminate()
        try:
            self.process.communicate(timeout=30)
            return self.process.returncode
        except subprocess.TimeoutExpired:
            self.kill()
            raise


Start = Callable[..., Running]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts servers, and stops those that still run at the end."""
    running: list[Running] = []

    def begin(database: str, *options: str, **environment: str) -> Running:
        running.append(Running(database, options, environment))
        return running[-1]

    yield begin
    for server in running:
        if server.process.poll() is None:
            server.stop()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One server over SQLite for all tests of a file; each makes campaigns of its own."""
    folder: Path = tmp_path_factory.mktemp("server")
    found = Running(f"sqlite:///{folder / 'ledger.db'}", ("--max-wait", "20"))
    yield found
    found.stop()

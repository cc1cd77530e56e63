"""A real server process on loopback, for each test that wants one."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest


class Running:
    """A server process, the address it answers at, and a client."""

    def __init__(
        self,
        database: str,
        options: tuple[str, ...] = (),
        environment: dict[str, str] | None = None,
        *,
        before: str = "",
        token: str | None = None,
    ) -> None:
        # `before` is run in the server's process first, e.g. to shorten a limit that a test would wait for too long
        code = f"{before}\nimport sys\nfrom evenhand.cli import main\nsys.argv[0] = 'evenhand'\nmain()"
        start = ["-c", code] if before else ["-m", "evenhand"]
        command = [sys.executable, *start, "serve", "--db", database, *options]
        command += [] if "--port" in options else ["--port", "0"]
        self._log = tempfile.NamedTemporaryFile("w+", prefix="evenhand-log-", encoding="utf-8")  # noqa: SIM115
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env={**os.environ, **(environment or {})},
        )
        self._authorization = {} if token is None else {"Authorization": f"Bearer {token}"}
        self.url = self._address().replace("0.0.0.0", "127.0.0.1")
        self.client = httpx.Client(base_url=self.url, timeout=60, trust_env=False, headers=self._authorization)
        self._wait()

    def _address(self) -> str:
        stdout: Any = self.process.stdout
        ready, _, _ = select.select([stdout], [], [], 60)
        line = stdout.readline() if ready else ""
        found = re.search(r"http://\S+", line)
        if found is None:
            raise AssertionError(f"the server did not start: {line!r}, exit {self.process.poll()}: {self.log}")
        return found[0].rstrip("/")

    def _wait(self) -> None:
        for _ in range(600):
            try:
                if self.client.get("/health").status_code == 200:
                    return
            except httpx.TransportError:
                time.sleep(0.1)
        raise AssertionError("the server does not answer")

    @property
    def port(self) -> int:
        return int(httpx.URL(self.url).port or 0)

    @property
    def log(self) -> str:
        """What the server wrote to standard error so far."""
        return Path(self._log.name).read_text(encoding="utf-8")

    def memory(self) -> int:
        """The resident memory of the server's process in bytes."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def post(self, path: str, body: Any = None, **options: Any) -> httpx.Response:
        return self.client.post(path, json={} if body is None else body, **options)

    def kill(self) -> None:
        self.client.close()
        self.process.kill()
        self.process.communicate()
        self._log.close()

    def stop(self) -> int:
        self.client.close()
        self.process.terminate()
        return self.wait()

    def wait(self) -> int:
        """Wait until the process has ended."""
        try:
            self.process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        self._log.close()
        return self.process.returncode


Start = Callable[..., Running]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts servers, and stops those that still run at the end."""
    running: list[Running] = []

    def begin(database: str, *options: str, before: str = "", token: str | None = None, **environment: str) -> Running:
        running.append(Running(database, options, environment, before=before, token=token))
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

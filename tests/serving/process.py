"""A server process that can be killed and started again at the same place."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from http.client import HTTPConnection
from typing import Any

import orjson


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Server:
    """`evenhand serve` on a port of its own."""

    def __init__(self, database: str, *options: str, **environment: str) -> None:
        self.port = free_port()
        self._command = [
            sys.executable, "-m", "evenhand", "serve", "--db", database, "--port", str(self.port), *options
        ]  # fmt: skip
        self._environment = {**os.environ, **environment}
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self._environment
        )
        for _ in range(600):
            try:
                if call(self.port, "GET", "/ready")[0] == 200:
                    return
            except OSError:
                time.sleep(0.05)
        raise RuntimeError("the server does not answer")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(60)


def call(port: int, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    """One request on a connection of its own."""
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        return send(connection, method, path, None if body is None else orjson.dumps(body), headers)
    finally:
        connection.close()


def send(
    connection: HTTPConnection, method: str, path: str, body: bytes | None, headers: dict[str, str]
) -> tuple[int, Any]:
    connection.request(method, path, body, {"Content-Type": "application/json", **headers})
    found = connection.getresponse()
    data = found.read()
    return found.status, orjson.loads(data) if data[:1] in b"{[" and data else data

"""What clients do that are slow, broken or hostile: memory stays bounded and everybody else is served."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.server.conftest import Running

# a test would wait for the real limits too long: 10 s and 30 s, and 4,000 connections
_SHORTER = """
from evenhand.server import connections, incoming
connections.HEAD_SECONDS, connections.STALLED_SECONDS, connections.MOST_CONNECTIONS = 1.0, 1.0, 40
incoming.BODY_SECONDS = 1.0
"""
_MIB = 2**20


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder: Path = tmp_path_factory.mktemp("abuse")
    found = Running(f"sqlite:///{folder / 'ledger.db'}", before=_SHORTER)
    body = {"name": "c", "groups": ["u", "v"], "budget": 1000, "batch": 50, "learner": "none"}
    assert found.post("/api/campaigns", body).status_code == 201
    found.post("/api/campaigns/c/ask")
    yield found
    found.stop()


Connect = Callable[[], socket.socket]


@pytest.fixture
def connect(guarded: Running) -> Iterator[Connect]:
    """Opens connections, and closes them at the end."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(socket.create_connection(("127.0.0.1", guarded.port), timeout=20))


def answer(connection: socket.socket) -> bytes:
    """What comes until the server closes."""
    parts = []
    with suppress(ConnectionResetError):
        while part := connection.recv(65536):
            parts.append(part)
    return b"".join(parts)


def serves(server: Running) -> None:
    """Somebody else asks and tells and does not wait."""
    with httpx.Client(base_url=server.url, trust_env=False, timeout=5) as client:
        assert client.get("/api/campaigns/c").status_code == 200


def test_heads_that_never_end_are_cut_off(guarded: Running, connect: Connect) -> None:
    slow = [connect() for _ in range(30)]
    for k, connection in enumerate(slow):
        if k % 2:  # half of them say nothing at all
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-A: ")
    serves(guarded)
    for connection in slow:
        assert answer(connection) == b""
    # the next request on a connection has a limit as well
    connection = connect()
    connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\nGET /hea")
    assert answer(connection).count(b"HTTP/1.1 200") == 1


def test_more_connections_than_there_may_be_push_out_those_that_wait(guarded: Running, connect: Connect) -> None:
    idle = [connect() for _ in range(60)]
    serves(guarded)
    assert answer(idle[0]) == b""


@pytest.mark.parametrize(
    "head", [b"X-A: " + b"a" * 300_000, b"".join(b"X-%d: a\r\n" % k for k in range(5000)), b"X-A: a\r\n" * 300]
)
def test_floods_of_headers_are_refused(guarded: Running, connect: Connect, head: bytes) -> None:
    connection = connect()
    with suppress(BrokenPipeError, ConnectionResetError):
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + head + b"\r\n\r\n")
    found = answer(connection)
    assert found.startswith(b"HTTP/1.1 431") or found == b""  # the answer may be lost to a client that goes on sending
    serves(guarded)


def test_what_is_not_http_is_a_problem_like_any_other(connect: Connect) -> None:
    connection = connect()
    connection.sendall(b"\x16\x03\x01 hello\r\n\r\n")
    found = answer(connection)
    assert found.startswith(b"HTTP/1.1 400")
    assert b"application/problem+json" in found
    assert b"nosniff" in found


def test_bodies_that_never_end_are_cut_off_and_hold_nobody_up(guarded: Running, connect: Connect) -> None:
    head = b"POST /api/campaigns/c/requests/1/tell HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    slow = [connect() for _ in range(20)]
    for connection in slow:
        connection.sendall(head + b'Content-Length: 1000\r\n\r\n{"X":')
    serves(guarded)
    assert guarded.post("/api/campaigns/c/ask").status_code == 200
    for connection in slow:
        found = answer_head(connection)
        assert found.startswith(b"HTTP/1.1 408"), found


def answer_head(connection: socket.socket) -> bytes:
    found = b""
    while b"\r\n\r\n" not in found and (part := connection.recv(65536)):
        found += part
    return found


def test_a_body_too_large_is_refused_and_takes_no_memory(guarded: Running) -> None:
    before = guarded.memory()

    def parts() -> Iterator[bytes]:
        for _ in range(100):
            yield b"a" * _MIB

    for headers in ({}, {"Content-Length": str(100 * _MIB)}):
        found = guarded.client.post(
            "/api/campaigns/c/requests/1/tell", content=parts(), headers={"Content-Type": "text/csv", **headers}
        )
        assert found.status_code == 413
        assert "bytes" in found.json()["detail"]
    assert guarded.memory() - before < 90 * _MIB  # of 200 that were sent


def test_large_bodies_wait_on_disk_for_their_turn(guarded: Running) -> None:
    """Twenty bodies of 7 MiB at once: in memory, and as rows of Python objects, they would be gigabytes."""
    data = b"x,label\n" + b"1,0\n" * (7 * _MIB // 4)
    before, peak, done = guarded.memory(), 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.02):
            peak = max(peak, guarded.memory())

    def send(codes: list[int]) -> None:
        with httpx.Client(base_url=guarded.url, trust_env=False, timeout=60) as client:
            kind = {"Content-Type": "application/json"}  # read whole, and no JSON
            codes.append(client.post("/api/campaigns/c/requests/1/tell", content=data, headers=kind).status_code)

    codes: list[int] = []
    threads = [threading.Thread(target=send, args=(codes,)) for _ in range(20)]
    watcher = threading.Thread(target=watch)
    watcher.start()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    watcher.join()
    assert codes == [422] * 20
    assert peak - before < 200 * _MIB  # how soon freed memory goes back differs from run to run


def test_json_that_is_deep_or_strange_is_bad_input(guarded: Running) -> None:
    for path in ("requests/1/tell", "ask", "labels"):
        for text in ("[" * 100_000, '{"a":' * 50_000, '{"X": 1e999}', '{"y": NaN}', "\xff", "", "null", '"' + "a" * 10):
            found = guarded.client.post(
                f"/api/campaigns/c/{path}", content=text.encode("latin-1"), headers={"Content-Type": "application/json"}
            )
            assert found.status_code == 422, (path, text[:20], found.text)
    zipped = {"Content-Type": "text/csv", "Content-Encoding": "gzip"}
    assert guarded.client.post("/api/campaigns/c/labels", content=b"x", headers=zipped).status_code == 415


def test_tables_of_cells_that_are_not_there_are_bad_input(guarded: Running) -> None:
    """A header of thousands of columns over thousands of empty rows: few bytes, billions of cells."""
    names = ",".join(f"c{k}" for k in range(20_000))
    keys = "".join(f'{{"c{k}": 1}}\n' for k in range(20_000))
    for kind, text in (
        ("text/csv", f"{names},label\n" + "1\n" * 20_000), ("application/x-ndjson", keys),
        ("application/x-ndjson", '{"a":' * 50_000), ("application/x-ndjson", "[" * 50_000), ("text/csv", "\xff\xfea"),
    ):  # fmt: skip
        found = guarded.client.post(
            "/api/campaigns/c/requests/1/tell", content=text.encode("latin-1"), headers={"Content-Type": kind}
        )
        assert found.status_code == 422, (text[:20], found.text[:300])
    for encoding in ("zlib", "idna", "unicode_escape", "a\x00b", "../utf-8"):
        found = guarded.client.post(
            "/api/campaigns/c/pool",
            params={"encoding": encoding},
            content=b"id\n",
            headers={"Content-Type": "text/csv"},
        )
        assert found.status_code == 422
    many = {"labels": {f"e{k}": 1 for k in range(20_000)}}
    assert len(guarded.post("/api/campaigns/c/labels", many).json()["refused"]) == 10_000
    nothing = {"X": [[[]]] * 100_000, "y": [[]] * 100_000}
    assert len(guarded.post("/api/campaigns/c/requests/1/tell", nothing).content) < 500


def test_a_reader_that_stops_reading_is_cut_off(guarded: Running) -> None:
    rows = {"X": np.zeros((100, 300)).tolist(), "y": [0, 1] * 50}
    assert guarded.post("/api/campaigns/c/requests/1/tell", rows).status_code == 200
    whole = len(guarded.client.get("/api/campaigns/c/examples").content)
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", guarded.port))
        connection.sendall(b"GET /api/campaigns/c/examples HTTP/1.1\r\nHost: localhost\r\n\r\n" * 300)
        time.sleep(2.5)
        connection.settimeout(20)
        assert len(answer(connection)) < 300 * whole
    serves(guarded)


def parquet(path: Path, table: pa.Table, **options: Any) -> bytes:
    pq.write_table(table, path, **options)
    return path.read_bytes()


def bombs(folder: Path) -> Iterator[tuple[str, bytes, int]]:
    path = folder / "a.parquet"
    yield "rows", parquet(path, pa.table({"x": np.zeros(3_000_000, dtype=np.int8)})), 413
    word = pa.DictionaryArray.from_arrays(np.zeros(1_000_000, dtype=np.int32), pa.array(["a" * 1_000_000]))
    yield "dictionary", parquet(path, pa.table({"x": word}), compression="zstd"), 413
    one = pa.table({"x": pa.array(["a" * 20_000_000] * 10), "label": [0, 1] * 5})
    yield "values", parquet(path, one, compression="zstd", use_dictionary=False), 413
    deep: Any = pa.int32()
    for _ in range(300):
        deep = pa.struct([("a", deep)])
    yield "nesting", parquet(path, pa.table({"x": pa.nulls(1, deep)})), 422
    whole = parquet(path, pa.table({"x": np.arange(1000.0), "label": np.arange(1000) % 2}))
    yield "broken", whole[:100] + b"\xff" * 200 + whole[300:], 422


def test_bomb_like_parquet_is_refused_before_it_is_unpacked(guarded: Running, tmp_path: Path) -> None:
    before = guarded.memory()
    for name, data, status in bombs(tmp_path):
        kind = {"Content-Type": "application/vnd.apache.parquet"}
        found = guarded.client.post("/api/campaigns/c/requests/1/tell", content=data, headers=kind)
        assert found.status_code in (413, 422), (name, found.text)
        assert found.status_code == status or name in ("broken", "nesting"), (name, found.text)
        serves(guarded)
    assert guarded.memory() - before < 200 * _MIB

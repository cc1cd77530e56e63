"""The verbs of a campaign over HTTP, against a real server process."""

from __future__ import annotations

import itertools
import json
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.server.conftest import Running, Start

_NUMBERS = itertools.count(1)


def new(server: Running, **settings: Any) -> str:
    name = f"c{next(_NUMBERS)}"
    made = server.post("/api/campaigns", {"name": name, "groups": ["u", "v"], "budget": 40, "batch": 2, **settings})
    assert made.status_code == 201, made.text
    return f"/api/campaigns/{name}"


def rows(k: int, n: int = 4) -> dict[str, Any]:
    rng = np.random.default_rng(k)
    y = (np.arange(n) % 2).tolist()
    return {"X": (rng.normal(size=(n, 2)) + np.array(y)[:, None]).tolist(), "y": y}


def test_a_campaign_from_the_first_ask_to_the_model(server: Running) -> None:
    at = new(server, refit="always")
    for k in range(5):
        asked = server.post(f"{at}/ask").json()["requests"][0]
        told = server.post(f"{at}/requests/{asked['request']}/tell", rows(k))
        assert told.status_code == 200
        assert told.json()["rows"] == 4
    status = server.client.get(at).json()
    assert status["used"] == 20
    assert status["scores"]["labels_behind"] <= 4  # refitted by the worker before the last ask
    model = server.client.get(f"{at}/model").json()["model"]
    assert model["format"] == "logistic"
    assert model["choice"]["chosen"]
    assert server.client.get(f"{at}/verify").json()["ok"]
    exported = server.client.get(f"{at}/export")
    assert len(exported.text.strip().splitlines()) == 21
    assert server.post(f"{at}/close", {"reason": "enough"}).json() == {"closed": "enough"}
    assert server.post(f"{at}/ask").status_code == 409


def test_the_same_key_gives_the_same_request(server: Running) -> None:
    at = new(server)
    first, again = (server.post(f"{at}/ask", headers={"Idempotency-Key": "k"}).json() for _ in range(2))
    assert first == again
    other = server.post(f"{at}/ask", {"count": 2}, headers={"Idempotency-Key": "k"})
    assert other.status_code == 409
    assert "was used for something else" in other.json()["detail"]
    gone = [server.post(f"{at}/requests/1/abandon", headers={"Idempotency-Key": "a"}) for _ in range(2)]
    assert [answer.status_code for answer in gone] == [200, 200]
    assert server.post(f"{at}/requests/1/abandon").status_code == 409


@pytest.mark.parametrize(
    ("path", "body", "status", "says"),
    [
        ("requests/9/tell", rows(0), 404, "never made"),
        ("requests/1/tell", {"X": [[1, 2]], "y": [0], "n": 1, "z": 2}, 422, "z"),
        ("requests/1/tell", rows(0, 5), 409, "which waits for 4"),
        ("change", {}, 422, "nothing to change"),
        ("change", {"learner": "sklearn.svm.SVC"}, 422, "over HTTP nothing that names code"),
        ("correct", {"labels": {"nobody": 1}}, 422, "there is no example"),
        ("extend", {}, 404, "Not Found"),
        ("certify", {"target": 2}, 422, "target"),
    ],
)
def test_what_is_wrong_is_said(server: Running, path: str, body: Any, status: int, says: str) -> None:
    at = new(server)
    server.post(f"{at}/ask")
    found = server.post(f"{at}/{path}", body)
    assert found.status_code == status, found.text
    assert found.headers["content-type"] == "application/problem+json"
    assert says in found.json()["detail"]


def test_told_differently_is_a_conflict_and_says_what_to_do(server: Running) -> None:
    at = new(server)
    server.post(f"{at}/ask")
    body = {**rows(0), "ids": ["a", "b", "c", "d"]}
    assert server.post(f"{at}/requests/1/tell", body).json()["rows"] == 4
    assert server.post(f"{at}/requests/1/tell", body).json()["known"] == 4
    body["y"][0] = 1
    found = server.post(f"{at}/requests/1/tell", body)
    assert found.status_code == 409
    assert "use correct" in found.json()["detail"]
    assert found.json()["refused"][0]["id"] == "a"


def test_csv_with_a_row_that_cannot_be_read_names_it(server: Running) -> None:
    at = new(server)
    server.post(f"{at}/ask")
    for text, why in (
        ('x,label\n1,0\n2,"b\n', 'row 1: a quote (") opens a cell and is never closed'),
        ("x,label\n1,0\n2\n", "row 1: it has 1 cell, the header has 2"),
    ):
        found = server.client.post(f"{at}/requests/1/tell", content=text, headers={"Content-Type": "text/csv"})
        assert found.status_code == 422
        assert why in found.json()["detail"]


def test_polling_with_an_etag_costs_nothing_until_something_happens(server: Running) -> None:
    at = new(server)
    first = server.client.get(at)
    again = server.client.get(at, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    server.post(f"{at}/ask")
    assert server.client.get(at, headers={"If-None-Match": first.headers["etag"]}).status_code == 200


def test_a_stream_tells_what_is_new(server: Running) -> None:
    at = new(server)
    with server.client.stream("GET", f"{at}/stream") as stream:
        lines = stream.iter_lines()
        assert "event: created" in itertools.islice(lines, 6)
        server.post(f"{at}/ask")
        assert next(line for line in lines if line.startswith("event")) == "event: asked"


def test_a_pool_comes_by_upload_and_its_rows_go_out(server: Running) -> None:
    at = new(server, groups=None)
    text = "id,who,x\n" + "".join(f"e{k},{'uv'[k % 2]},{k}\n" for k in range(40))
    pooled = server.client.post(f"{at}/pool?group=who", content=text, headers={"Content-Type": "text/csv"})
    assert pooled.status_code == 201, pooled.text
    assert pooled.json()["groups"] == {"u": 20, "v": 20}
    asked = server.post(f"{at}/ask").json()["requests"][0]
    todo = server.client.get(f"{at}/requests/1/rows").text.splitlines()
    assert todo[0] == "label,id,request,group,x"
    done = "id,label\n" + "".join(f"{name},{k % 2}\n" for k, name in enumerate(asked["examples"]))
    told = server.client.post(f"{at}/labels", content=done, headers={"Content-Type": "text/csv"})
    assert told.json()["rows"] == 4


def test_on_loopback_no_token_is_needed_but_the_name_must_be_right(server: Running) -> None:
    get = server.client.get
    assert get("/api/me").json()["kind"] == "local"
    for host in ("evil.example", "127.0.0.1.evil.example", "", "localhost.evil:80", "[::1", "a@localhost", "0.0.0.0"):
        assert get("/api/me", headers={"Host": host}).status_code == 421, host
    for host in ("localhost", f"localhost:{server.port}", "[::1]", "127.0.0.1:1", "127.7.0.3"):
        assert get("/api/me", headers={"Host": host}).status_code == 200, host
    for name in (
        "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Server", "X-Real-IP", "Via",
        "Forwarded-For", "X-Client-IP", "CF-Connecting-IP", "True-Client-IP", "CDN-Loop", "X-Original-Host",
    ):  # fmt: skip
        assert get("/api/me", headers={name: "127.0.0.1"}).status_code == 401, name
    assert get("/api/me", headers={"Authorization": "Bearer evh_wrong"}).status_code == 401
    assert server.post("/api/campaigns", {}, headers={"Origin": "http://evil"}).status_code == 403


def raw(server: Running, head: str) -> bytes:
    """The first line of the answer to a request as it is written."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(head.replace("\n", "\r\n").encode() + b"\r\n\r\n")
        return connection.recv(65536).partition(b"\r\n")[0]


def test_a_proxy_that_only_speaks_an_old_http_is_not_this_machine(server: Running) -> None:
    # nginx as it is configured by default: no header tells of it
    assert b" 401 " in raw(server, "GET /api/me HTTP/1.0\nHost: 127.0.0.1:8000\nConnection: close")
    assert b" 200 " in raw(server, "GET /api/me HTTP/1.1\nHost: 127.0.0.1:8000\nConnection: close")


def test_two_host_headers_are_refused(server: Running) -> None:
    for path in ("/api/me", "/health", "/ready", "/"):
        for hosts in ("Host: localhost\nHost: localhost", "Host: evil\nHost: localhost", "Host: localhost\nhost: evil"):
            assert b" 400 " in raw(server, f"GET {path} HTTP/1.1\n{hosts}"), (path, hosts)


def test_the_first_token_ends_access_without_one_for_good(start: Start, tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'a.db'}"
    server = start(database, before="from evenhand.server import stream\nstream._CHECK_SECONDS = 0")
    server.post("/api/campaigns", {"name": "c", "groups": ["u", "v"], "budget": 40, "learner": "none"})
    link = server.post("/api/campaigns/c/shares")
    assert link.status_code == 409  # whoever could follow it would need no link
    assert "token create" in link.json()["detail"]
    assert "token create" in server.client.post("/campaigns/c/share", headers={"Accept": "text/html"}).text
    with server.client.stream("GET", "/api/campaigns/c/stream", timeout=10) as stream:
        made = server.post("/api/tokens", {"name": "p", "role": "admin", "expires": 2.0}).json()
        assert list(stream.iter_lines())[-1:] == [""]  # it ended
    headers = {"Authorization": f"Bearer {made['token']}"}
    assert server.client.get("/api/me").status_code == 401
    assert server.client.get("/api/me", headers=headers).json()["role"] == "admin"
    assert server.post("/api/campaigns/c/shares", headers=headers).status_code == 201
    assert server.client.delete(f"/api/tokens/{made['id']}", headers=headers).status_code == 200
    # those who come by a proxy that leaves no trace must not become admins when the last token ends
    for _ in range(2):
        assert server.client.get("/api/me").status_code == 401
        assert server.client.get("/metrics").status_code == 401
        server = start(database)


def test_the_log_is_json_with_the_ids_that_answers_carry(server: Running) -> None:
    number = server.client.get("/api/me").headers["x-request-id"]
    server.client.get("/health")  # the line is written once the answer is out
    lines = [json.loads(line) for line in server.log.splitlines()]
    found = next(line for line in lines if line.get("request") == number)
    assert (found["path"], found["status"], found["method"]) == ("/api/me", 200, "GET")
    text = server.client.get("/metrics").text
    assert 'evenhand_requests_total{method="GET",route="/api/me",status="200"}' in text

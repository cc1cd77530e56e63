"""Webhooks against a receiver of our own: signed, in order, with the same id at every try, and never to private places."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import pytest
from standardwebhooks import Webhook
from tests.server.conftest import Running, Start
from tests.server.test_api import rows

import evenhand as eh
from evenhand.errors import InputError
from evenhand.server.addresses import checked_address
from evenhand.server.webhooks import Webhooks

BROKEN = """
class Broken:
    def fit(self, X, y, *, sample_weight=None, previous=None, seed=0):
        raise RuntimeError("it cannot")


def make():
    return Broken()
"""
FAST = "from evenhand.server import watching\nwatching._SECONDS = 0.1\nfrom evenhand.server import webhooks\nwebhooks._FIRST_WAIT = 0.5"


class Receiver:
    """Takes messages in; answers with the statuses it is told to, then with 204."""

    def __init__(self) -> None:
        self.messages: list[tuple[dict[str, str], bytes]] = []
        self.statuses: list[int] = []
        self.pause = 0.0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                time.sleep(outer.pause)
                outer.messages.append(({k.lower(): v for k, v in self.headers.items()}, body))
                self.send_response(outer.statuses.pop(0) if outer.statuses else 204)
                if self.path == "/moved":
                    self.send_header("Location", "http://127.0.0.1:1/")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://localhost:{self._server.server_address[1]}/hook"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def wait(self, count: int) -> list[dict[str, Any]]:
        """The messages, once there are so many."""
        for _ in range(300):
            if len(self.messages) >= count:
                return [json.loads(body) for _, body in self.messages]
            time.sleep(0.05)
        raise AssertionError(f"{len(self.messages)} messages of {count} came")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    found.close()


@pytest.fixture(scope="module")
def sender(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("webhooks")
    options, database = ("--allow-webhook-host", "localhost"), f"sqlite:///{folder / 'ledger.db'}"
    (folder / "broken_learner.py").write_text(BROKEN)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        patch.setenv("EVENHAND_ALLOW", "broken_learner")
        eh.Campaign.create(
            database, "fails", ["u", "v"], learner="factory:broken_learner.make", budget=40, batch=2, refit="background"
        ).release()
    environment = {"EVENHAND_ALLOW": "broken_learner", "PYTHONPATH": f"{folder}:{os.environ.get('PYTHONPATH', '')}"}
    found = Running(database, options, environment, before=FAST)
    yield found
    found.stop()


def hook(server: Running, name: str, receiver: Receiver, path: str = "/hook") -> tuple[str, dict[str, Any]]:
    made = server.post(f"/api/campaigns/{name}/webhooks", {"url": receiver.url.replace("/hook", path)})
    assert made.status_code == 201, made.text
    return f"/api/campaigns/{name}", made.json()


def new(
    server: Running, name: str, receiver: Receiver, path: str = "/hook", **settings: Any
) -> tuple[str, dict[str, Any]]:
    body = {"name": name, "groups": ["u", "v"], "budget": 8, "batch": 2, "learner": "none", **settings}
    assert server.post("/api/campaigns", body).status_code == 201
    return hook(server, name, receiver, path)


def test_all_that_happens_is_told_in_order_and_signed(sender: Running, receiver: Receiver) -> None:
    at, made = new(sender, "order", receiver, lease=0.6)
    sender.post(f"{at}/ask")
    sender.post(f"{at}/requests/1/tell?partial=true", rows(0, 2))
    sender.post(f"{at}/requests/1/tell", {**rows(1, 2), "ids": ["a", "b"]})
    sender.post(f"{at}/ask")
    receiver.wait(4)  # the second request expires by itself
    sender.post(f"{at}/ask")
    sender.post(f"{at}/requests/3/tell", rows(2))
    receiver.wait(7)
    sender.post(f"{at}/close", {"reason": "enough"})
    messages = receiver.wait(8)
    told = [(m["type"], m["data"]["request"]) for m in messages]
    assert told == [
        ("request.opened", 1), ("request.filled", 1), ("request.opened", 2), ("request.expired", 2),
        ("request.opened", 3), ("request.filled", 3), ("campaign.stopped", 3), ("campaign.stopped", None),
    ]  # fmt: skip
    assert [m["data"].get("reason") for m in messages[6:]] == ["budget spent", "enough"]
    assert all(m["data"]["campaign"] == "order" for m in messages)
    numbers = [m["data"]["event"] for m in messages]
    assert numbers == sorted(numbers)
    for headers, body in receiver.messages:
        Webhook(made["secret"]).verify(body, headers)
    with pytest.raises(Exception, match="signature"):
        Webhook("whsec_" + "A" * 43 + "=").verify(receiver.messages[0][1], receiver.messages[0][0])
    listed = sender.client.get(f"{at}/webhooks")
    assert made["secret"] not in listed.text
    assert "secret" not in listed.json()["webhooks"][0]


def test_a_learner_that_fails_is_told(sender: Running, receiver: Receiver) -> None:
    at, _ = hook(sender, "fails", receiver)
    sender.post(f"{at}/ask")
    sender.post(f"{at}/requests/1/tell", rows(0))
    assert [m["type"] for m in receiver.wait(3)] == ["request.opened", "request.filled", "learner.failed"]
    for _ in range(3):  # asked again, it is not fitted again on the same labels
        sender.post(f"{at}/ask")
    assert [m["type"] for m in receiver.wait(6)][3:] == ["request.opened"] * 3


def test_after_a_failure_the_same_message_comes_again_later(sender: Running, receiver: Receiver) -> None:
    receiver.statuses = [500, 302]
    at, made = new(sender, "again", receiver)
    sender.post(f"{at}/ask")
    receiver.wait(1)
    time.sleep(0.1)
    listed = sender.client.get(f"{at}/webhooks").json()["webhooks"][0]
    assert (listed["failures"], listed["last_error"]) == (1, "answered with 500")
    assert listed["next_try"] is not None
    receiver.wait(2)
    begun = time.monotonic()
    receiver.wait(3)
    assert time.monotonic() - begun > 0.6  # longer than the first time
    sender.post(f"{at}/ask")
    receiver.wait(4)
    ids = [headers["webhook-id"] for headers, _ in receiver.messages]
    assert ids[0] == ids[1] == ids[2] != ids[3]
    stamps = [headers["webhook-timestamp"] for headers, _ in receiver.messages]
    assert stamps[0] < stamps[2]  # signed anew, so that a receiver who minds old messages takes it
    assert sender.client.delete(f"{at}/webhooks/{made['id']}").status_code == 200
    sender.post(f"{at}/requests/1/abandon")
    time.sleep(0.5)
    assert len(receiver.messages) == 4


def test_redirects_are_not_followed(sender: Running, receiver: Receiver) -> None:
    receiver.statuses = [307]
    at, _ = new(sender, "moved", receiver, "/moved")
    sender.post(f"{at}/ask")
    receiver.wait(1)
    time.sleep(0.4)
    assert sender.client.get(f"{at}/webhooks").json()["webhooks"][0]["last_error"] == "answered with 307"


def test_two_servers_do_not_send_twice(start: Start, receiver: Receiver, postgres_url: str) -> None:
    receiver.pause = 0.1
    servers = [start(postgres_url, "--allow-webhook-host", "localhost", before=FAST) for _ in range(2)]
    at, _ = new(servers[0], "two", receiver, budget=80)
    for server in servers * 3:
        number = server.post(f"{at}/ask").json()["requests"][0]["request"]
        server.post(f"{at}/requests/{number}/abandon")
    receiver.wait(6)
    time.sleep(1.0)
    ids = [headers["webhook-id"] for headers, _ in receiver.messages]
    assert len(ids) == len(set(ids)) == 6


@pytest.mark.parametrize("answer", [204, 500])
def test_a_server_that_looked_before_another_tried_sends_nothing(
    tmp_path: Path, receiver: Receiver, answer: int
) -> None:
    receiver.statuses = [answer]
    with eh.Campaign.create(
        f"sqlite:///{tmp_path / 'ledger.db'}", "late", ["u", "v"], learner=None, budget=80
    ) as campaign:
        servers = [Webhooks(campaign._log.ledger) for _ in range(2)]
        servers[0].create(campaign.number, receiver.url, ["request.opened"], 0, allowed=["localhost"])
        campaign.ask()
        ((first,), (second,)) = (server.due() for server in servers)
        sent = [
            anyio.run(server.send, due, campaign, ["localhost"])
            for server, due in zip(servers, (first, second), strict=True)
        ]
        assert sent == [(1, 0) if answer == 204 else (0, 1), (0, 0)]
        assert len(receiver.messages) == 1
        # the failed message is tried again by whoever looks when its time has come
        assert servers[1].due() == ([second._replace(seq=campaign.seen.seq)] if answer == 204 else [])


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/", "http://localhost:8000/", "http://[::1]/", "http://10.0.0.1/", "http://192.168.1.1/",
        "http://169.254.169.254/latest/meta-data", "http://[fe80::1]/", "http://0.0.0.0/", "http://100.64.0.1/",
        "http://[::ffff:10.0.0.1]/", "http://[64:ff9b::a00:1]/", "http://[2002:a00:1::]/", "http://2130706433/",
        "http://0x7f.1/", "http://224.0.0.1/", "http://[::ffff:224.0.0.1]/", "ftp://example.org/", "http://", "no url",
        "http://[64:ff9b:1::a00:1]/", "http://[64:ff9b:1:ffff::1]/", "http://[::127.0.0.1]/", "http://[::ffff:0:127.0.0.1]/",
        "http://[fec0::1]/", "http://[feff::1]/", "http://[5f00::1]/", "http://[2001:0:a00:1::]/", "http://[3fff::1]/",
        "http://[fd00:ec2::254]/", "http://[ff02::1]/", "http://[100::1]/", "http://[2001:db8::1]/", "http://[::]/",
        "http://192.0.0.192/", "http://192.88.99.1/", "http://168.63.129.16/", "http://[::ffff:192.0.0.192]/",
        "http://user:password@93.184.216.34/", "http://a..b/", "http://\x00/", "//93.184.216.34/",
    ],
)  # fmt: skip
def test_private_addresses_are_refused(url: str) -> None:
    with pytest.raises(InputError):
        checked_address(url)


def test_public_and_allowed_addresses_are_taken() -> None:
    assert checked_address("https://93.184.216.34/hook") == "93.184.216.34"
    assert checked_address("https://[2606:2800:220:1::1]/hook") == "2606:2800:220:1::1"
    assert checked_address("https://[::ffff:93.184.216.34]/hook") == "::ffff:93.184.216.34"
    assert checked_address("http://127.0.0.1:9000/", ("127.0.0.1",)) == "127.0.0.1"
    with pytest.raises(InputError, match="--allow-webhook-host"):
        checked_address("http://127.0.0.1:9000/", ("localhost",))

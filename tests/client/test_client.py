"""What the client adds to the verbs of a campaign: tokens, retries, errors, models; against a real server process."""

from __future__ import annotations

import itertools
import logging
import socket
import sys
import threading
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pandas as pd
import pytest
from tests.server.conftest import Running, Start

import evenhand as eh
from evenhand.ledger.database import DatabaseLedger
from evenhand.server.tokens import Role, Tokens

_NUMBERS = itertools.count(1)


def rows(k: int, n: int = 4) -> tuple[Any, Any]:
    rng = np.random.default_rng(k)
    y = np.arange(n) % 2
    return rng.normal(size=(n, 2)) + 2 * y[:, None], y


@pytest.fixture(scope="module")
def connected(server: Running) -> Iterator[Any]:
    with eh.connect(server.url) as found:
        yield found


@pytest.fixture
def survey(connected: Any) -> Any:
    return connected.create(f"survey {next(_NUMBERS)}", ["u", "v"], budget=40, batch=2, refit="always", seed=0)


def test_a_campaign_equals_the_same_one_on_this_machine(survey: Any) -> None:
    here = eh.Campaign(["u", "v"], "optimistic", "logistic", budget=40, batch=2)
    for k in range(8):
        mine, theirs = here.ask(), survey.ask()
        assert (mine.group, mine.size, mine.decision) == (theirs.group, theirs.size, theirs.decision)
        for c, request in ((here, mine), (survey, theirs)):
            c.tell(request, *rows(k))
    assert (here.counts, here.mixture, here.labels_used) == (survey.counts, survey.mixture, survey.labels_used)
    assert (here.groups, here.budget, here.unspent) == (survey.groups, survey.budget, survey.unspent)
    for name in ("training_set", "validation_set"):
        for a, b in zip(getattr(here, name)(), getattr(survey, name)(), strict=True):
            assert np.array_equal(a, b)
    final, theirs = here.final_model(), survey.final_model()
    assert np.array_equal(final.coef_, theirs.coef_)
    assert final.choice == theirs.choice
    assert survey.final_model(plain=True).choice.why == "asked for"
    assert np.array_equal(here.model().predict(rows(9)[0]), survey.model().predict(rows(9)[0]))
    assert here.explain(3) == survey.explain(3)
    assert here.running(0.1).groups == survey.running(0.1).groups
    assert survey.verify().problems == []
    assert [event["kind"] for event in survey.events(2, 2)] == [event["kind"] for event in survey.events()[2:4]]


def test_certificates_come_back_as_they_are(connected: Any) -> None:
    settings = {"budget": 200, "batch": 5, "distinct": True, "seed": 0}
    here = eh.Campaign(["u", "v"], "optimistic", "logistic", **settings)
    there = connected.create(f"survey {next(_NUMBERS)}", ["u", "v"], refit="always", **settings)
    assert there.certificate() is None
    assert there.certified_model() is None
    for c in (here, there):
        for k in range(4):
            c.tell(c.ask(), *rows(k, 10))
        assert c.certify(0.3).version == 1
        for k in range(4, 10):
            c.tell(c.ask(), *rows(k, 10))
    assert here.certificate() == there.certificate()
    assert here.certificate(0.1) == there.certificate(0.1)
    assert here.running() == there.running()
    assert np.array_equal(here.certified_model().coef_, there.certified_model().coef_)


def test_a_pool_from_a_frame_and_labels_by_id(connected: Any, tmp_path: Path) -> None:
    c = connected.create(f"survey {next(_NUMBERS)}", budget=8, learner="table")
    frame = pd.DataFrame({"id": [f"e{k}" for k in range(20)], "who": ["u", "v"] * 10, "x": range(20), "t": ["a"] * 20})
    assert c.pool(frame, group="who").groups == {"u": 10, "v": 10}
    frame.assign(id=[f"f{k}" for k in range(20)]).to_csv(tmp_path / "more.csv", index=False)
    assert c.pool(tmp_path / "more.csv", group="who").groups == {"u": 10, "v": 10}
    request = c.ask()
    c.skip(request.examples[1], "unreadable")
    assert c.tell_labels({request.examples[0]: "yes"}).rows == 1
    assert c.export(tmp_path / "rows.csv") == 1
    with pytest.raises(eh.InputError, match="there already"):
        c.export(tmp_path / "rows.csv")
    assert c.export(tmp_path / "rows.csv", force=True) == 1
    assert list(pd.read_csv(tmp_path / "rows.csv")["label"]) == ["yes"]


def test_settings_and_changes(connected: Any) -> None:
    name = f"survey {next(_NUMBERS)}"
    c = connected.create(
        name, ["u", "v"], eh.Optimistic(c0=0.5), eh.Logistic(C=0.5), budget=40, population=[0.9, 0.1],
        stop=eh.LabelsSpent(20) | eh.Deadline("2090-01-01"), risk="fnr", positive="yes", classes=["yes", "no"],
        seed=7,
    )  # fmt: skip
    here = eh.Campaign(
        ["u", "v"], eh.Optimistic(c0=0.5), eh.Logistic(C=0.5), budget=40, population=[0.9, 0.1], lease="1d",
        stop=eh.LabelsSpent(20) | eh.Deadline("2090-01-01"), risk="fnr", positive="yes", classes=["yes", "no"],
        refit="background", seed=7,
    )  # fmt: skip
    assert {**c.settings, "order": "seed"} == here.settings
    for campaign in (c, here):
        campaign.change(stop=None, lease=None, budget=50, learner=eh.Logistic(C=2.0), refit=10)
        campaign.change(stop=eh.LabelsSpent(30))
    assert {**c.settings, "order": "seed"} == here.settings
    assert name in connected.campaigns()
    c.close("enough")
    with pytest.raises(eh.NothingToAsk) as nothing:
        c.ask()
    assert nothing.value.reason == "closed"


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda c: c.abandon(9), eh.NotFound, "never made"),
        (lambda c: c.tell(1, *rows(0, 6)), eh.Conflict, "which waits for 4"),
        (lambda c: c.change(speed=3), eh.InputError, "speed"),
        (lambda c: c.tell(1, np.zeros((4, 2, 2)), [0] * 4), eh.InputError, "cannot be sent"),
        (lambda c: c.ask(collector="\n"), eh.InputError, "collector"),
        (lambda c: c.correct("nobody", 1), eh.InputError, "no example 'nobody'"),
        (lambda c: c.pool("nothing.csv"), eh.InputError, "no file"),
        (lambda c: c.export("rows.txt"), eh.InputError, "name a .csv"),
        (lambda c: c.final_model(), eh.InputError, "no .* examples|tell some first"),
        (lambda c: c.training_set(), eh.InputError, "no such examples yet"),
    ],
)
def test_errors_are_the_same(survey: Any, call: Any, kind: type[Exception], message: str) -> None:
    survey.ask()
    with pytest.raises(kind, match=message):
        call(survey)


def test_what_names_code_does_not_go_over_http(connected: Any) -> None:
    for own in ({"strategy": lambda standing, uniforms: None}, {"learner": object()}, {"risk": lambda m, X, y: y}):
        with pytest.raises(eh.InputError):
            connected.create("mine", ["u"], **{"budget": 10, **own})
    for text in ({"strategy": "factory:a.b.c"}, {"learner": "sklearn.svm.LinearSVC"}):
        with pytest.raises(eh.InputError, match=r"over HTTP nothing that names code|not allowed"):
            connected.create("mine", ["u"], budget=10, **text)
    assert "mine" not in connected.campaigns()


def test_a_request_of_another_campaign_is_noticed(connected: Any, survey: Any) -> None:
    other = connected.create(f"survey {next(_NUMBERS)}", ["u", "v"], budget=40)
    survey.change(budget=60)
    theirs = survey.ask()
    other.ask()
    with pytest.raises(eh.InputError, match="another campaign's"):
        other.tell(theirs, *rows(1))


def test_names_that_no_path_can_hold(connected: Any, database: str) -> None:
    names = ["a/b", "~1", "..", "100% ä?#&", "a b"]
    for k, name in enumerate(names, start=2):
        eh.Campaign.create(database, name, ["u"], "uniform", None, budget=2 * k).release()
    assert set(names) < set(connected.campaigns())
    assert [connected.campaign(name).budget for name in names] == [4, 6, 8, 10, 12]
    for name in ("x/y", "nobody", "~99999"):
        with pytest.raises(eh.NotFound, match=f"there is no campaign '{name}'"):
            connected.campaign(name)


# -------------------------------------------------------------------- tokens


def test_tokens_and_their_secrecy(start: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    database = f"sqlite:///{tmp_path / 'ledger.db'}"
    server = start(database)  # one of its own: where there are tokens, everybody needs one
    eh.Campaign.create(database, "kept", ["u"], "uniform", None, budget=8).release()
    with DatabaseLedger(database) as ledger:
        collector, lead = (Tokens(ledger).create(role.name, role)[0] for role in (Role.collector, Role.lead))
    seen: list[str] = []
    with caplog.at_level(logging.DEBUG), eh.connect(server.url, collector) as found:
        c = found.campaign("kept")
        assert c.ask().collector == "collector"
        assert c.ask(collector="ann").collector == "collector"
        for refused in (lambda: c.close(), lambda: found.create("mine", ["u"], budget=4)):
            with pytest.raises(eh.NotAllowed, match="needs the role lead") as error:
                refused()
            seen += traceback.format_exception(error.value)
        seen += [repr(found), repr(c), str(c), repr(vars(found))]
    with eh.connect(server.url, lead) as found:
        assert found.campaign("kept").ask(collector="ann").collector == "ann"
    with eh.connect(server.url, "evh_wrong") as found, pytest.raises(eh.NotAllowed, match="not valid") as error:
        found.campaigns()
    seen += [*traceback.format_exception(error.value), caplog.text]
    assert collector not in "".join(seen)
    assert "evh_wrong" not in "".join(seen)
    for bad in ("evh_with a blank", "evh_\n", "", "evh_ä"):
        with pytest.raises(eh.InputError, match="this is not a token") as error:
            eh.connect(server.url, bad)
        assert bad == "" or bad not in str(error.value)


@pytest.mark.parametrize("url", ["host:8000", "ftp://host", "http://", "http://h:99999", "sqlite:///x.db"])
def test_addresses_that_cannot_be(url: str) -> None:
    with pytest.raises(eh.InputError, match="the address of a server is like"):
        eh.connect(url)


def test_an_address_holds_no_password() -> None:
    with pytest.raises(eh.InputError, match="has no name, password") as error:
        eh.connect("http://ann:secret@host")
    assert "secret" not in str(error.value)


def test_a_missing_extra_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(eh.InputError, match=r"connect needs httpx: pip install 'evenhand\[client\]'"):
        eh.connect("http://127.0.0.1:1")


# -------------------------------------------------------------------- lost answers


class Between(ThreadingHTTPServer):
    """A proxy that loses answers: what it passes on is done, and nobody hears of it; or it fails before that."""

    def __init__(self, target: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.target, self.plan, self.lock = target, list[str](), threading.Lock()
        self.keys: list[str | None] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Between

    def log_message(self, *about: object) -> None:
        """Say nothing."""

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        with self.server.lock:
            plan = self.server.plan.pop(0) if self.server.plan else "pass"
            self.server.keys.append(self.headers.get("idempotency-key"))
        if plan == "502":
            self.send_response(502)
            self.end_headers()
            return
        headers = {k: v for k, v in self.headers.items() if k.lower() not in ("host", "connection", "accept-encoding")}
        found = httpx.request(
            self.command, self.server.target + self.path, content=body, headers=headers, timeout=60, trust_env=False
        )
        if plan == "lose":
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.send_response(found.status_code)
        for name in ("content-type", "etag"):
            if name in found.headers:
                self.send_header(name, found.headers[name])
        self.send_header("content-length", str(len(found.content)))
        self.end_headers()
        self.wfile.write(found.content)

    do_GET = do_POST = _pass_on


@pytest.fixture
def between(server: Running) -> Iterator[Between]:
    proxy = Between(server.url)
    thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield proxy
    proxy.shutdown()
    thread.join()
    proxy.server_close()


def test_no_step_is_taken_twice_where_answers_are_lost(between: Between, survey: Any) -> None:
    survey.change(learner=None)
    with eh.connect(between.url) as found:
        c = found.campaign(survey.name)
        assert c.groups == ("u", "v")

        def unlucky(plan: str, step: Any) -> Any:
            between.plan[:], between.keys[:] = [plan] * 2, []
            answer = step()
            assert len(between.keys) == 3
            assert len(set(between.keys)) == 1, "every try has the same key"
            return answer

        for plan in ("lose", "502"):
            request = unlucky(plan, c.ask)
            assert len(c.open_requests) == 1
            told = unlucky(plan, lambda r=request: c.tell(r, *rows(r.id)))
            assert (told.rows, told.known) == ((0, 4) if plan == "lose" else (4, 0))
            request = c.ask()
            unlucky(plan, lambda r=request: c.abandon(r))
            unlucky(plan, lambda: c.tell_losses({"u": (0.1, 0.9, 2)}))
            c.ask_many(1)
            c.abandon(c.open_requests[0])
        kinds = [event["kind"] for event in c.events()]
        assert [kinds.count(kind) for kind in ("asked", "told", "abandoned", "losses")] == [6, 2, 4, 2]
        unlucky("lose", lambda: c.close("enough"))
        assert c.status()["closed"] == "enough"


def test_what_would_be_done_twice_is_not_sent_again(between: Between, survey: Any) -> None:
    with eh.connect(between.url) as found:
        c = found.campaign(survey.name)
        between.plan[:] = ["lose"]
        with pytest.raises(eh.LedgerError, match="no answer from http://127"):
            found.create(f"survey {next(_NUMBERS)}", ["u"], budget=4)
        between.plan[:], between.keys[:] = ["502"], []
        with pytest.raises(eh.LedgerError, match="answered with status 502"):
            c.certify()
        assert len(between.keys) == 1


def test_a_server_that_is_away_and_comes_back(start: Start, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'l.db'}"
    first = start(url)
    port = first.url.rpartition(":")[2]
    with eh.connect(first.url) as found:
        c = found.create("survey", ["u"], "uniform", None, budget=8)
        first.kill()
        first.client.close()
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(c.ask)
            start(url, "--port", port)
            assert asked.result().id == 1
    with (
        eh.connect("http://127.0.0.1:9", patience=0.2) as nobody,
        pytest.raises(eh.LedgerError, match=r"no answer from http://127\.0\.0\.1:9: ConnectError"),
    ):
        nobody.campaigns()


def test_threads_share_a_campaign(connected: Any) -> None:
    c = connected.create(f"survey {next(_NUMBERS)}", ["u", "v"], "uniform", None, budget=80, batch=2)
    with ThreadPoolExecutor(8) as pool:
        requests = list(pool.map(lambda _: c.ask(), range(20)))
        told = list(pool.map(lambda r: c.tell(r, *rows(r.id)), requests))
    assert sorted(r.id for r in requests) == list(range(1, 21))
    assert [t.rows for t in told] == [4] * 20
    assert c.done
    assert c.labels_used == 80

"""Who may do what: tokens and their roles, sessions, share links, and everything a browser could be tricked into."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import httpx
import pytest
from tests.server.conftest import Running
from typer.testing import CliRunner

import evenhand as eh
from evenhand.cli import app
from evenhand.ledger.database import DatabaseLedger
from evenhand.server.tokens import Role, Tokens

ROLES = ("viewer", "collector", "lead", "admin")
# what each operation needs; "any" is any token at all
NEEDS = {
    "GET /api/campaigns": "any", "GET /api/me": "any", "POST /api/campaigns": "lead",
    "GET /api/tokens": "admin", "POST /api/tokens": "admin", "DELETE /api/tokens/{id}": "admin",
    **{f"GET /api/campaigns/{{name}}{end}": "viewer"
       for end in ("", "/settings", "/explain", "/running", "/events", "/stream", "/requests", "/certificate")},
    **{f"POST /api/campaigns/{{name}}/{end}": "collector"
       for end in ("ask", "labels", "skip", "requests/{request}/tell", "requests/{request}/abandon",
                   "requests/{request}/extend")},
    "GET /api/campaigns/{name}/requests/{request}/rows": "collector",
    **{f"GET /api/campaigns/{{name}}/{end}": "lead"
       for end in ("export", "examples", "model", "verify", "shares", "webhooks")},
    **{f"POST /api/campaigns/{{name}}/{end}": "lead"
       for end in ("correct", "withdraw", "erase", "add", "losses", "pool", "certify", "change", "retire", "close",
                   "refit", "shares", "webhooks")},
    "DELETE /api/campaigns/{name}/shares/{id}": "lead", "DELETE /api/campaigns/{name}/webhooks/{id}": "lead",
}  # fmt: skip


class Place:
    """A server that everybody needs a token for, two campaigns, and a token of each role."""

    def __init__(self, folder: Any) -> None:
        self.folder = folder
        self.database = f"sqlite:///{folder / 'ledger.db'}"
        for name in ("ours", "theirs"):
            eh.Campaign.create(self.database, name, ["u", "v"], learner=None, budget=400, batch=1).release()
        self.ledger = DatabaseLedger(self.database)
        self.tokens = Tokens(self.ledger)
        self.of = {role: self.make(role, role) for role in ROLES}
        self.server = Running(self.database, ("--host", "0.0.0.0"), token=self.of["admin"])
        self.http = httpx.Client(base_url=self.server.url, trust_env=False, timeout=60)

    def make(self, name: str, role: str, campaign: str | None = None, seconds: float | None = 3600.0) -> str:
        number = None if campaign is None else self.ledger.find(campaign)
        return self.tokens.create(name, Role[role], campaign=number, seconds=seconds)[0]

    def call(self, method: str, path: str, token: str | None, body: Any = None, **options: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        found = self.http.request(method, path, json=body, headers={**headers, **options.pop("headers", {})}, **options)
        self.http.cookies.clear()
        return found

    def login(self, token: str, **headers: str) -> httpx.Response:
        return self.call("POST", "/login", None, data={"token": token}, headers=headers)

    def session(self, token: str) -> dict[str, str]:
        return {"Cookie": self.login(token).headers["set-cookie"].partition(";")[0]}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    found = Place(tmp_path_factory.mktemp("access"))
    yield found
    found.http.close()
    found.server.stop()
    found.ledger.close()


def paths(place: Place) -> list[tuple[str, str]]:
    """Every operation of the OpenAPI document, with names filled in."""
    document = place.call("GET", "/openapi.json", place.of["viewer"]).json()
    operations = [(method.upper(), path) for path, item in document["paths"].items() for method in item]
    assert {f"{method} {path}" for method, path in operations} == set(NEEDS)
    return operations


def filled(path: str) -> str:
    path = path.replace("{name}", "ours").replace("{request}", "99")
    return path.replace("{id}", "0" * 12 if "webhooks" not in path else "99")


def test_without_a_valid_token_nothing_but_health_answers(place: Place) -> None:
    others = [("GET", path) for path in ("/", "/openapi.json", "/metrics", "/nowhere", "/campaigns/ours", "/ready")]
    good = place.of["admin"]
    wrong = [good[:-1] + ("A" if good[-1] != "A" else "B"), "evh_", "x" * 300, "."]
    for method, path in [*paths(place), *others, ("GET", "/login"), ("POST", "/login")]:
        for token in wrong[: 1 if path.startswith("/api") else 4]:
            found = place.call(method, filled(path), None, headers={"Authorization": f"Bearer {token}"})
            assert found.status_code == 401, (method, path, token)
            assert found.json()["code"] == "access"
        if path not in ("/login", "/ready"):
            assert place.call(method, filled(path), None).status_code == 401, path
    assert place.call("GET", "/health", "evh_wrong").status_code == 200
    assert place.call("GET", "/ready", None).status_code == 200
    assert place.call("GET", "/metrics", place.of["viewer"]).status_code == 200


def test_each_role_may_do_its_own_and_no_more(place: Place) -> None:
    for method, path in paths(place):
        need = NEEDS[f"{method} {path}"]
        for role in ROLES:
            if need != "any" and ROLES.index(role) < ROLES.index(need):
                found = place.call(method, filled(path), place.of[role], {} if method == "POST" else None)
                # a body that is wrong is said first where it is read first: nothing is done either way
                assert found.status_code in (403, 422), (method, path, role, found.status_code)
                if found.status_code == 422:
                    assert method == "POST"
                    body = _sound(path)
                    assert place.call(method, filled(path), place.of[role], body).status_code == 403, (path, role)
    for role in ("viewer", "collector", "lead"):
        assert place.call("GET", "/api/campaigns/ours", place.of[role]).status_code == 200


def _sound(path: str) -> Any:
    """A body that can be read, for operations whose bodies have something that must be there."""
    return {
        "campaigns": {"name": "new", "groups": ["u"], "budget": 10}, "tokens": {"name": "n", "role": "viewer"},
        "skip": {"id": "a"}, "extend": {"lease": "1d"}, "correct": {"labels": {"a": 1}}, "withdraw": {"ids": ["a"]},
        "erase": {"ids": ["a"]}, "losses": {"losses": {}}, "retire": {"group": "u"}, "webhooks": {"url": "http://a"},
    }[path.rpartition("/")[2]]  # fmt: skip


def test_a_token_for_one_campaign_knows_no_other(place: Place) -> None:
    lead = place.make("guest", "lead", "ours")
    assert [c["name"] for c in place.call("GET", "/api/campaigns", lead).json()["campaigns"]] == ["ours"]
    assert place.call("GET", "/api/campaigns/ours", lead).status_code == 200
    for path in ("theirs", "nowhere", "~2"):
        found = place.call("GET", f"/api/campaigns/{path}", lead)
        assert (found.status_code, found.json()["detail"]) == (404, f"there is no campaign {path!r}")
    assert place.call("POST", "/api/campaigns", lead, _sound("/campaigns")).status_code == 403
    assert place.call("GET", "/api/tokens", lead).status_code == 403


def test_a_collector_has_the_token_s_name_and_touches_only_what_is_theirs(place: Place) -> None:
    ann, bob = place.make("ann", "collector"), place.make("bob", "collector")
    at = "/api/campaigns/ours"
    asked = place.call("POST", f"{at}/ask", ann, {"collector": "bob"}).json()["requests"][0]
    number = asked["request"]
    events = place.call("GET", f"{at}/events", ann).json()["events"]
    assert events[-1]["actor"] == "ann"
    rows = {"X": [[0.0], [1.0]], "y": [0, 1]}
    for path, body in (
        (f"requests/{number}/tell", rows), (f"requests/{number}/tell?collector=ann", rows),
        (f"requests/{number}/abandon", {}), (f"requests/{number}/extend", {"lease": "2d"}),
    ):  # fmt: skip
        found = place.call("POST", f"{at}/{path}", bob, body)
        assert (found.status_code, found.json()["detail"]) == (403, f"request {number} was given to somebody else")
    told = place.call("POST", f"{at}/requests/{number}/tell?collector=zoe", ann, rows)
    assert told.status_code == 200
    assert place.call("GET", f"{at}/events", ann).json()["events"][-1]["actor"] == "ann"
    assert place.call("POST", f"/api/campaigns/theirs/requests/{number}/tell", ann, rows).status_code == 404
    # who leads may act for others
    asked = place.call("POST", f"{at}/ask", place.of["lead"], {"collector": "bob"}).json()["requests"][0]
    assert place.call("POST", f"{at}/requests/{asked['request']}/tell", bob, rows).status_code == 200


def test_keys_of_two_people_do_not_meet(place: Place) -> None:
    first, other = (
        place.call(
            "POST", "/api/campaigns/ours/ask", place.make(name, "collector"), {}, headers={"Idempotency-Key": "1"}
        )
        for name in ("cleo", "dan")
    )
    assert first.json()["requests"][0]["request"] != other.json()["requests"][0]["request"]


def test_a_pool_s_examples_belong_to_whom_they_were_handed_out(place: Place) -> None:
    lead, ann, bob = place.of["lead"], place.make("ann", "collector"), place.make("bob", "collector")
    place.call("POST", "/api/campaigns", lead, {"name": "pool", "groups": None, "budget": 20, "learner": "none"})
    table = "id,group,x\n" + "".join(f"e{k},{'uv'[k % 2]},{k}\n" for k in range(20))
    headers = {"Content-Type": "text/csv"}
    assert place.call("POST", "/api/campaigns/pool/pool", lead, content=table, headers=headers).status_code == 201
    asked = place.call("POST", "/api/campaigns/pool/ask", ann, {}).json()["requests"][0]
    mine = asked["examples"][0]
    free = next(f"e{k}" for k in range(20) if f"e{k}" not in asked["examples"])
    at = "/api/campaigns/pool"
    assert place.call("POST", f"{at}/labels", bob, {"labels": {mine: 1}}).status_code == 403
    assert place.call("POST", f"{at}/skip", bob, {"id": mine}).status_code == 403
    assert place.call("GET", f"{at}/requests/1/rows", bob).status_code == 403
    assert (
        "was not handed out to you" in place.call("POST", f"{at}/labels", ann, {"labels": {free: 1}}).json()["detail"]
    )
    assert place.call("POST", f"{at}/labels", ann, {"labels": {mine: 1}}).json()["rows"] == 1


def test_tokens_end(place: Place) -> None:
    short, revoked = place.make("short", "viewer", seconds=1.0), place.make("gone", "viewer")
    for token in (short, revoked):
        assert place.call("GET", "/api/me", token).status_code == 200
    assert place.call("DELETE", f"/api/tokens/{revoked.split('_')[1]}", place.of["admin"]).status_code == 200
    assert place.call("GET", "/api/me", revoked).status_code == 401
    time.sleep(1.1)
    assert place.call("GET", "/api/me", short).status_code == 401
    shown = {t["name"]: t for t in place.call("GET", "/api/tokens", place.of["admin"]).json()["tokens"]}
    assert shown["gone"]["revoked"]
    assert not shown["short"]["valid"]


def test_a_session_comes_of_a_token_and_goes_with_it(place: Place) -> None:
    token = place.make("eve", "collector")
    found = place.login(token)
    assert found.status_code == 303
    cookie = found.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "Secure" not in cookie
    assert token not in cookie
    assert "Secure" in place.login(token, **{"X-Forwarded-Proto": "https"}).headers["set-cookie"]
    session, other = place.session(token), place.session(token)

    def me(headers: dict[str, str]) -> int:
        return place.call("GET", "/api/me", None, headers=headers).status_code

    assert me(session) == 200
    out = place.call("POST", "/logout", None, headers=session)
    assert (out.status_code, me(session), me(other)) == (303, 401, 200)
    place.tokens.revoke(token.split("_")[1])
    assert me(other) == 401
    # a page sends a browser with an old session back to the login, and forgets the cookie
    page = place.call("GET", "/", None, headers={**other, "Accept": "text/html"})
    assert (page.status_code, page.headers["location"]) == (303, "/login")
    assert 'evenhand_session=""' in page.headers["set-cookie"]
    assert place.call("GET", "/login", None, headers=other).status_code == 200


def test_a_share_link_shows_one_campaign_until_it_is_revoked(place: Place) -> None:
    lead = place.of["lead"]
    made = place.call("POST", "/api/campaigns/ours/shares", lead, {}).json()
    link = place.call("GET", made["path"], None)
    assert (link.status_code, link.headers["location"]) == (303, "/campaigns/ours")
    assert link.headers["referrer-policy"] == "no-referrer"
    headers = {"Cookie": link.headers["set-cookie"].partition(";")[0]}
    assert place.call("GET", "/api/campaigns/ours", None, headers=headers).status_code == 200
    assert place.call("GET", "/api/campaigns/theirs", None, headers=headers).status_code == 404
    assert place.call("POST", "/api/campaigns/ours/ask", None, {}, headers=headers).status_code == 403
    listed = place.call("GET", "/api/campaigns/ours/shares", lead).json()["shares"]
    assert made["path"] not in json.dumps(listed)
    assert place.call("DELETE", f"/api/campaigns/theirs/shares/{made['id']}", lead).status_code == 404
    assert place.call("DELETE", f"/api/campaigns/ours/shares/{made['id']}", lead).status_code == 200
    assert place.call("GET", "/api/campaigns/ours", None, headers=headers).status_code == 401
    assert place.call("GET", made["path"], None).status_code == 401


def test_posts_from_other_sites_are_refused(place: Place) -> None:
    cookie = place.session(place.of["lead"])
    host = f"127.0.0.1:{place.server.port}"
    for headers, status in (
        ({"Sec-Fetch-Site": "cross-site"}, 403), ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "http://evil"}, 200), ({"Sec-Fetch-Site": "none"}, 200),
        ({"Origin": "http://evil"}, 403), ({"Origin": "null"}, 403), ({"Origin": f"http://{host}"}, 200), ({}, 200),
    ):  # fmt: skip
        found = place.call("POST", "/api/campaigns/ours/ask", None, {}, headers={**cookie, **headers})
        assert found.status_code == status, headers
    found = place.call("POST", "/api/campaigns/ours/ask", place.of["lead"], {}, headers={"Origin": "http://evil"})
    assert found.status_code == 200  # a program with a token of its own is nobody's browser
    assert place.login(place.of["lead"], Origin="http://evil").status_code == 403


def test_every_answer_has_the_headers_that_keep_browsers_safe(place: Place) -> None:
    answers = [
        place.call("GET", path, token, headers=headers)
        for path, token, headers in (
            ("/health", None, {}), ("/login", None, {}), ("/api/me", place.of["viewer"], {}), ("/api/me", None, {}),
            ("/nowhere", place.of["viewer"], {}), ("/api/campaigns/none", place.of["viewer"], {}),
            ("/health", None, {"X-Long": "x" * 40_000}), ("/api/me", place.of["viewer"], {"Host": "evil"}),
        )
    ]  # fmt: skip
    assert [a.status_code for a in answers] == [200, 200, 200, 401, 404, 404, 431, 421]
    for found in answers:
        policy = found.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert found.headers["x-content-type-options"] == "nosniff"
        assert found.headers["referrer-policy"] == "same-origin"
        assert found.headers["x-frame-options"] == "DENY"
    assert answers[2].headers["cache-control"] == "no-store"
    assert len(answers[2].headers["x-request-id"]) == 16


def test_secrets_are_in_no_log_no_metric_no_copy(place: Place, tmp_path: Any) -> None:
    made = place.call("POST", "/api/campaigns/ours/shares", place.of["lead"], {}).json()
    secret = made["path"].rpartition("/")[2]
    for path in (f"/share/{secret}", f"/share/{secret}/", f"/nowhere/{secret}", f"/api/campaigns/{secret}"):
        place.call("GET", path, None)
    place.call("HEAD", f"/share/{secret}", None, headers={"Host": "evil"})
    metrics = place.call("GET", "/metrics", place.of["viewer"]).text
    place.call("GET", "/api/campaigns/ours", place.make("ann", "viewer"))
    with eh.Campaign.open(place.database, "ours") as campaign:
        campaign.add([[0.5]], [1], ["u"])
        campaign.save(tmp_path / "copy.db")
        campaign.export(tmp_path / "out.csv")
    listed = place.call("GET", "/api/tokens", place.of["admin"]).text
    stored = b"".join(file.read_bytes() for file in place.folder.iterdir())
    kept = (tmp_path / "copy.db").read_bytes() + (tmp_path / "out.csv").read_bytes()
    for token in (secret, *place.of.values()):
        hidden = token.split("_", 2)[2]  # it may have underscores of its own
        assert hidden not in place.server.log + metrics + listed
        assert hidden.encode() not in kept
        assert hidden.encode() not in stored
    lines = [json.loads(line) for line in place.server.log.splitlines()]
    answered = [line for line in lines if line["message"] == "answered"]
    assert all(len(line["request"]) == 16 and line["status"] for line in answered)
    assert any(line["who"] == "ann" for line in answered)
    assert "/share/evh_…" in {line["path"] for line in answered}


def test_what_the_database_says_is_for_those_who_lead(place: Place) -> None:
    def broken(table: str, token: str | None, *, login: str = "") -> list[str]:
        """What comes back, as a page and as JSON, while a table is away."""
        with closing(sqlite3.connect(place.folder / "ledger.db")) as database:
            database.execute(f"ALTER TABLE {table} RENAME TO away")
            try:
                answers = [place.login(login, Accept=kind) if login else place.call("GET", path, token, headers={"Accept": kind})
                           for path, kind in (("/campaigns/ours", "text/html"), ("/api/campaigns/ours", "*/*"))]  # fmt: skip
            finally:
                database.execute(f"ALTER TABLE away RENAME TO {table}")
        assert [answer.status_code for answer in answers] == [503, 503]
        return [answer.text.lower() for answer in answers]

    own = "no such table"
    assert all(own in text for text in broken("events", place.of["lead"]))
    hidden = (
        broken("events", place.of["viewer"])
        + broken("tokens", place.of["viewer"])
        + broken("tokens", None, login=place.of["viewer"])
    )
    assert not [text for text in hidden if own in text]
    assert all("the database failed" in text for text in hidden)
    assert own in place.server.log


def test_wrong_tokens_and_links_shut_nobody_out(place: Place) -> None:
    made = place.call("POST", "/api/campaigns/ours/shares", place.of["lead"], {}).json()
    for k in range(15):
        assert place.login(f"evh_{k}").status_code == 401
        assert place.call("GET", f"{made['path']}{k}", None).status_code == 401
    # all who come through a proxy come from its address
    assert place.login(place.of["lead"]).status_code == 303
    assert place.call("GET", made["path"], None).status_code == 303


def test_a_link_that_is_followed_endlessly_fills_no_database(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenhand.server.tokens._MOST_SESSIONS", 3)
    link = place.make("wall", "viewer", "ours")
    grant = place.tokens.find(link)
    assert grant is not None
    sessions = [place.tokens.session(grant) for _ in range(5)]
    assert [place.tokens.find(session) is not None for session in sessions] == [False, False, True, True, True]


def test_large_bodies_are_for_those_who_bring_data(place: Place) -> None:
    large = {"content": b"a" * 100_000, "headers": {"Content-Type": "application/json"}}
    assert place.login("a" * 100_000).status_code == 413
    assert place.call("POST", "/api/campaigns/ours/ask", place.of["viewer"], **large).status_code == 413
    assert place.call("POST", "/api/campaigns/ours/ask", place.of["collector"], **large).status_code == 422


def test_metrics_of_all_campaigns_are_not_for_those_who_see_one(place: Place) -> None:
    made = place.call("POST", "/api/campaigns/ours/shares", place.of["lead"], {}).json()
    follow = place.call("GET", made["path"], None)
    session = {"Cookie": follow.headers["set-cookie"].partition(";")[0]}
    assert place.call("GET", "/metrics", None, headers=session).status_code == 403
    assert place.call("GET", "/metrics", made["path"].rpartition("/")[2]).status_code == 403
    assert place.call("GET", "/metrics", place.make("one", "lead", "ours")).status_code == 403
    assert place.call("GET", "/metrics", place.of["viewer"]).status_code == 200


def test_a_collector_holds_no_more_labels_than_the_campaign_lets_one_hold(place: Place) -> None:
    lead, ann, bob = place.of["lead"], place.make("ann", "collector"), place.make("bob", "collector")
    about = {"name": "held", "groups": ["u", "v"], "budget": 6000, "batch": 10, "learner": "none"}
    place.call("POST", "/api/campaigns", lead, about)
    at = "/api/campaigns/held"

    def given(token: str, count: int) -> int:
        found = place.call("POST", f"{at}/ask", token, {"count": count}).json()
        return sum(request["size"] for request in found.get("requests", ()))

    assert given(ann, 300) == 1000
    refused = place.call("POST", f"{at}/ask", ann, {})
    assert (refused.status_code, refused.json()["reason"]) == (409, "waiting for open requests")
    assert "'ann' holds 1,000 labels" in refused.json()["detail"]
    assert given(bob, 2) == 40
    assert place.call("POST", f"{at}/requests/1/abandon", ann).status_code == 200
    assert given(ann, 2) == 20
    changed = place.call("POST", f"{at}/change", lead, {"limits": {"labels": 1040}})
    assert changed.json()["limits"] == {"labels": 1040, "lease": 2592000.0, "streams": 50}
    assert given(ann, 9) == 40
    assert place.call("POST", f"{at}/change", ann, {"limits": {"labels": 6000}}).status_code == 403
    # one request is always given, however large
    place.call("POST", f"{at}/change", lead, {"limits": {"labels": 1}})
    assert given(place.make("cid", "collector"), 5) == 20
    # whoever leads hands out what they like, in anybody's name
    assert given(lead, 60) == 1200
    for limits in ({"labels": 0}, {"streams": 1.5}, {"lease": "soon"}, {"speed": 3}):
        assert place.call("POST", f"{at}/change", lead, {"limits": limits}).status_code == 422, limits


def test_a_collector_lets_no_request_wait_for_ever(place: Place) -> None:
    lead, ann = place.of["lead"], place.make("ann", "collector")
    place.call("POST", "/api/campaigns", lead, {"name": "lent", "groups": ["u", "v"], "budget": 40, "learner": "none"})
    at = "/api/campaigns/lent/requests/1"
    place.call("POST", "/api/campaigns/lent/ask", ann, {})

    def extended(token: str, lease: Any) -> int:
        page = place.call("POST", f"{at[4:]}/extend", token, data={"lease": str(lease)})
        found = place.call("POST", f"{at}/extend", token, {"lease": lease}).status_code
        assert page.status_code == (303 if found == 200 else found)
        return found

    assert [extended(ann, lease) for lease in ("never", "31d", 1e8, "30d", "2h")] == [422, 422, 422, 200, 200]
    assert extended(lead, "never") == 200
    place.call("POST", "/api/campaigns/lent/change", lead, {"limits": {"lease": "90d"}})
    assert extended(ann, "90d") == 200
    place.call("POST", "/api/campaigns/lent/change", lead, {"lease": "never"})
    assert extended(ann, "never") == 200  # no longer than every request here waits


def test_a_link_holds_no_more_streams_than_the_campaign_lets_one_hold(place: Place) -> None:
    lead = place.of["lead"]
    place.call(
        "POST", "/api/campaigns", lead, {"name": "seen", "groups": ["u"], "budget": 40, "limits": {"streams": 3}}
    )
    made, other = (place.call("POST", "/api/campaigns/seen/shares", lead, {}).json()["path"] for _ in range(2))

    def session(path: str) -> dict[str, str]:
        return {"Cookie": place.call("GET", path, None).headers["set-cookie"].partition(";")[0]}

    def opened(stack: ExitStack, headers: dict[str, str]) -> int:
        at = f"{place.server.url}/api/campaigns/seen/stream"
        answer = stack.enter_context(httpx.stream("GET", at, headers=headers, trust_env=False, timeout=20))
        lines = answer.iter_lines()
        stack.callback(lines.close)  # kept until then: a stream that nobody reads from is closed
        if answer.status_code == 200:
            assert next(lines) == ": hello"
        return answer.status_code

    with ExitStack() as stack:
        # every browser that follows the link has a session of its own: together they are one link
        assert [opened(stack, session(made)) for _ in range(5)] == [200, 200, 200, 429, 429]
        assert opened(stack, session(other)) == 200
    for _ in range(100):  # those that were closed make room
        with ExitStack() as stack:
            if opened(stack, session(made)) == 200:
                return
        time.sleep(0.05)
    raise AssertionError("streams that were closed still count")


@pytest.mark.parametrize(
    "options",
    [("--host", "0.0.0.0"), ("--root-path", "/evenhand"), ("--root-path", "nothing"), ("--allowed-host", "a.example")],
)
def test_it_refuses_to_be_reached_from_elsewhere_without_a_token(options: tuple[str, ...], tmp_path: Any) -> None:
    database = f"sqlite:///{tmp_path / 'a.db'}"
    found = CliRunner().invoke(app, ["serve", "--db", database, "--port", "0", *options])
    assert found.exit_code == 2
    made = CliRunner().invoke(app, ["token", "create", "x", "--role", "admin", "--expires", "0.01", "--db", database])
    assert made.exit_code == 0
    time.sleep(0.02)  # one that has expired lets nobody in, so it does not count
    assert CliRunner().invoke(app, ["serve", "--db", database, "--port", "0", *options]).exit_code == 2

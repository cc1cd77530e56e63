"""The pages as a server sends them; what a browser makes of them is in test_browser.py."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from html import unescape
from typing import Any

from tests.server.conftest import Running, Start
from tests.server.test_api import new, rows
from typer.testing import CliRunner

from evenhand import Campaign
from evenhand.cli import app
from evenhand.ledger.database import DatabaseLedger
from evenhand.server.tokens import Role, Tokens

HTML = {"Accept": "text/html"}
ODD = ['<script>alert("x")</script>', 'O\'Brien & "sons"', "نساء", "🚲", "long " * 59 + "group"]


def page(server: Running, path: str, **options: Any) -> str:
    found = server.client.get(path, headers=HTML, **options)
    assert found.status_code == 200, found.text
    assert found.headers["content-type"].startswith("text/html")
    assert "unsafe" not in found.headers["content-security-policy"]
    _no_inline(found.text)
    return found.text


def _no_inline(text: str) -> None:
    assert " style=" not in text
    assert "<style" not in text
    assert not re.search(r"<script(?![^>]*\bsrc=)", text)
    assert not re.search(r"<[^>]*\son\w+=", text)


def test_every_page_of_a_campaign_shows_names_as_text(server: Running) -> None:
    at = new(server, groups=ODD, budget=60, refit="always")
    for k in range(7):
        number = server.post(f"{at}/ask").json()["requests"][0]["request"]
        assert server.post(f"{at}/requests/{number}/tell", rows(k)).status_code == 200
    base = at.removeprefix("/api")
    for path in ("/", "/new", base, f"{base}?wait=1", f"{base}/requests/1", f"{base}/events?kind=asked"):
        text = page(server, path)
        assert "alert(" not in re.sub(r"&lt;script.*?&lt;/script&gt;", "", text)
    text = unescape(page(server, f"{base}?wait=1"))
    assert all(name in text for name in ODD)
    for chart in ("why", "budget", "mixture", "risk", "indication", "running", "reasons", "throughput"):
        drawn = server.client.get(f"{base}/charts/{chart}.svg")
        assert drawn.status_code == 200, (chart, drawn.text)
        assert drawn.headers["content-type"] == "image/svg+xml"
        assert " style=" not in drawn.text
        numbers = server.client.get(f"{base}/charts/{chart}.csv")
        assert len(numbers.text.splitlines()) > 1
    mixture = server.client.get(f"{base}/charts/mixture.csv").text.strip().splitlines()
    trained = server.client.get(at).json()["groups"]
    assert [int(n) for n in mixture[-1].split(",")] == [28, *(g["training"] for g in trained.values())]
    assert server.client.get(f"{base}/charts/nothing.svg").status_code == 404


def test_what_is_wrong_is_a_page_for_people_and_json_for_programs(server: Running) -> None:
    missing = server.client.get("/campaigns/nowhere", headers=HTML)
    assert missing.status_code == 404
    assert "There is nothing here" in missing.text
    _no_inline(missing.text)
    assert server.client.get("/campaigns/nowhere").json()["code"] == "not_found"
    form = {"name": "x", "budget": "many", "groups": "u"}
    bad = server.client.post("/new/pool", data=form, files={"file": ("", b"")}, headers=HTML)
    assert bad.status_code == 422
    assert "Budget must be a whole number, not &#39;many&#39;" in bad.text
    assert 'value="many"' in bad.text  # what was typed is still there


def test_roles_see_what_they_may(start: Start, tmp_path: Any) -> None:
    database = f"sqlite:///{tmp_path / 'roles.db'}"
    with DatabaseLedger(database, create=True) as ledger:
        made = {
            role: Tokens(ledger).create(f"{role.name}s", role)[0] for role in (Role.viewer, Role.collector, Role.lead)
        }
    server = start(database, "--root-path", "/eh")
    server.client.base_url = server.url.removesuffix("/eh")
    out = server.client.get("/", headers=HTML, follow_redirects=False)
    assert (out.status_code, out.headers["location"]) == (303, "/eh/login")
    wanted = server.client.get("/campaigns/c/requests/1", headers=HTML, follow_redirects=False).headers["location"]
    assert wanted == "/eh/login?next=%2Fcampaigns%2Fc%2Frequests%2F1"
    evil = {"token": made[Role.viewer], "next": "//evil.example/"}
    assert server.client.post("/login", data=evil, follow_redirects=False).headers["location"] == "/eh/"
    server.client.cookies.clear()

    def signed_in(role: Role) -> dict[str, str]:
        answer = server.client.post("/login", data={"token": made[role]}, follow_redirects=False)
        assert answer.headers["location"] == "/eh/"
        found = {"Cookie": answer.headers["set-cookie"].partition(";")[0], **HTML}
        server.client.cookies.clear()
        return found

    lead, collector, viewer = (signed_in(role) for role in (Role.lead, Role.collector, Role.viewer))
    body = {"name": "c", "groups": "u\nv", "budget": "40", "batch": "2"}
    answer = server.client.post("/new/pool", data=body, headers=lead, follow_redirects=False)
    assert answer.headers["location"] == "/eh/campaigns/c?done=created"
    assert server.client.post("/new/pool", data={**body, "name": "d"}, headers=collector).status_code == 403
    texts = {
        who: server.client.get("/campaigns/c", headers=h).text
        for who, h in zip("lcv", (lead, collector, viewer), strict=True)
    }
    assert ["Take this request" in texts[who] for who in "lcv"] == [True, True, False]
    assert ["Close the campaign" in texts[who] for who in "lcv"] == [True, False, False]
    assert all('href="/eh/static/' in text and 'href="/static' not in text for text in texts.values())
    taken = server.client.post("/campaigns/c/ask", data={}, headers=collector, follow_redirects=False)
    assert taken.headers["location"] == "/eh/campaigns/c/requests/1"
    server.client.post("/campaigns/c/ask", data={"collector": "somebody"}, headers=lead)
    assert server.client.get("/campaigns/c/requests/1", headers=collector).status_code == 200
    assert server.client.get("/campaigns/c/requests/2", headers=collector).status_code == 403
    assert server.client.post("/campaigns/c/close", data={}, headers=collector).status_code == 403
    assert server.client.post("/campaigns/c/ask", data={}, headers=viewer).status_code == 403
    cross = {**lead, "Sec-Fetch-Site": "cross-site"}
    assert (
        server.client.post("/campaigns/c/close", data={"reason": "x", "sure": "yes"}, headers=cross).status_code == 403
    )


def test_campaigns_of_any_name_have_a_page(start: Start, tmp_path: Any) -> None:
    database, names = f"sqlite:///{tmp_path / 'names.db'}", ["a/b", "~x", "ends with ?", "50%"]
    for name in names:
        Campaign.create(database, name, ["u", "v"], budget=100).release()
    server = start(database)
    listed = re.findall(r'<a id="to\d+" href="(/campaigns/[^"]+)"><bdi>(.*?)</bdi>', page(server, "/"))
    assert sorted(name for _, name in listed) == sorted(names)
    for path, name in listed:
        assert f"<bdi>{name}</bdi>" in page(server, unescape(path))


def test_the_report_is_the_page_as_one_file(tmp_path: Any) -> None:
    database, file = f"sqlite:///{tmp_path / 'report.db'}", tmp_path / "out.html"
    with Campaign.create(database, "r", ODD, budget=400, batch=2) as campaign:
        for k in range(6):
            told = rows(k)
            campaign.tell(campaign.ask("bo"), told["X"], told["y"])
    command = ["campaign", "report", "r", str(file), "--db", database]
    assert CliRunner().invoke(app, command).exit_code == 0
    text = file.read_text(encoding="utf-8")
    assert all(name in unescape(text) for name in ODD)
    assert "24<span" in text  # labels used
    assert text.count("<svg") > 8
    assert "<script" not in text
    assert " src=" not in text
    assert "<form" not in text
    again = CliRunner().invoke(app, command)
    assert again.exit_code == 2
    assert "is there already" in again.stderr


def test_a_pool_that_cannot_be_read_leaves_no_campaign_and_a_file_of_another_request_is_refused(
    server: Running,
) -> None:
    form = {"name": "pooled here", "budget": "40", "batch": "2"}
    bad = {"file": ("pool.csv", b"id,group,a\n1,u,1\n1,u,2\n")}
    refused = server.client.post("/new/pool", data=form, files=bad, headers=HTML)
    assert refused.status_code == 422
    assert 'value="pooled here"' in refused.text
    good = "id,group,a\n" + "".join(f"i{k},{'uv'[k % 2]},{k}\n" for k in range(40))
    made = server.client.post("/new/pool", data=form, files={"file": ("pool.csv", good)}, follow_redirects=False)
    assert made.headers["location"] == "/campaigns/pooled%20here?done=created"
    base = "/campaigns/pooled%20here"
    asked = [server.post(f"/api{base}/ask").json()["requests"][0] for _ in range(2)]
    labels = "id,label\n" + "".join(f"{i},yes\n" for i in asked[1]["examples"])
    wrong = server.client.post(f"{base}/requests/1/upload", files={"file": ("done.csv", labels)}, headers=HTML)
    assert wrong.status_code == 422
    assert "rows of request 2" in wrong.text
    missing = server.client.post(f"{base}/requests/99/upload", files={"file": ("done.csv", labels)}, headers=HTML)
    assert missing.status_code == 404
    looked = server.client.post(f"{base}/requests/2/upload", files={"file": ("done.csv", labels)}, headers=HTML)
    assert "Nothing is stored yet" in looked.text
    assert server.client.get(f"/api{base}").json()["used"] == 0
    assert server.client.post(f"{base}/close", data={"reason": "x"}, headers=HTML).status_code == 422
    assert server.client.get(f"/api{base}").json()["closed"] is None


def _fields(text: str) -> dict[str, str]:
    """What the form that confirms a file sends."""
    return {name: unescape(value) for name, value in re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', text)}


def test_only_what_was_shown_is_stored(server: Running) -> None:
    base = "/campaigns/stale"
    server.client.post("/new/pool", data={"name": "stale", "budget": "40", "batch": "2", "groups": "u\nv"})
    server.post(f"/api{base}/ask")
    at = f"{base}/requests/1/upload"

    def look(rows: str) -> dict[str, str]:
        answer = server.client.post(at, files={"file": ("done.csv", f"id,x,label\n{rows}")}, headers=HTML)
        assert "Nothing is stored yet" in answer.text
        return _fields(answer.text)

    mine, theirs = look("A,1,a\nB,2,b\nC,?,a\n"), look("A,1,b\nD,4,b\n")
    stored = server.client.post(at, data=mine, follow_redirects=False)
    assert stored.headers["location"] == f"{base}/requests/1?done=stored"
    again = server.client.post(at, data=mine, follow_redirects=False)  # a second click on the same button
    assert again.headers["location"] == f"{base}/requests/1?done=known"
    # A has another label by now: nobody agreed to leave that row out
    changed = server.client.post(at, data=theirs, headers=HTML, follow_redirects=False)
    assert changed.status_code == 200
    assert "Something else was stored since you looked" in changed.text
    assert "use correct to change it" in changed.text
    assert server.client.get(f"/api{base}").json()["used"] == 2
    agreed = server.client.post(at, data=_fields(changed.text), follow_redirects=False)
    assert agreed.headers["location"] == f"{base}/requests/1?done=stored"
    assert server.client.get(f"/api{base}").json()["used"] == 3


def test_a_form_that_is_refused_keeps_what_was_typed_and_says_why_beside_it(server: Running) -> None:
    base = "/campaigns/typed"
    server.client.post("/new/pool", data={"name": "typed", "budget": "40", "batch": "2", "groups": "u\nv"})
    server.post(f"/api{base}/ask")

    def panel(path: str, form: dict[str, str], name: str) -> str:
        answer = server.client.post(base + path, data=form, headers=HTML)
        assert answer.status_code in (404, 422), answer.status_code
        assert answer.text.count('role="alert"') == 1
        found = re.search(rf'(?s)<details class="panel[ a-z]*" id="{name}" open>.*?</details>', answer.text)
        assert found, (path, name)
        return unescape(found[0])

    withdrawn = panel("/withdraw", {"ids": "one\ntwo", "reason": "<b>", "refund": "yes"}, "withdraw")
    assert "there is no example 'one'" in withdrawn.lower()
    assert all(text in withdrawn for text in ("one\ntwo</textarea>", 'value="<b>"', 'value="yes" checked'))
    assert 'value="7"' in panel("/change", {"budget": "7", "lease": "soon"}, "change")
    assert 'value="half"' in panel("/certify", {"target": "half"}, "certify")
    assert 'value="soon"' in panel("/requests/1/extend", {"lease": "soon"}, "extend")
    server.client.post(f"{base}/close", data={"sure": "yes"})
    late = server.client.post(f"{base}/change", data={"budget": "60"}, headers=HTML)  # its panel is gone by now
    assert late.text.count('role="alert"') == 1
    missing = server.client.post("/new/pool", data={"name": " ", "budget": "40", "groups": "u"}, headers=HTML)
    assert "The name is missing" in missing.text
    assert '<details class="more" open>' in missing.text
    long = server.client.post("/new/pool", data={"name": "x", "budget": "9" * 5000, "groups": "u"}, headers=HTML)
    assert long.status_code == 422


def test_numbers_of_rows_where_somebody_else_trains(server: Running) -> None:
    base, form = "/campaigns/counted", {"name": "counted", "budget": "40", "batch": "2", "groups": "u\nv"}
    server.client.post("/new/pool", data={**form, "learner": "none"})
    server.client.post(f"{base}/ask")
    more = server.client.post(f"{base}/requests/1/count", data={"n": "6"}, headers=HTML)
    assert more.status_code == 409
    assert "“Take more rows than were asked for”" in more.text
    assert 'name="extra"' in more.text  # the box that the message speaks of
    server.client.post(f"{base}/requests/1/count", data={"n": "6", "extra": "yes"})
    assert server.client.get(f"/api{base}").json()["used"] == 6
    server.client.post(f"{base}/close", data={"sure": "yes"})
    over = server.client.post(f"{base}/ask", headers=HTML)
    assert "Nothing to ask now: closed" in over.text


def test_messages_keep_the_names_of_files_and_columns_as_they_are(server: Running) -> None:
    base = "/campaigns/words"
    server.client.post("/new/pool", data={"name": "words", "budget": "40", "batch": "2", "groups": "u\nv"})
    server.post(f"/api{base}/ask")
    at = f"{base}/requests/1/upload"
    refused = server.client.post(at, files={"file": ("done.csv", "x,y\n1,2\n")}, headers=HTML)
    assert ">done.csv: there is no column" in refused.text
    row = server.client.post(at, files={"file": ("done.csv", "x,label\n?,a\n")}, headers=HTML)
    assert "column &#39;x&#39; is text, which the learner cannot use" in row.text
    full = server.client.post(at, files={"file": ("done.csv", "x,label\n" + "1,a\n" * 5)}, headers=HTML)
    assert ">Request 1 waits for 4 labels only" in full.text
    one = server.client.post(f"/api{base}/requests/1/tell", json={"X": [[1.0]], "y": ["a"]})
    assert one.status_code == 200
    log = page(server, f"{base}/events")
    assert "1 label of " in log
    assert "(first examples of every group)" in log


def test_the_list_says_what_needs_eyes(start: Start, tmp_path: Any) -> None:
    database = f"sqlite:///{tmp_path / 'list.db'}"
    ended = "until=2020-01-01"
    Campaign.create(database, "met", ["u", "v"], budget=40, stop=ended).release()
    with Campaign.create(database, "leases", ["u", "v"], budget=40, batch=2, lease="10d") as campaign:
        campaign.ask()
        campaign.extend(campaign.ask(), "2h")
    text = page(start(database), "/")
    cards = dict(re.findall(r"(?s)<bdi>(met|leases)</bdi>(.*?)<dl", text))
    assert "stopping rule met" in cards["met"]
    assert "1 will expire soon" in cards["leases"]
    assert "expired" not in cards["leases"]


def _corrected(server: Running, classes: tuple[Any, Any]) -> Any:
    """A campaign with an example of each class; corrects one by the page, and gives what the page says and the labels."""
    at = new(server, batch=1, learner="none")
    assert server.post(f"{at}/ask").status_code == 200
    told = {"X": [[0.0], [1.0]], "y": list(classes), "ids": ["a", "b"]}
    assert server.post(f"{at}/requests/1/tell", told).status_code == 200

    def correct(label: str) -> tuple[int, str, list[Any]]:
        form = {"id": "b", "label": label}
        answer = server.client.post(f"{at[4:]}/correct", data=form, headers=HTML, follow_redirects=True)
        rows = server.client.get(f"{at}/export?format=jsonl").text.splitlines()
        labels = {row["id"]: row["label"] for row in map(json.loads, rows)}
        assert labels["a"] == classes[0]
        return answer.status_code, unescape(answer.text), labels["b"]

    return correct


def test_corrections_of_yes_and_no_store_what_is_meant(server: Running) -> None:
    correct = _corrected(server, (False, True))
    for typed in ("yes", "1", "wahr"):
        status, text, label = correct(typed)
        assert (status, label) == (422, True), typed
        assert f"'{typed}' is not like the classes so far, which are True or False" in text
    for typed, wanted in ((" False ", False), ("TRUE", True), ("false", False), ("True", True)):
        status, text, label = correct(typed)
        assert (status, label) == (200, wanted), typed
        assert "The label was corrected" in text
    status, text, label = correct("true")
    assert (status, label) == (200, True)
    assert "'b' is already labelled 'true'; nothing changed." in text
    assert "The label was corrected" not in text


def test_corrections_of_whole_numbers_store_what_is_meant(server: Running) -> None:
    correct = _corrected(server, (0, 1))
    for typed in ("abc", "1.5", "yes", "9" * 30):
        status, _, label = correct(typed)
        assert (status, label) == (422, 1), typed
    assert "'abc' is not like the classes so far, which are whole numbers, such as 0, 1" in correct("abc")[1]
    assert correct("0")[2] == 0
    assert "already labelled '0'" in correct(" 0 ")[1]


def test_classes_typed_into_the_form_are_of_the_kind_that_they_look_like(server: Running) -> None:
    for name, typed, wanted in (
        ("kind 1", "0\n1", [0, 1]), ("kind 2", "True\nfalse", [True, False]), ("kind 3", "1\nnone", ["1", "none"]),
    ):  # fmt: skip
        form = {"name": name, "budget": "40", "groups": "u\nv", "classes": typed}
        made = server.client.post("/new/pool", data=form, follow_redirects=False)
        assert made.status_code == 303, made.text
        assert server.client.get(f"/api/campaigns/{name}/settings").json()["classes"] == wanted


def test_a_damaged_ledger_is_found_and_shown(start: Start, tmp_path: Any) -> None:
    path = tmp_path / "damaged.db"
    server = start(f"sqlite:///{path}")

    def made() -> str:
        at = new(server, learner="none")
        server.post(f"{at}/ask")
        assert server.post(f"{at}/requests/1/tell", rows(0)).status_code == 200
        return at

    def damaged(at: str, change: str) -> str:
        with closing(sqlite3.connect(path)) as database:
            known = "(SELECT max(id) FROM campaigns)"
            database.execute(f"UPDATE events SET facts = {change} WHERE seq = 3 AND campaign = {known}")
            database.commit()
        answer = server.client.post(f"{at[4:]}/verify", headers=HTML)
        assert answer.status_code == 409, answer.text
        assert "The ledger is not as it was written" in answer.text
        assert not server.client.get(f"{at}/verify").json()["ok"]
        return unescape(re.findall(r"(?s)<ul class=.findings.>.*?</ul>", answer.text)[0])

    one = made()
    fine = server.client.post(f"{one[4:]}/verify", headers=HTML, follow_redirects=True)
    assert "The ledger was verified" in fine.text
    assert "event 3 (told): surplus 7, but the events and rows say 0" in damaged(one, "json_set(facts, '$.surplus', 7)")
    assert "event 3 (told) is damaged" in damaged(one, "json_remove(facts, '$.rows')")
    assert "ledger damaged, found" in page(server, one[4:])
    # no process that begins now could open it
    assert "event 3 (told) is damaged" in damaged(made(), "json_remove(facts, '$.rows')")
    assert "event 3 cannot be read" in damaged(made(), "'{'")

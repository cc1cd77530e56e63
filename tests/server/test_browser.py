"""The pages in a real browser, over a real server: a campaign from its making to its end, by two people at once."""

from __future__ import annotations

import csv
import io
import os
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.server.conftest import Start

from evenhand import Campaign
from evenhand.ledger.database import DatabaseLedger
from evenhand.server.tokens import Role, Tokens

AXE = Path(sys.prefix) / "node" / "node_modules" / "axe-core" / "axe.min.js"
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ODD = '<script>alert("x")</script> & "sons" 🚲 نساء'
TOKYO = 9 * 3600
Page = Any


def _missing(what: str) -> None:
    """Without a browser these tests are left out, except where everything has to be there."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what} is missing: `make browser` installs it")
    pytest.skip(f"{what} is missing: `make browser` installs it")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if BROWSER is None:
        _missing("Chromium")
    if not AXE.exists():
        _missing("axe-core")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as p:
        found = p.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"])
        yield found
        found.close()


class Person:
    """Somebody at a browser of their own; what its console says is kept."""

    def __init__(self, browser: Any, url: str, token: str | None = None, **options: Any) -> None:
        self.url, self.said = url, list[str]()
        self.context = browser.new_context(accept_downloads=True, locale="en-GB", timezone_id="Asia/Tokyo", **options)
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(15_000)
        self.page.on("console", lambda m: self.said.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        if token is not None:
            self.page.goto(f"{url}/login")
            self.check()
            self.page.fill("#token", token)
            self.page.click("text=Sign in >> nth=-1")
            self.page.wait_for_url(f"{url}/")

    def see(self, path: str) -> Page:
        self.page.goto(f"{self.url}{path}")
        return self.page

    def check(self) -> None:
        """The page is accessible, says nothing in the console, and is no wider than the window."""
        self.page.evaluate(AXE.read_text(encoding="utf-8"))
        found = self.page.evaluate("async () => (await axe.run()).violations")
        serious = [
            (v["id"], [node["target"] for node in v["nodes"]]) for v in found if v["impact"] in ("serious", "critical")
        ]
        assert not serious, (self.page.url, serious)
        assert not self.said, (self.page.url, self.said)
        wide = self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, (self.page.url, wide)

    def file(self, name: str, text: str, field: str = "input[type=file] >> nth=0") -> None:
        self.page.set_input_files(field, {"name": name, "mimeType": "text/csv", "buffer": text.encode()})


def pool() -> str:
    """A pool of two groups, one with a name to be careful with."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["id", "group", "a", "b"])
    for i in range(60):
        writer.writerow([f"e{i:02d}", ODD if i % 2 else "women", round((i % 4 > 1) + i / 100, 2), i % 7])
    return text.getvalue()


def labelled(rows: str, wrong: dict[str, str], *more: str) -> str:
    """The rows as somebody fills them in, with some that are not theirs."""
    found = list(csv.DictReader(io.StringIO(rows)))
    found += [{**found[0], "id": name} for name in more]
    for row in found:
        row["label"] = wrong.get(row["id"], "yes" if float(row["a"]) >= 1 else "no")
    text = io.StringIO()
    writer = csv.DictWriter(text, list(found[0]))
    writer.writeheader()
    writer.writerows(found)
    return text.getvalue()


def test_a_campaign_from_its_making_to_its_end_by_two_people(browser: Any, start: Start, tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'browser.db'}"
    with DatabaseLedger(database, create=True) as ledger:
        tokens = {role: Tokens(ledger).create(f"{role.name} Ann", role)[0] for role in (Role.lead, Role.collector)}
    server = start(database)
    lead = Person(browser, server.url, tokens[Role.lead])
    collector = Person(browser, server.url, tokens[Role.collector], viewport={"width": 400, "height": 800})

    # made with a pool, groups taken from it; who looks at the empty list sees it come
    listed = Person(browser, server.url, tokens[Role.collector])
    listed.page.wait_for_selector("text=There is no campaign yet")
    page = lead.see("/new")
    lead.check()
    page.fill("#f-name", "Sürvey 1")
    page.fill("#f-budget", "40")
    page.fill("#f-batch", "2")
    lead.file("pool.csv", pool())
    page.click("text=Make the campaign")
    page.wait_for_url("**/campaigns/**")
    assert "The campaign is made." in page.inner_text("main")
    assert "4 labels from" in page.inner_text(".hero")
    lead.check()
    at = page.url.removeprefix(server.url).partition("?")[0]
    listed.page.wait_for_selector("#live-list a:has-text('Sürvey 1')")
    listed.page.focus("#live-list a")

    # by keyboard: the first stop leads past the navigation, and what has the focus is seen to have it
    page.focus(".brand")
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("document.activeElement.textContent") == "To the content"
    page.focus("text=Take this request")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "for-whom"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"

    # taken and delivered by somebody else, on a telephone; the lead's page follows without a reload
    theirs = collector.see(at)
    collector.check()
    assert theirs.locator("text=Close the campaign").count() == 0
    theirs.click("text=Take this request")
    theirs.wait_for_url("**/requests/1")
    collector.check()
    page.wait_for_selector("#live-requests td:has-text('collector Ann')")
    with theirs.expect_download() as download:
        theirs.click("text=Download the rows")
    rows = Path(download.value.path()).read_text(encoding="utf-8")
    names = [row["id"] for row in csv.DictReader(io.StringIO(rows))]
    assert len(names) == 4
    # a file of rows that nobody asked for is refused row by row, and nothing is stored
    theirs.evaluate(
        """text => { const drop = document.querySelector('[data-drop]'), data = new DataTransfer();
        data.items.add(new File([text], 'done.csv', {type: 'text/csv'}));
        drop.dispatchEvent(new DragEvent('drop', {dataTransfer: data, bubbles: true, cancelable: true})) }""",
        labelled(rows, {names[0]: ""}, "nobody"),
    )
    theirs.click("text=Look through it")
    theirs.wait_for_selector("text=Nothing is stored yet")
    collector.check()
    refused = theirs.inner_text("table")
    assert "there is no example 'nobody'".lower() in refused.lower()
    assert server.client.get(f"/api{at}", headers={"Authorization": f"Bearer {tokens[Role.lead]}"}).json()["used"] == 0
    theirs.click("text=Store 3 labels")
    theirs.wait_for_selector("text=The labels are stored.")
    theirs.wait_for_selector("text=1 outstanding")
    page.wait_for_selector("#live-tiles .big:has-text('3')")
    listed.page.wait_for_selector("#live-list dd:has-text('3 of 40')")
    assert listed.page.evaluate("document.activeElement.textContent") == "Sürvey 1"
    listed.check()
    collector.file("rest.csv", f"id,label\n{names[0]},yes\n")
    theirs.click("text=Look through it")
    theirs.click("text=Store 1 label")
    theirs.wait_for_selector("text=The labels are stored.")
    assert theirs.url.partition("?")[0] == server.url + at

    # corrected and taken back by the lead, who may; then the end, and the data set
    page.click("summary:has-text('Correct a label')")
    lead.check()
    page.fill("#correct-id", "nobody")
    page.fill("#correct-label", "no")
    page.click("#correct button")
    page.wait_for_selector("[role=alert]")
    assert "nobody" in page.inner_text("[role=alert]")
    assert page.input_value("#correct-label") == "no"  # what was typed is still there
    lead.said.clear()  # the console says that the answer was a 422, as it should be
    lead.check()
    # and the page still follows: the form's own address could not be fetched
    assert server.post(f"/api{at}/ask", headers={"Authorization": f"Bearer {tokens[Role.lead]}"}).status_code == 200
    page.wait_for_selector("#live-requests td:has-text('lead Ann')")
    assert not page.is_visible("#offline")
    page.fill("#correct-id", names[0])
    page.click("#correct button")
    page.wait_for_selector("text=The label was corrected")
    page.wait_for_selector("#chart-mixture svg >> visible=true")
    assert ODD in page.inner_text("main")
    lead.check()
    shown = page.inner_text("#live-people time >> nth=0")
    assert "UTC" not in shown  # in the viewer's own zone
    axis = page.locator("#chart-budget .wide g[data-step]")
    step, low, high = (int(axis.get_attribute(f"data-{name}")) for name in ("step", "from", "to"))
    assert axis.locator(".axis").text_content() == "time (GMT+9)"
    walls = [wall for wall in range(-(-(low + TOKYO) // step) * step, high + TOKYO + 1, step) if wall % 86400]
    form = "%H:%M:%S" if step < 60 else "%H:%M"
    expected = [datetime.fromtimestamp(wall, UTC).strftime(form) for wall in walls]
    assert [tick for tick in axis.locator(".tick").all_text_contents() if ":" in tick] == expected
    page.click("summary:has-text('Export')")
    with page.expect_download() as download:
        page.click("#export >> text=CSV")
    exported = list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text(encoding="utf-8"))))
    assert sorted(row["id"] for row in exported) == sorted(names)
    assert {row["id"]: row["label"] for row in exported}[names[0]] == "no"
    page.click("summary:has-text('Close the campaign')")
    page.check("#close-sure")
    page.click("#close button")
    page.wait_for_selector("text=The campaign is closed.")
    theirs.wait_for_selector("text=Nothing more to ask")
    lead.see("/")
    lead.check()
    lead.see(f"{at}/events?kind=labelled")
    assert lead.page.locator("tbody tr").count() == 2
    lead.check()
    collector.check()


def test_dark_without_scripts_and_a_database_that_is_away(browser: Any, start: Start, tmp_path: Path) -> None:
    path = tmp_path / "away.db"
    long = "a group with a very long name " * 10
    with Campaign.create(
        f"sqlite:///{path}", "plain", [ODD, long[:300], "v"], budget=60, batch=2, distinct=True
    ) as campaign:
        for k in range(6):
            r = campaign.ask("bo")
            campaign.tell(r, [[i + k / 7, i * 0.5] for i in range(4)], [0, 0, 1, 1])
        campaign.refit()
        campaign.certify(0.4)
        campaign.ask("bo")
    server = start(f"sqlite:///{path}")
    plain = Person(
        browser, server.url, java_script_enabled=False, color_scheme="dark", viewport={"width": 400, "height": 800}
    )
    page = plain.see("/campaigns/plain?wait=1")
    assert ODD in page.inner_text("main")
    assert page.locator("#chart-risk svg >> visible=true").count() == 1
    page.click("text=Take this request")
    page.wait_for_url("**/requests/8")
    assert "labels from" in page.inner_text(".hero")

    dark = Person(browser, server.url, color_scheme="dark")
    for where in ("/", "/campaigns/plain?wait=1", "/campaigns/plain/requests/8", "/new", "/campaigns/plain/events"):
        dark.see(where)
        dark.check()
    # a page that is open goes on by itself after a proxy refused its stream, keeps what was unfolded, and says that the database is away
    watching = Person(browser, server.url)
    watching.context.route("**/stream?*", lambda route: route.fulfill(status=502))
    follower = watching.see("/campaigns/plain/requests/8")
    follower.wait_for_selector("text=The server does not answer.")
    watching.context.unroute("**/stream?*")
    follower.wait_for_selector("#offline", state="hidden")
    follower.click("text=In numbers")
    server.client.post("/campaigns/plain/requests/8/abandon")
    follower.wait_for_selector(".badge:has-text('done')")
    assert follower.evaluate("document.querySelector('#live-request details').open")
    with sqlite3.connect(path) as other:
        other.execute("ALTER TABLE events RENAME TO away")
    other.close()
    page = dark.see("/campaigns/plain")
    assert "The database cannot be reached" in page.inner_text("h1")
    assert "Traceback" not in page.content()
    dark.said.clear()  # the console says that the answer was a 503, as it should be
    dark.check()
    follower.wait_for_selector("text=The database cannot be reached.")
    with sqlite3.connect(path) as other:
        other.execute("ALTER TABLE away RENAME TO events")
    other.close()
    page.wait_for_selector("text=Next request")  # by itself
    follower.wait_for_selector("#offline", state="hidden")
    dark.said.clear()
    dark.check()

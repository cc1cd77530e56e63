"""How quick the page of a large campaign is: 100,000 events and 200 groups, a real server, a real browser.

Run: python -m benchmarks.page --json FILE       (`--keep FILE` keeps the campaign for the next run)

The campaign is made through the public API: every request is asked for and answered with labelled rows, and the model is
fitted now and then. Each round starts a server and a browser of its own and opens the page twice: once when neither knows
anything, and once more. Needs Chromium and Playwright, which `make browser` installs.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from playwright.sync_api import Browser, Page, sync_playwright
from tests.serving.process import Server

import evenhand as eh
from evenhand.ledger.database import DatabaseLedger

EVENTS, GROUPS, COLLECTORS, DAYS = 100_000, 200, 20, 60
REFIT = 5000
AIMS = {"first_paint_ms": 1500.0, "bytes_with_past": 1_000_000}
WATCH = """
window.seen = { longest: 0, past: null };
new PerformanceObserver((list) => {
  for (const task of list.getEntries()) seen.longest = Math.max(seen.longest, task.duration);
}).observe({ type: "longtask", buffered: true });
new MutationObserver(() => {
  if (seen.past === null && document.querySelector("#chart-risk svg")) seen.past = performance.now();
}).observe(document, { childList: true, subtree: true });
"""
FOUND = """() => {
  const page = performance.getEntriesByType("navigation")[0];
  const all = [page, ...performance.getEntriesByType("resource")];
  return {
    first_answer_ms: page.responseStart,
    first_paint_ms: performance.getEntriesByName("first-contentful-paint")[0].startTime,
    past_ms: seen.past,
    longest_task_ms: seen.longest,
    bytes: all.filter((one) => one.startTime < page.loadEventEnd).reduce((sum, one) => sum + one.transferSize, 0),
    bytes_with_past: all.reduce((sum, one) => sum + one.transferSize, 0),
  };
}"""


def campaign(database: str) -> dict[str, Any]:
    """Make the campaign, over so many days of a clock that is set, and say what it came to."""
    started, rng = time.perf_counter(), np.random.default_rng(0)
    names = [f"group {i:03d}" for i in range(GROUPS)]
    clock = time.time() - DAYS * 86400
    # who is far from the middle is hard to tell, and some groups more than others
    hard = rng.uniform(0.3, 2.0, GROUPS)
    with DatabaseLedger(f"{database}?synchronous=normal", create=True, clock=lambda: clock) as ledger:
        made = eh.Campaign.create(ledger, "large", names, budget=2 * EVENTS, batch=1, refit=REFIT, distinct=True)
        while made.status()["events"] < EVENTS:
            for _ in range(500):
                clock += 2 * DAYS * 86400 / EVENTS
                request = made.ask(f"collector {rng.integers(COLLECTORS)}")
                y = rng.integers(0, 2, request.size)
                spread = rng.normal(size=(request.size, 2)) * hard[names.index(request.group)]
                made.tell(request, spread + (2 * y - 1)[:, None], y)
        status = made.status()
    told = {"events": status["events"], "groups": len(status["groups"]), "labels": status["used"]}
    return told | {"collectors": COLLECTORS, "days": DAYS, "seconds_to_make": round(time.perf_counter() - started, 1)}


def visit(page: Page, address: str) -> dict[str, float]:
    """Open the page, wait until its past is there, and give its tasks time to end."""
    page.goto(address)
    page.wait_for_selector("#chart-risk svg >> visible=true", timeout=120_000)
    page.wait_for_timeout(1000)
    return {name: round(value, 1) for name, value in page.evaluate(FOUND).items()}


def round_of(database: str, browser: Browser) -> list[dict[str, float]]:
    """The page of a server that has just started, and once more."""
    server = Server(database)
    try:
        context = browser.new_context(viewport={"width": 1200, "height": 900})
        context.add_init_script(WATCH)
        page = context.new_page()
        return [visit(page, f"http://127.0.0.1:{server.port}/campaigns/large") for _ in range(2)]
    finally:
        server.stop()


def summary(visits: list[dict[str, float]]) -> dict[str, Any]:
    """Median and worst of every figure."""
    return {how: {name: choose(one[name] for one in visits) for name in visits[0]} for how, choose in WAYS.items()}


WAYS: dict[str, Any] = {"median": median, "worst": max}


def main() -> None:
    """Make the campaign where it is not there, and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keep", type=Path, help="the campaign's SQLite file: made if it is not there, and kept")
    parser.add_argument("--browser", default=shutil.which("chromium") or shutil.which("google-chrome"))
    parser.add_argument("--json", type=Path, help="keep the figures in this file")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = given.keep or Path(folder) / "large.db"
        told = path.with_suffix(".json")
        if not path.exists():
            told.write_text(json.dumps(campaign(f"sqlite:///{path.absolute()}")))
        made = json.loads(told.read_text(encoding="utf-8"))
        print(json.dumps(made), flush=True)
        first, second = [], []
        with sync_playwright() as p:
            for _ in range(given.rounds):
                browser = p.chromium.launch(executable_path=given.browser, args=["--no-sandbox", "--disable-gpu"])
                for visits, found in zip(
                    (first, second), round_of(f"sqlite:///{path.absolute()}", browser), strict=True
                ):
                    visits.append(found)
                    print(json.dumps(found), flush=True)
                browser.close()
    found = {"campaign": made, "rounds": given.rounds, "fresh": summary(first), "again": summary(second), "aims": AIMS}
    worst = (found["fresh"]["worst"], found["again"]["worst"])
    found["met"] = {name: all(one[name] <= aim for one in worst) for name, aim in AIMS.items()}
    if given.json:
        given.json.write_text(json.dumps(found))


if __name__ == "__main__":
    main()

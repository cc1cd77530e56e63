"""Make the pictures that docs/page.md shows, of a server over made-up campaigns.

    python docs/assets/page_pictures.py [--browser /usr/bin/chromium]

Needs Chromium and Playwright.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from evenhand import Campaign
from evenhand.ledger.database import DatabaseLedger

HERE = Path(__file__).parent
SHARES = {"women under 40": 0.29, "women over 40": 0.23, "men under 40": 0.27, "men over 40": 0.18, "non-binary": 0.03}
TILT = {"women under 40": 0.2, "women over 40": 0.9, "men under 40": 0.0, "men over 40": 0.4, "non-binary": 1.5}
DAY = 86400.0


class Dated(DatabaseLedger):
    """A ledger whose clock the script sets, so that a campaign of weeks takes seconds."""

    def __init__(self, url: str) -> None:
        self.clock = time.time()
        super().__init__(url, create=True, clock=lambda: self.clock)


def rows(rng: np.random.Generator, group: str, n: int, prefix: str) -> pd.DataFrame:
    """Made-up answers of a group; the groups differ in what tells the label."""
    label = rng.random(n) < 0.5
    X = rng.normal(size=(n, 4)) + np.outer(
        np.where(label, 1.0, -1.0), [1.0, 0.6 - TILT[group] / 2, TILT[group] / 3, 0.0]
    )
    found = pd.DataFrame(X.round(3), columns=["sleep", "stress", "activity", "age"])
    found.insert(0, "id", [f"{prefix}{i:04d}" for i in range(n)])
    return found.assign(group=group, truth=np.where(label, "yes", "no"))


def survey(ledger: Dated, now: float) -> None:
    """A campaign over a pool that has run for two weeks."""
    rng = np.random.default_rng(7)
    pool = pd.concat([rows(rng, g, int(4000 * s) + 150, f"{g[0]}{k}") for k, (g, s) in enumerate(SHARES.items())])
    truth = dict(zip(pool["id"], pool["truth"], strict=True))
    ledger.clock = now - 15 * DAY
    c = Campaign.create(
        ledger, "Sleep survey 2027", list(SHARES), classes=["no", "yes"], budget=1600, batch=4, population=SHARES, lease="2d", seed=3, refit=40,
        label="label",
    )  # fmt: skip
    c.pool(pool.drop(columns="truth"), by="maria")
    people, hours = ["ann", "bo", "chidi"], np.sort(rng.uniform(0, 14.6, size=118)).tolist()
    for k, hour in enumerate(hours):
        ledger.clock = max(ledger.clock + 60, now - (15 - hour) * DAY)
        who = people[int(rng.choice(3, p=[0.5, 0.3, 0.2]))]
        r = c.ask(who)
        ledger.clock += 1200
        if k in (20, 63):
            c.abandon(r, by=who)
            continue
        labels: dict[str, Any] = {i: truth[i] for i in r.examples}
        if k % 17 == 3:
            labels[f"x{k}"] = "yes"
        if k % 23 == 5:
            labels[r.examples[0]] = "maybe"
        c.tell_labels(labels, who, partial=True)
        if k % 23 == 5:
            c.tell_labels({r.examples[0]: truth[r.examples[0]]}, who)
    ledger.clock = now - 46.5 * 3600
    c.ask("ann")
    ledger.clock = now - 5 * 3600
    r = c.ask("chidi")
    ledger.clock = now - 900
    c.ask("bo")
    c.tell_labels({i: truth[i] for i in r.examples[:3]}, "chidi")


def fresh(ledger: Dated, now: float) -> None:
    """A campaign that has just been made."""
    ledger.clock = now - 120
    Campaign.create(
        ledger, "Voice commands by accent", ["Glasgow", "Lagos", "Mumbai", "Texas"], budget=800, batch=5
    ).release()


def serve(database: str, *options: str) -> tuple[subprocess.Popen[str], str]:
    """A server process over the campaigns, and its address."""
    command = [sys.executable, "-m", "evenhand", "serve", "--db", database, "--port", "0", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    line = process.stdout.readline() if process.stdout else ""
    found = re.search(r"http://\S+", line)
    if found is None:
        raise SystemExit(f"the server did not start: {line}")
    return process, found[0].rstrip("/")


SURVEY = "/campaigns/Sleep%20survey%202027"
PAGES = {"list": "/", "new": "/new", "campaign": f"{SURVEY}?wait=1", "request": f"{SURVEY}/requests/120"}


def shoot(browser: Browser, url: str, folder: Path) -> None:
    """Every page that the guide shows."""
    page = browser.new_page(viewport={"width": 1200, "height": 900}, timezone_id="Europe/Berlin", locale="en-GB")
    for what, path in PAGES.items():
        page.goto(url + path)
        page.wait_for_timeout(300)
        if what == "campaign":
            page.evaluate("document.querySelector('#certify').open = true")
        page.screenshot(path=folder / f"{what}.png", full_page=True)
    rows = page.request.get(f"{url}/api{SURVEY}/requests/120/rows").text().splitlines()[1:]
    ids = [line.split(",")[0] for line in rows]
    labels = "id,label\n" + "".join(f"{i},{'yes' if k % 3 else 'no'}\n" for k, i in enumerate(ids[:4]))
    labels += f"{ids[4]},maybe\nx0001,yes\n"
    page.set_input_files("input[type=file]", {"name": "done.csv", "mimeType": "text/csv", "buffer": labels.encode()})
    page.click("text=Look through it")
    page.screenshot(path=folder / "check.png", full_page=True)


def kept(path: Path) -> None:
    """A small copy of a picture, for the documentation."""
    picture = Image.open(path).convert("RGB")
    picture = picture.crop((0, 0, picture.width, min(picture.height, int(picture.width * 2.2))))
    picture = picture.resize((800, picture.height * 800 // picture.width), Image.Resampling.LANCZOS)
    # few colours are enough for letters and lines, and make a small file
    small = picture.quantize(256, Image.Quantize.MEDIANCUT, kmeans=3, dither=Image.Dither.NONE)
    small.save(HERE / f"page-{path.name}", optimize=True)


def main() -> None:
    """Make the campaigns, serve them, take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--browser", default="/usr/bin/chromium")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        database = f"sqlite:///{folder / 'pictures.db'}"
        with Dated(database) as ledger:
            for make in (survey, fresh):
                make(ledger, time.time())
        process, url = serve(database)
        try:
            with sync_playwright() as p:
                browser = p.chromium.launch(executable_path=given.browser, args=["--no-sandbox"])
                shoot(browser, url, folder)
                browser.close()
        finally:
            process.terminate()
            process.wait()
        for path in sorted(folder.glob("*.png")):
            kept(path)


if __name__ == "__main__":
    main()

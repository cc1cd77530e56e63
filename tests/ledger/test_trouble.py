"""Full disks, read-only places, drafts that cannot be written down."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import event

from evenhand import live
from evenhand.ledger import Draft, Ledger, LedgerError, State
from evenhand.live import LiveCampaign


def made(folder: Path) -> str:
    url = f"sqlite:///{folder / 'ledger.db'}"
    kept = live.create(url, "survey", ["u", "v"], "uniform", "logistic", budget=10**6, refit="background")
    kept.tell(kept.ask(), np.eye(2), [0, 1])
    kept.ledger.close()
    return url


def test_a_full_disk(tmp_path: Path) -> None:
    url = made(tmp_path)
    with Ledger(url) as ledger:

        @event.listens_for(ledger.engine, "connect")
        def no_more_pages(connection: sqlite3.Connection, record: object) -> None:
            pages = connection.execute("PRAGMA page_count").fetchone()[0]
            connection.execute(f"PRAGMA max_page_count={pages + 1}")

        ledger.engine.dispose()
        kept = LiveCampaign(ledger, "survey")
        before = kept.ledger.events(kept.number)
        with pytest.raises(LedgerError, match="disk is full: nothing was stored"):
            kept.add(np.ones((5000, 2)), [0, 1] * 2500, ["u"] * 5000)
        assert ledger.events(kept.number) == before
    kept = live.open_campaign(url, "survey")
    kept.tell(kept.ask(), np.eye(2) + 1, [0, 1])
    assert kept.refresh().labels_used == 4


FULL = """
import resource, sys
import numpy as np
from evenhand import live
kept = live.open_campaign(sys.argv[1], "survey")
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try:
    for k in range(1000):
        kept.tell(kept.ask(), np.full((100, 2), float(k)), [0, 1] * 50)
except live.LedgerError as error:
    print(kept.refresh().answered, error)
"""


def test_files_that_may_not_grow(tmp_path: Path) -> None:
    url = made(tmp_path)
    done = subprocess.run([sys.executable, "-c", FULL, url], capture_output=True, text=True, check=True)
    answered = int(done.stdout.split()[0])
    assert answered >= 1
    assert "the database failed: disk I/O error" in done.stdout
    kept = live.open_campaign(url, "survey")
    assert kept.refresh().answered == answered
    assert kept.refresh() == State().fold(kept.ledger.events(kept.number))
    with sqlite3.connect(tmp_path / "ledger.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


NOBODY = """
import os, sys
from evenhand import live
from evenhand.live.status import status
other = live.open_campaign(sys.argv[2], "survey")
other.ask()
status(other)  # everything is imported now: the interpreter may be out of reach of the user we become
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
seen = live.open_campaign(sys.argv[1], "survey", read_only=True)
print("used", status(seen)["used"])
try:
    kept = live.open_campaign(sys.argv[1], "survey")
    kept.ask()
except live.LedgerError as error:
    print(error)
"""


@pytest.fixture
def sealed() -> Iterator[Path]:
    """A folder in which nobody but root can change anything; not in pytest's own, which others may not enter."""
    with tempfile.TemporaryDirectory() as place:
        url = made(Path(place))
        folder = Path(place) / "sealed"
        folder.mkdir()
        shutil.copy(url.removeprefix("sqlite:///"), folder / "ledger.db")
        (folder / "ledger.db").chmod(0o444)
        folder.chmod(0o555)
        Path(place).chmod(0o755)
        yield folder
        folder.chmod(0o755)


def test_a_read_only_place(sealed: Path) -> None:
    before = (sealed / "ledger.db").read_bytes()
    url = f"sqlite:///{sealed / 'ledger.db'}"
    done = subprocess.run(
        [sys.executable, "-c", NOBODY, url, f"sqlite:///{sealed.parent / 'ledger.db'}"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "used 2" in done.stdout
    assert "read-only: nothing was stored" in done.stdout
    assert (sealed / "ledger.db").read_bytes() == before
    assert os.listdir(sealed) == ["ledger.db"]


def test_looking_changes_nothing(tmp_path: Path) -> None:
    url = made(tmp_path)
    file = tmp_path / "ledger.db"
    before = file.read_bytes()
    with Ledger(url, read_only=True) as ledger:
        seen = LiveCampaign(ledger, "survey")
        assert seen.propose().group
        assert seen.campaign().labels_used == 2
        with pytest.raises(LedgerError, match="read-only"):
            seen.ask()
    assert file.read_bytes() == before


def test_drafts_reach_the_disk_whole(tmp_path: Path) -> None:
    with Ledger(made(tmp_path)) as ledger:
        campaign = ledger.find("survey")
        for bad in (float("nan"), float("inf")):
            with pytest.raises(ValueError, match="finite numbers"):
                ledger.write(campaign, State(), lambda *_, bad=bad: [Draft("losses", {"groups": {"u": bad}})])
        assert ledger.state(campaign).seq == 3

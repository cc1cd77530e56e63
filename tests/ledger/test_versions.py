"""Ledgers made by earlier versions: looked at as they are, brought up to date by the first who writes."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from pathlib import Path

import numpy as np
import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from evenhand import live
from evenhand.ledger import Ledger, LedgerError, migrate
from evenhand.ledger.connection import connect
from evenhand.live import LiveCampaign
from evenhand.live.verify import verify

ASSET = Path(__file__).parents[1] / "assets" / "ledger-0001.db"
"""Made by the first version that had ledgers; every later one must read it and go on."""


@pytest.fixture
def old(database: str, tmp_path: Path) -> str:
    """The database of version 0001, as a file or on a server."""
    if database.startswith("sqlite"):
        shutil.copy(ASSET, tmp_path / "ledger.db")
        return database
    engine = connect(database)
    config = Config()
    config.set_main_option("script_location", "evenhand.ledger:migrations")
    with engine.connect() as connection, connection.begin(), sqlite3.connect(ASSET) as source:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        for table in ("campaigns", "events", "rows", "snapshots", "leases"):
            for row in source.execute(f"SELECT * FROM {table}"):
                connection.exec_driver_sql(f"INSERT INTO {table} VALUES ({', '.join(['%s'] * len(row))})", row)
    engine.dispose()
    return database


def revision(url: str) -> str | None:
    engine = connect(url)
    with engine.connect() as connection:
        found = migrate.revision(connection)
    engine.dispose()
    return found


def look(seen: LiveCampaign) -> None:
    state = seen.refresh()
    assert (state.labels_used, state.examples, state.answered, state.abandoned) == (24, 32, 6, 1)
    assert (list(state.open), list(state.expired)) == ([9], [8])
    assert state.counts == [4, 12]
    events = seen.ledger.events(seen.number)
    assert [e.seq for e in events] == list(range(1, len(events) + 1))
    assert [e.kind for e in events][:4] == ["created", "told", "scored", "asked"]
    assert [e.kind for e in seen.ledger.about(seen.number, 8)] == ["asked", "expired"]
    assert verify(seen)["problems"] == []
    assert (state.running, state.frozen) == ([[0, 0], [0, 0]], None)  # that version recorded no evidence


def test_it_is_looked_at_without_being_changed(old: str) -> None:
    with Ledger(old, read_only=True) as ledger:
        assert list(ledger.campaigns()) == ["survey", "counts"]
        look(LiveCampaign(ledger, "survey"))
    assert revision(old) == "0001"


def test_it_goes_on(old: str) -> None:
    kept = live.open_campaign(old, "survey")
    look(kept)
    request = kept.ask()
    assert request.id == 10
    kept.tell(request, np.ones((4, 2)), ["no", "yes", "no", "yes"])
    assert kept.final_model().classes.tolist() == ["no", "yes"]
    assert kept.refit()
    assert sum(kept.running().n) > 0
    assert kept.certify().version == 1
    counts = live.open_campaign(old, "counts").refresh()
    assert (counts.closed, counts.unavailable, counts.accuracy) == ("enough", ["v"], [0.75, None])
    assert revision(old) == migrate.HEAD


def test_a_reader_does_not_keep_a_writer_from_bringing_it_up_to_date(old: str) -> None:
    with Ledger(old, read_only=True) as reader:
        seen = LiveCampaign(reader, "survey")
        assert live.open_campaign(old, "survey").ask().id == 10
        if old.startswith("sqlite"):
            with pytest.raises(LedgerError, match="open it again"):
                seen.refresh()
        else:
            assert 10 in seen.refresh().open


def test_a_writer_of_the_old_version_is_kept_out_meanwhile(old: str) -> None:
    """Whatever it stored is there afterwards; what comes too late is refused, not lost."""
    before = "INSERT INTO events (campaign, seq, kind, at, header) VALUES (1, {}, 'changed', 0, '{{\"lease\": 7}}')"
    engine = connect(old)
    with engine.connect() as connection:
        last = connection.execute(text("SELECT max(seq) FROM events WHERE campaign = 1")).scalar_one()
    writer = engine.connect().execution_options(writing=True)
    transaction = writer.begin()
    writer.execute(text("SELECT id FROM campaigns WHERE id = 1" + ("" if "sqlite" in old else " FOR UPDATE")))
    upgrading = threading.Thread(target=lambda: Ledger(old).close())
    upgrading.start()
    upgrading.join(0.3)
    writer.exec_driver_sql(before.format(last + 1))
    transaction.commit()
    writer.close()
    upgrading.join()
    with Ledger(old) as ledger:
        assert ledger.events(1)[-1].seq == last + 1
        with engine.connect().execution_options(writing=True) as late, pytest.raises(DBAPIError):
            late.exec_driver_sql(before.format(last + 2))
    engine.dispose()

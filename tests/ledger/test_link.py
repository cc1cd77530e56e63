"""Connections kept between steps: cut off, in the middle of a step, used by several threads."""

from __future__ import annotations

import threading
from collections.abc import Callable

import psycopg
import pytest

from evenhand.ledger import Draft, Ledger, LedgerError, State, link

HEADER = {"groups": ["u", "v"], "budget": 1000, "window": 20, "classes": None}


def change(
    ledger: Ledger, campaign: int, state: State, lease: int, meanwhile: Callable[[], object] = lambda: None
) -> None:
    def step(*_: object) -> list[Draft]:
        meanwhile()
        return [Draft("changed", {"lease": lease})]

    ledger.write(campaign, state, step)


def interrupt() -> None:
    raise KeyboardInterrupt


def cut_off(url: str) -> None:
    """End all other connections to the server's database."""
    with psycopg.connect(url, autocommit=True) as connection:
        others = "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()"
        connection.execute(f"SELECT pg_terminate_backend(pid) FROM ({others}) AS other")


def test_a_connection_cut_off_while_nobody_used_it(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "_TRIED_AFTER", 0.0)
    with Ledger(postgres_url, create=True) as ledger:
        campaign, state = ledger.create("survey", HEADER), State()
        change(ledger, campaign, state, 1)
        cut_off(postgres_url)
        change(ledger, campaign, state, 2)
        assert ledger.state(campaign) == state
        assert state.settings["lease"] == 2


def test_a_connection_cut_off_in_the_middle_of_a_step(postgres_url: str) -> None:
    with Ledger(postgres_url, create=True) as ledger:
        campaign, state = ledger.create("survey", HEADER), State()
        with pytest.raises(LedgerError, match="whether it stored the last step is open"):
            change(ledger, campaign, state, 1, lambda: cut_off(postgres_url))
        change(ledger, campaign, state, 2)
        assert [e.header.get("lease") for e in ledger.events(campaign)] == [None, 2]


def test_a_step_given_up_leaves_nothing_behind(database: str) -> None:
    with Ledger(database, create=True) as ledger:
        campaign, state = ledger.create("survey", HEADER), State()
        for _ in range(3):
            with pytest.raises(KeyboardInterrupt):
                change(ledger, campaign, state, 1, interrupt)
        change(ledger, campaign, state, 2)
        assert [e.seq for e in ledger.events(campaign)] == [1, 2]


def test_a_step_waits_for_the_one_before_and_reads_what_it_wrote(database: str) -> None:
    with Ledger(database, create=True) as ledger:
        campaign, mine, other = ledger.create("survey", HEADER), State(), State()
        second = threading.Thread(target=change, args=(ledger, campaign, other, 2))

        def wait() -> None:
            second.start()
            second.join(0.2)
            assert second.is_alive()

        change(ledger, campaign, mine, 1, wait)
        second.join()
        assert [e.header.get("lease") for e in ledger.events(campaign)] == [None, 1, 2]
        assert other == ledger.state(campaign, mine)

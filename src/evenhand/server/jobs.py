"""The jobs of a worker process: everything that fits models."""

from __future__ import annotations

import os
import signal
import threading
from functools import lru_cache
from multiprocessing.connection import Connection

from evenhand.campaign import Campaign
from evenhand.campaign.log import Once
from evenhand.errors import LedgerError
from evenhand.ledger.database import DatabaseLedger
from evenhand.notation import JsonObject


def begin(alive: Connection) -> None:
    """Start a worker: it ignores Ctrl-C, which the server handles, and runs at a lower priority than the server.

    It ends as soon as the other end of `alive` is closed.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(5)
    threading.Thread(target=_end_with_server, args=(alive,), daemon=True).start()
    import sklearn.linear_model  # noqa: F401  (the first fit should not wait for it)


def _end_with_server(alive: Connection) -> None:
    """End this worker together with its server: one that was killed could not end its workers itself."""
    alive.poll(None)
    os._exit(1)


@lru_cache(maxsize=1)
def _ledger(url: str) -> DatabaseLedger:
    return DatabaseLedger(url)


# fitted models live in these objects: kept open, the next refit continues from the last one
@lru_cache(maxsize=50)
def _campaign(url: str, name: str) -> Campaign:
    return Campaign.open(_ledger(url), name)


def refit(url: str, name: str) -> bool:
    """Fit and score; a learner that fails leaves an event that says so."""
    return _campaign(url, name).refit(record_failure=True)


def certify(url: str, name: str, target: float | None, settings: JsonObject) -> None:
    """Freeze a model, and with a target begin to prove it."""
    _campaign(url, name).certify(target, **settings)


def close(url: str, name: str, reason: str, by: str | None, once: Once | None) -> None:
    """End a campaign; the model to deploy is chosen now."""
    _campaign(url, name).close(reason, by=by, once=once)


def verify(url: str, name: str) -> JsonObject:
    """Check a campaign's ledger; one so damaged that the campaign cannot be opened is a finding, too."""
    from evenhand.campaign.verification import Verification

    try:
        campaign = _campaign(url, name)
    except LedgerError as error:
        _ledger(url).newest()  # fails as well if it is the database that cannot be reached
        return Verification(problems=[str(error)]).as_dict()
    return campaign.verify().as_dict()


def dump(url: str, name: str, which: str) -> tuple[str, bytes, JsonObject | None] | None:
    """A model as bytes that are safe to load: its format, the bytes, and for the final model its choice."""
    from evenhand.learners.storing import dump_model

    campaign = _campaign(url, name)
    if which in ("final", "plain"):
        final = campaign.final_model(plain=which == "plain")
        return (*dump_model(final.model), final.choice.as_dict())
    model = campaign.model() if which == "current" else campaign.certified_model()
    return None if model is None else (*dump_model(model), None)

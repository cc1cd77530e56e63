"""The ledger: the append-only log of live campaigns' events.

What was chosen, scored and delivered are recorded facts. `Ledger` stores them, in SQLite or PostgreSQL through one code
path; `State` is what folding them gives. Neither knows learners, and nothing here fits.

- `Ledger`: open a database, create campaigns, read events, append under a campaign's write lock.
- `Event`, `Draft`: what happened; what is about to be written down.
- `Step`, `Writer`: what to append to a campaign as it stands; what it may look up.
- `State`: a campaign as its events leave it.
"""

from evenhand.ledger.errors import LedgerError
from evenhand.ledger.events import KINDS, Draft, Event
from evenhand.ledger.state import State
from evenhand.ledger.store import Ledger
from evenhand.ledger.writer import Step, Writer

__all__ = ["KINDS", "Draft", "Event", "Ledger", "LedgerError", "State", "Step", "Writer"]

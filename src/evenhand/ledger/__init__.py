"""The ledger: the append-only list of facts that a campaign is.

What was chosen, scored and delivered is recorded as facts. A ledger keeps these and one row for every example; it knows
nothing of learners, and nothing here fits a model.

- `Ledger`: the contract; `MemoryLedger` and `DatabaseLedger` (SQLite, PostgreSQL) implement it.
- `Reader`, `Writer`: one campaign at one moment; one campaign under its write lock.
- `Event`, `Example`, `RowOrder`, `StoredModel`: what is kept.
- `copy`: campaigns from one ledger into another, for save, backup and restore.
"""

from evenhand.ledger.base import Event, Example, Ledger, Reader, RowOrder, StoredModel, Writer
from evenhand.ledger.copying import copy
from evenhand.ledger.memory import MemoryLedger

__all__ = [
    "Event", "Example", "Ledger", "MemoryLedger", "Reader", "RowOrder", "StoredModel", "Writer", "copy", "open_ledger"
]  # fmt: skip


def open_ledger(url: str, *, create: bool = False, read_only: bool = False) -> Ledger:
    """The ledger at a URL: `sqlite:///file.db` or `postgresql://…`."""
    from evenhand.ledger.database import DatabaseLedger

    return DatabaseLedger(url, create=create, read_only=read_only)

"""The contract of a ledger: events in one order, examples by id, written together or not at all.

Every backend passes the same tests (`tests/ledger/test_contract.py`). A ledger knows nothing of campaigns' rules: it
keeps events, example rows, the salts of their order, frozen models, and a snapshot of the folded state as a cache.

- Within `reading` everything read belongs to one moment, as long as the same thread writes nothing inside it.
- `writing` holds the campaign's write lock. What was appended and put is stored when the block ends, all of it or, after
  an error, nothing. A step's own reads see the examples it has put.
- Events of a campaign are numbered from 1 without a gap, and their times never go back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import NamedTuple, Self

from evenhand.errors import LedgerError, NotFound
from evenhand.ledger.text import as_text, from_text
from evenhand.notation import JsonObject

__all__ = ["Busy", "Event", "Example", "Ledger", "Reader", "RowOrder", "StoredModel", "Writer"]


class Busy(LedgerError):
    """Another process has the write lock; nothing was begun."""


class Event(NamedTuple):
    """A fact: its number in the campaign, its time and kind, the request it is about, and who caused it."""

    seq: int
    at: float
    kind: str
    request: int | None
    actor: str | None
    facts: JsonObject


class Example(NamedTuple):
    """One example as it is stored.

    Attributes:
        id: unique in its campaign.
        group: its group.
        role: `train`, `validate`, `certify` or `test`; None in a pool until it is handed out.
        place: its place in the secret order of its pool, which nobody is shown; None without a pool.
        request: the request it belongs to, or belonged to last.
        held: whether it waits for its label in an open request.
        origin: how its label came: `asked`, `extra` (more than asked for), `added` (there before) or `charged` (there
            before and charged to the budget); None without a label.
        made: whether the id was made by us, so that nobody knows whether the row is a repeat.
        label, first_label: as text; None before one is told, or once erased.
        features: JSON text of a row, or the bytes of an array in NumPy's format.
        told, position: the event that brought the first label, and the row's place in that delivery.
        changed: the last event that changed the row.
        salt: what the digest in that event was salted with; None once erased.
        fate: `withdrawn`, `erased` or `skipped`; `gone` where its table is there no more; None for every other example.
        registered: the event that brought it into the pool, whose salt gave it its place; None without a pool.
    """

    id: str
    group: str
    role: str | None = None
    place: int | None = None
    request: int | None = None
    held: bool = False
    origin: str | None = None
    made: bool = False
    label: str | None = None
    first_label: str | None = None
    features: str | bytes | None = None
    told: int | None = None
    position: int = 0
    changed: int = 0
    salt: str | None = None
    fate: str | None = None
    registered: int | None = None

    @property
    def in_pool(self) -> bool:
        """Whether it can be handed out."""
        return self.place is not None and not self.held and self.label is None and self.fate is None

    @property
    def counts(self) -> bool:
        """Whether it is a labelled example that nobody took back."""
        return self.label is not None and self.fate is None


class StoredModel(NamedTuple):
    """A frozen model: its number, the digest of its bytes, how they are written, and the bytes."""

    version: int
    digest: str
    format: str
    data: bytes


class RowOrder(NamedTuple):
    """The salt that an event drew for the order of rows. It is secret: no event has it, and nothing shows it."""

    event: int
    salt: str


class Reader(ABC):
    """One campaign at one moment; `now` is the ledger's time."""

    now: float

    @abstractmethod
    def events(
        self, after: int = 0, *, kinds: Collection[str] = (), request: int | None = None, limit: int | None = None
    ) -> list[Event]:
        """The events after number `after`, in order; if given, only those of these kinds or about this request."""

    def tail(self, seq: int, at: float, limit: int | None = None) -> list[Event]:
        """The events after number `seq`, which was stored at `at`; an error if the ledger lacks that event."""
        # the event before is read too: if it is not the one we folded, this is a different ledger
        found = self.events(max(seq - 1, 0), limit=None if limit is None else limit + 1)
        # number and time: a restored backup has the same numbers for other events
        if seq and (not found or (found[0].seq, found[0].at) != (seq, at)):
            raise LedgerError(
                "the ledger is not the one that was read before: a server crashed or a backup was restored; nothing "
                "was stored, open the campaign again"
            )
        return found[1:] if seq else found[:limit]

    @abstractmethod
    def snapshot(self) -> tuple[int, str] | None:
        """The newest snapshot of the state: the last event it includes, and its text."""

    @abstractmethod
    def changed(self, after: int = 0) -> list[Example]:
        """Examples with a label, or taken back, that events after `after` changed, in the order they were told."""

    @abstractmethod
    def find(self, ids: Collection[str]) -> dict[str, Example]:
        """The examples with these ids."""

    @abstractmethod
    def told_by(self, seq: int) -> list[Example]:
        """The examples whose first label an event brought, in its order."""

    @abstractmethod
    def class_counts(self) -> dict[str, dict[str, int]]:
        """How many labelled examples of each class every group has."""

    @abstractmethod
    def next_in_pool(self, group: str, count: int) -> list[Example]:
        """The next examples of a group's pool, in the order of their places."""

    @abstractmethod
    def pool_counts(self, first: int = 0, last: int | None = None) -> dict[str, int]:
        """How many examples of every group can be handed out, at positions `first` to `last` of the pool's files."""

    @abstractmethod
    def orders(self) -> dict[int, str]:
        """The salts of the order of rows, by the event that drew them."""

    @abstractmethod
    def model(self, version: int) -> StoredModel | None:
        """A frozen model."""


class Writer(Reader):
    """One campaign under its write lock."""

    def __init__(self) -> None:
        self.last, self.last_at = 0, 0.0
        self.default_actor: str | None = None
        self.appended: list[Event] = []
        self.models: list[StoredModel] = []
        self.new_orders: list[RowOrder] = []
        self.new_snapshot: tuple[int, str] | None = None

    def tail(self, seq: int, at: float, limit: int | None = None) -> list[Event]:
        """The events after number `seq`; appended events follow these."""
        found = super().tail(seq, at, limit)
        self.last, self.last_at = (found[-1].seq, found[-1].at) if found else (seq, at)
        return found

    def append(
        self, kind: str, facts: Mapping[str, object], *, request: int | None = None, actor: str | None = None
    ) -> Event:
        """Append an event after the last one; call `tail` first."""
        text = as_text(facts)  # now, so that what cannot be stored is refused before anything is decided on it
        # a clock that was set back must not date an event before the one that it follows
        self.last, self.last_at = self.last + 1, max(self.now, self.last_at)
        # read back from its text, so that a step sees what every
        # later reader will see, tuples as lists for instance
        who = actor or self.default_actor
        event = Event(self.last, self.last_at, kind, request, None if who is None else str(who), from_text(text))
        self.appended.append(event)
        return event

    @abstractmethod
    def put(self, examples: Iterable[Example]) -> None:
        """Store examples, in place of those with the same id."""

    @abstractmethod
    def came_back(self, first: int, last: int) -> list[Example]:
        """Examples at positions `first` to `last` of the pool's files that were handed out and came back unlabelled."""

    @abstractmethod
    def leave_pool(self, first: int, last: int) -> dict[str, int]:
        """Take the examples at positions `first` to `last` of the pool's files that were never handed out from the pool.

        They are `gone`, but keep their places, so that nobody draws others by registering a file again. Returns how many
        there were of every group.
        """

    def put_order(self, order: RowOrder) -> None:
        """Store the salt of an order."""
        self.new_orders.append(order)

    def put_model(self, model: StoredModel) -> None:
        """Store a frozen model."""
        self.models.append(model)

    def put_snapshot(self, seq: int, text: str) -> None:
        """Store a snapshot of the state in place of the last."""
        self.new_snapshot = seq, text


class Ledger(ABC):
    """Where campaigns are kept."""

    name: str
    read_only: bool = False

    @abstractmethod
    def campaigns(self) -> dict[str, int]:
        """The names of all campaigns and their numbers, oldest first."""

    def find(self, name: str) -> int:
        """The number of a campaign."""
        known = self.campaigns()
        if name not in known:
            there = ", ".join(map(repr, known)) or "none"
            raise NotFound(f"there is no campaign {name!r} in {self.name}: there are {there}")
        return known[name]

    @abstractmethod
    def create(self, name: str) -> AbstractContextManager[Writer]:
        """Create a campaign and take its first step; no campaign is left behind if the block fails."""

    @abstractmethod
    def reading(self, campaign: int) -> AbstractContextManager[Reader]:
        """Read a campaign at one moment."""

    @abstractmethod
    def writing(self, campaign: int, *, wait: bool = True) -> AbstractContextManager[Writer]:
        """Take a step of a campaign under its write lock; without `wait`, raises `Busy` if another process has it."""

    @property
    def patience(self) -> float:
        """How long a writer waits for other processes, in seconds."""
        return 0.0

    @abstractmethod
    def lease(self, campaign: int, holder: str, seconds: float) -> bool:
        """Take or renew the campaign's refit lease; False while another holder has it. 0 seconds gives it back."""

    @abstractmethod
    def everything(self, campaign: int) -> Iterator[Event | Example | StoredModel | RowOrder]:
        """All that is stored of a campaign at one moment, examples in pools included, for a copy."""

    def checkpoint(self) -> None:  # noqa: B027  (most ledgers have no log)
        """Move everything into the database file, if there is a log beside it."""

    @abstractmethod
    def close(self) -> None:
        """Close all connections."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

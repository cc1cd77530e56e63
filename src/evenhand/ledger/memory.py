"""A ledger in memory: it ends with the process, and is otherwise like any other."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import itemgetter

from evenhand.errors import Conflict, LedgerError
from evenhand.ledger.base import Event, Example, Ledger, Reader, RowOrder, StoredModel, Writer

_MANY = 1000  # examples that enter or leave a pool one by one; if there are more, the whole pool is sorted again


@dataclass
class _StoredCampaign:
    """What is kept of one campaign.

    `order` has the ids of labelled examples in the order they were told, `touched` says which event changed which
    example, and `pool` has the examples that can be handed out, in their order.
    """

    events: list[Event] = field(default_factory=list)
    examples: dict[str, Example] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    touched: list[tuple[int, str]] = field(default_factory=list)
    pool: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    models: dict[int, StoredModel] = field(default_factory=dict)
    orders: dict[int, str] = field(default_factory=dict)
    snapshot: tuple[int, str] | None = None
    lease: tuple[str, float] = ("", 0.0)

    def replace(self, examples: Mapping[str, Example | None]) -> dict[str, Example | None]:
        """Put examples in place of those with the same id (None deletes one); returns what was there before."""
        before = {name: self.examples.get(name) for name in examples}
        for group in {e.group for e in (*before.values(), *examples.values()) if e is not None and e.place is not None}:
            self._move_in_pool(group, [e for e in before.values() if e is not None and e.group == group], examples)
        for name, example in examples.items():
            if example is None:
                self.examples.pop(name, None)
            else:
                self.examples[name] = example
        return before

    def _move_in_pool(self, group: str, before: Collection[Example], after: Mapping[str, Example | None]) -> None:
        """Take the examples that leave out of a group's pool, and put in those that enter."""
        pool = self.pool.setdefault(group, [])
        left = [(e.place, e.id) for e in before if e.in_pool and e.place is not None]
        came = [(e.place, e.id) for e in after.values() if e and e.group == group and e.in_pool and e.place is not None]
        # one by one costs n each in a list of n: a pool of a million would take hours
        if len(left) + len(came) > _MANY:
            gone = set(left)
            self.pool[group] = sorted([*(entry for entry in pool if entry not in gone), *came])
            return
        for entry in left:
            del pool[bisect_left(pool, entry)]
        for entry in came:
            insort(pool, entry)


class MemoryLedger(Ledger):
    """Campaigns in lists and dicts; threads take turns.

    Args:
        clock: gives the time in seconds.
    """

    name = "memory"

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock, self._lock = clock, threading.RLock()
        self._names: dict[str, int] = {}
        self._kept: list[_StoredCampaign] = []

    def campaigns(self) -> dict[str, int]:
        """The names of all campaigns and their numbers."""
        return dict(self._names)

    @contextmanager
    def create(self, name: str) -> Iterator[Writer]:
        """Create a campaign and take its first step."""
        with self._lock:
            if name in self._names:
                raise Conflict(f"there is a campaign {name!r} already: choose another name")
            kept = _StoredCampaign()
            writer = _MemoryWriter(kept, self._clock())
            yield writer
            writer.store()
            # only now: a first step that failed must leave no name behind
            self._names[name] = len(self._kept)
            self._kept.append(kept)

    @contextmanager
    def reading(self, campaign: int) -> Iterator[Reader]:
        """Read a campaign at one moment."""
        with self._lock:
            # a writer whose step is never stored reads as well as any reader
            yield _MemoryWriter(self._kept[campaign], self._clock())

    @contextmanager
    def writing(self, campaign: int, *, wait: bool = True) -> Iterator[Writer]:
        """Take a step of a campaign."""
        with self._lock:
            writer = _MemoryWriter(self._kept[campaign], self._clock())
            try:
                yield writer
                writer.store()
            except BaseException:
                writer.undo()
                raise

    def lease(self, campaign: int, holder: str, seconds: float) -> bool:
        """Take, renew or give back the refit lease."""
        with self._lock:
            kept, now = self._kept[campaign], self._clock()
            # the holder itself may renew at any time
            if kept.lease[0] != holder and kept.lease[1] > now:
                return False
            kept.lease = (holder, now + seconds) if seconds > 0 else ("", 0.0)
            return True

    def everything(self, campaign: int) -> Iterator[Event | Example | StoredModel | RowOrder]:
        """All that is stored of a campaign."""
        with self._lock:
            kept = self._kept[campaign]
            yield from kept.events
            yield from sorted(kept.examples.values(), key=_when)
            yield from kept.models.values()
            yield from (RowOrder(event, salt) for event, salt in kept.orders.items())

    def close(self) -> None:
        """There are no connections to close."""


class _MemoryWriter(Writer):
    def __init__(self, kept: _StoredCampaign, now: float) -> None:
        super().__init__()
        self._kept, self.now = kept, now
        self._before: list[dict[str, Example | None]] = []
        # both lists only grow within a step, so undoing is cutting them off
        self._told, self._touches = len(kept.order), len(kept.touched)

    def events(
        self, after: int = 0, *, kinds: Collection[str] = (), request: int | None = None, limit: int | None = None
    ) -> list[Event]:
        found = self._kept.events[after:]
        if kinds:
            found = [event for event in found if event.kind in kinds]
        if request is not None:
            found = [event for event in found if event.request == request]
        return found[:limit]

    def snapshot(self) -> tuple[int, str] | None:
        return self._kept.snapshot

    def changed(self, after: int = 0) -> list[Example]:
        kept = self._kept
        if not after:
            return [kept.examples[name] for name in kept.order]
        # sorted up to where this step began; what the step itself touched is behind that, in any order
        start = bisect_right(kept.touched, after, hi=self._touches, key=itemgetter(0))
        names = {name for seq, name in kept.touched[start:] if seq > after}
        found = [kept.examples[name] for name in names if name in kept.examples]
        return sorted((e for e in found if e.told is not None), key=_when)

    def find(self, ids: Collection[str]) -> dict[str, Example]:
        return {name: self._kept.examples[name] for name in ids if name in self._kept.examples}

    def told_by(self, seq: int) -> list[Example]:
        return [self._kept.examples[name] for name in self._kept.order if self._kept.examples[name].told == seq]

    def class_counts(self) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = {}
        for name in self._kept.order:
            example = self._kept.examples[name]
            if example.counts and example.label is not None:
                group = found.setdefault(example.group, {})
                group[example.label] = group.get(example.label, 0) + 1
        return found

    def next_in_pool(self, group: str, count: int) -> list[Example]:
        return [self._kept.examples[name] for _, name in self._kept.pool.get(group, [])[:count]]

    def pool_counts(self, first: int = 0, last: int | None = None) -> dict[str, int]:
        return dict(Counter(e.group for e in self._at(first, last) if e.in_pool))

    def came_back(self, first: int, last: int) -> list[Example]:
        return [e for e in self._at(first, last) if e.in_pool and e.role is not None]

    def leave_pool(self, first: int, last: int) -> dict[str, int]:
        gone = [e for e in self._at(first, last) if e.in_pool and e.role is None]
        self._before.append(self._kept.replace({e.id: e._replace(fate="gone") for e in gone}))
        return dict(Counter(e.group for e in gone))

    def _at(self, first: int, last: int | None) -> list[Example]:
        return [e for e in self._kept.examples.values() if first <= e.position and (last is None or e.position <= last)]

    def orders(self) -> dict[int, str]:
        return {**self._kept.orders, **dict(self.new_orders)}

    def model(self, version: int) -> StoredModel | None:
        return self._kept.models.get(version)

    def put(self, examples: Iterable[Example]) -> None:
        kept, new = self._kept, {example.id: example for example in examples}
        before = kept.replace(new)
        self._before.append(before)
        for example in new.values():
            earlier = before[example.id]
            if example.told is not None and (earlier is None or earlier.told is None):
                kept.order.append(example.id)
            kept.touched.append((example.changed, example.id))

    def undo(self) -> None:
        """Put everything back as it was before this step."""
        for before in reversed(self._before):
            self._kept.replace(before)
        del self._kept.order[self._told :], self._kept.touched[self._touches :]

    def store(self) -> None:
        """Store what was written."""
        kept = self._kept
        # cannot happen under the lock; checked as the unique key of a database does, so that all ledgers refuse alike
        if self.appended and self.appended[0].seq != len(kept.events) + 1:
            raise LedgerError("another process wrote the same event: nothing was stored, try again")
        if any(model.version in kept.models for model in self.models):
            raise LedgerError("there is a frozen model of this version already: nothing was stored")
        kept.events += self.appended
        # `changed` searches by bisection; Python's sort takes one pass over what is sorted already
        kept.touched.sort(key=itemgetter(0))
        kept.models |= {model.version: model for model in self.models}
        kept.orders |= dict(self.new_orders)
        kept.snapshot = self.new_snapshot or kept.snapshot


def _when(example: Example) -> tuple[int, int]:
    """When and where in its delivery an example was told; those without a label come last."""
    return (example.told if example.told is not None else 2**62, example.position)

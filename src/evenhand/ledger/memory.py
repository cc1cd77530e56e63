"""A ledger in memory: gone with the process, otherwise like any other."""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import itemgetter

from evenhand.errors import InputError, LedgerError
from evenhand.ledger.base import Event, Example, Ledger, Reader, StoredModel, Writer

__all__ = ["MemoryLedger"]


@dataclass
class _Kept:
    """What is kept of one campaign.

    `order` has the ids of labelled examples as they were told, `touched` which event changed which example, `pool` those
    that can be handed out, in their order.
    """

    events: list[Event] = field(default_factory=list)
    examples: dict[str, Example] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    touched: list[tuple[int, str]] = field(default_factory=list)
    pool: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    models: dict[int, StoredModel] = field(default_factory=dict)
    snapshot: tuple[int, str] | None = None
    lease: tuple[str, float] = ("", 0.0)


class MemoryLedger(Ledger):
    """Campaigns in lists and dicts; threads take turns.

    Args:
        clock: gives the time in seconds.
    """

    name = "memory"

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock, self._lock = clock, threading.RLock()
        self._names: dict[str, int] = {}
        self._kept: list[_Kept] = []

    def campaigns(self) -> dict[str, int]:
        """The names of all campaigns and their numbers."""
        return dict(self._names)

    @contextmanager
    def create(self, name: str) -> Iterator[Writer]:
        """A new campaign and its first step."""
        with self._lock:
            if name in self._names:
                raise InputError(f"there is a campaign {name!r} already: choose another name")
            kept = _Kept()
            writer = _MemoryWriter(kept, self._clock())
            yield writer
            writer.store()
            self._names[name] = len(self._kept)
            self._kept.append(kept)

    @contextmanager
    def reading(self, campaign: int) -> Iterator[Reader]:
        """One moment of a campaign."""
        with self._lock:
            yield _MemoryWriter(self._kept[campaign], self._clock())

    @contextmanager
    def writing(self, campaign: int) -> Iterator[Writer]:
        """A step of a campaign."""
        with self._lock:
            writer = _MemoryWriter(self._kept[campaign], self._clock())
            yield writer
            writer.store()

    def lease(self, campaign: int, holder: str, seconds: float) -> bool:
        """Take, renew or give back the refit lease."""
        with self._lock:
            kept, now = self._kept[campaign], self._clock()
            if kept.lease[0] != holder and kept.lease[1] > now:
                return False
            kept.lease = (holder, now + seconds)
            return True

    def everything(self, campaign: int) -> Iterator[Event | Example | StoredModel]:
        """All that is kept of a campaign."""
        with self._lock:
            kept = self._kept[campaign]
            yield from kept.events
            yield from sorted(kept.examples.values(), key=_when)
            yield from kept.models.values()

    def close(self) -> None:
        """There is nothing to let go of."""


class _MemoryWriter(Writer):
    def __init__(self, kept: _Kept, now: float) -> None:
        super().__init__()
        self._kept, self.now = kept, now
        self._forgotten: list[str] = []

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
        names = {name for _, name in kept.touched[bisect_right(kept.touched, after, key=itemgetter(0)) :]}
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

    def forget_pool(self, first: int, last: int) -> dict[str, int]:
        gone = [
            e for e in self._kept.examples.values() if e.told is None and e.role is None and first <= e.position <= last
        ]
        self._forgotten += [e.id for e in gone]
        return dict(Counter(e.group for e in gone))

    def model(self, version: int) -> StoredModel | None:
        return self._kept.models.get(version)

    def _move_in_pool(self) -> None:
        """Take out of the pool what left it, put in what came, and keep the order."""
        kept = self._kept
        left: dict[str, set[str]] = {}
        came: dict[str, list[tuple[int, str]]] = {}
        for example in self.examples:
            before = kept.examples.get(example.id)
            if before is not None and before.in_pool:
                left.setdefault(before.group, set()).add(before.id)
            if example.in_pool and example.place is not None:
                came.setdefault(example.group, []).append((example.place, example.id))
        for group in left.keys() | came.keys():
            gone = left.get(group, set())
            stays = [entry for entry in kept.pool.get(group, []) if entry[1] not in gone]
            kept.pool[group] = sorted(stays + came.get(group, []))

    def store(self) -> None:
        """Take in what was written."""
        kept = self._kept
        if self.appended and self.appended[0].seq != len(kept.events) + 1:
            raise LedgerError("another process wrote the same event: nothing was stored, try again")
        if any(model.version in kept.models for model in self.models):
            raise LedgerError("there is a frozen model of this version already: nothing was stored")
        kept.events += self.appended
        for name in self._forgotten:
            del kept.examples[name]
        if self._forgotten:
            kept.pool = {g: [entry for entry in pool if entry[1] in kept.examples] for g, pool in kept.pool.items()}
        self._move_in_pool()
        for example in self.examples:
            before = kept.examples.get(example.id)
            if example.told is not None and (before is None or before.told is None):
                kept.order.append(example.id)
            kept.examples[example.id] = example
            kept.touched.append((example.changed, example.id))
        kept.touched.sort(key=itemgetter(0))
        kept.models |= {model.version: model for model in self.models}
        kept.snapshot = self.new_snapshot or kept.snapshot


def _when(example: Example) -> tuple[int, int]:
    """When and where in its delivery an example was told; those without a label come last."""
    return (example.told if example.told is not None else 2**62, example.position)

"""How a campaign is kept: the folded state, readers at one moment, and steps under the write lock.

Here a label becomes durable: what a step has appended is stored when `write` returns.
"""

from __future__ import annotations

import getpass
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Literal, NamedTuple

from evenhand.campaign.events import EXPIRED, ONCE
from evenhand.campaign.labels import check_text
from evenhand.campaign.requests import returned
from evenhand.campaign.settings import Parts
from evenhand.campaign.state import State
from evenhand.errors import Conflict, InputError, Repeated
from evenhand.ledger import Event, Ledger, Reader, Writer
from evenhand.ledger.base import Busy

SNAPSHOT_EVERY = 100
"""Events between two snapshots of the state; a snapshot is a cache that makes opening quick."""
# events folded at a time when a long ledger is opened, so that memory holds one page of them
_PAGE = 5000
# settings whose objects are made anew when another
# process changed them; the others are read from the state
_FOLLOWED: tuple[Literal["groups", "population", "learner", "stop"], ...] = ("groups", "population", "learner", "stop")


class Once(NamedTuple):
    """An idempotency key and a digest of what was asked for with it: a step that carries it is taken once."""

    key: str
    of: str


@cache
def user_name() -> str | None:
    """Who runs this process: the actor of events that name nobody."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return None


class Log:
    """A campaign's ledger, its state as far as it was read, and the objects its settings describe.

    The lowest of a campaign's parts: it knows nothing of the others. Several threads may share one.

    Attributes:
        name, number: the campaign's name, and its number in the ledger.
        ledger: where it is kept.
        read_only: whether nothing may be changed.
        state: the fold of the events read so far; `refresh` reads on.
        parts: strategy, learner, risk and stopping rule, for the settings as they were read.
    """

    def __init__(self, ledger: Ledger, name: str, *, read_only: bool = False) -> None:
        self.name, self.read_only = name, read_only or ledger.read_only
        self.ledger, self.number = ledger, ledger.find(name)
        # reentrant: a step may look at the campaign that it is changing
        self.lock = threading.RLock()
        self.state = State()
        with ledger.reading(self.number) as reader:
            self._read_on(reader)
        self.parts = Parts(self.state.settings.copy(), {})

    def use(self, parts: Parts) -> None:
        """Use these objects from now on; whoever keeps something of the ones before drops it."""
        self.parts = parts

    # ---------------------------------------------------------------- reading

    def refresh(self) -> State:
        """The state, with the events that came since folded in."""
        with self.lock, self.reading() as reader:
            return self._folded(reader)

    def now(self) -> float:
        """The ledger's time."""
        with self.reading() as reader:
            return reader.now

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        """Read the ledger at one moment."""
        with self.ledger.reading(self.number) as reader:
            yield reader

    @contextmanager
    def moment(self) -> Iterator[tuple[Reader, State]]:
        """Look at the campaign at one moment without blocking others: a reader, and a copy of the state."""
        with ExitStack() as stack:
            with self.lock:
                reader = stack.enter_context(self.reading())
                # a copy, so that the state stays the fold of the events alone:
                # a lease that ended is an event only once a step writes it
                state = self._folded(reader).copy().expire(reader.now)
            yield reader, state

    def _folded(self, reader: Reader) -> State:
        """The state at the reader's moment."""
        state = self._read_on(reader)
        self._follow()
        return state

    def _follow(self) -> None:
        """Use the settings as they are now: another process may have changed them."""
        used, now = self.parts.settings, self.state.settings
        if now and any(used[name] != now[name] for name in _FOLLOWED):
            self.use(Parts(now.copy(), self.parts.given))

    def _read_on(self, reader: Reader) -> State:
        """Fold the events that came since; a state that is far behind continues from the newest snapshot."""
        tail = reader.tail(self.state.seq, self.state.at, SNAPSHOT_EVERY)
        if len(tail) < SNAPSHOT_EVERY:
            return self._fold(tail)
        # few events are folded faster than a snapshot is read
        found = reader.snapshot()
        # a snapshot is worth reading only if it skips more
        # events than would have to be folded after it anyway
        far = found is not None and found[0] > self.state.seq + SNAPSHOT_EVERY
        known = State.from_text(found[1]) if found is not None and far else None
        if known is not None:
            self.state = known
        while tail := reader.events(self.state.seq, limit=_PAGE):
            self._fold(tail)
        return self.state

    def _fold(self, events: Sequence[Event]) -> State:
        """Fold events in; if that fails midway, the state is dropped and read anew the next time."""
        try:
            return self.state.fold(events)
        except BaseException:
            self.state = State()
            raise

    # ---------------------------------------------------------------- writing

    def write(
        self, step: Callable[[State, Writer], object], *, still_open: bool = False, once: Once | None = None
    ) -> list[Event]:
        """Under the campaign's write lock: fold what others wrote, decide, append; the events returned are stored.

        A step that was taken before with the same `once` raises `Repeated` instead.
        """
        if self.read_only:
            raise InputError(f"the campaign {self.name!r} was opened read-only: open it without read_only to change it")
        tried_until = time.monotonic() + self.ledger.patience
        while True:
            try:
                return self._try_to_write(step, still_open=still_open, once=once)
            except Busy:
                # waiting for another process happens here, without the lock: readers must not queue behind it
                if time.monotonic() > tried_until:
                    raise
                time.sleep(random.uniform(0.01, 0.1))

    def _try_to_write(
        self, step: Callable[[State, Writer], object], *, still_open: bool, once: Once | None
    ) -> list[Event]:
        # threads of this process queue here; other processes
        # queue at the ledger's own lock, one line below
        with self.lock:
            with self.ledger.writing(self.number, wait=False) as writer:
                writer.default_actor = user_name()
                # under the lock nothing more can come: what is decided from here on is decided on the newest state
                self._fold(writer.tail(self.state.seq, self.state.at))
                self._follow()
                if once is not None:
                    self._refuse_repeated(once)
                if still_open:
                    self._refuse_closed()
                before = self.state.seq
                step(self._with_expired(writer), writer)
                for event in writer.appended:
                    if event.actor is not None:
                        check_text(event.actor, "the name of who does this")
                if once is not None and writer.appended:
                    # in the same transaction as the step: a retry after a crash finds both or neither
                    writer.appended[-1].facts[ONCE] = [*once, before + 1]
                after = before + len(writer.appended)
                # in the same transaction: a snapshot of events that
                # were rolled back would be believed by every reader
                if after // SNAPSHOT_EVERY > before // SNAPSHOT_EVERY:
                    writer.put_snapshot(after, self.state.copy().fold(writer.appended).as_text())
            # only now, when the transaction is on disk: a state ahead of its ledger would decide on what never happened
            self._fold(writer.appended)
            self._follow()
            return writer.appended

    def _with_expired(self, writer: Writer) -> State:
        """The state a step decides on: requests whose lease has ended are recorded as expired first."""
        overdue = self.state.overdue(writer.now)
        if not overdue:
            return self.state
        for number in overdue:
            event = EXPIRED.append(writer, {}, request=number)
            writer.put(returned(writer, self.state.open[number], event.seq))  # the step's own reads find them there
        return self.state.copy().fold(writer.appended)

    def _refuse_repeated(self, once: Once) -> None:
        known = self.state.keys.get(once.key)
        if known is None:
            return
        of, first, last = known
        if of != once.of:
            raise Conflict(f"the idempotency key {once.key!r} was used for something else: choose a new one")
        raise Repeated((first, last))

    def _refuse_closed(self) -> None:
        if self.state.closed is not None:
            raise Conflict(f"the campaign {self.name!r} is closed ({self.state.closed}): it takes nothing any more")

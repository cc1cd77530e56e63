"""A campaign as it is kept: the folded state, moments to read, and steps under the write lock."""

from __future__ import annotations

import getpass
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, Self

from evenhand.campaign.deciding import Chooser
from evenhand.campaign.labels import check_text
from evenhand.campaign.settings import Parts
from evenhand.campaign.state import State
from evenhand.campaign.telling import Intake
from evenhand.errors import InputError
from evenhand.ledger import Event, Example, Ledger, Reader, Writer

if TYPE_CHECKING:
    from evenhand.campaign.training import Trainer

__all__ = ["Kept", "returned", "user_name"]

SNAPSHOT_EVERY = 100
"""Events between two snapshots of the state; a snapshot is a cache that makes opening quick."""
_PAGE = 5000
_FOLLOWED = ("groups", "population", "learner", "stop")


@cache
def user_name() -> str | None:
    """Who runs this process: the actor of events that name nobody."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return None


def returned(reader: Reader, request: Mapping[str, Any], seq: int) -> list[Example]:
    """The examples of a request that go back to the pool."""
    found = reader.find(list(request.get("left", ()))) if "left" in request else {}
    return [example._replace(held=False, changed=seq) for example in found.values()]


class Kept:
    """What every part of a campaign stands on; several threads may share one."""

    def _attach(self, ledger: Ledger, name: str, *, read_only: bool = False) -> None:
        self.name, self._read_only = name, read_only or ledger.read_only
        self._ledger, self._number = ledger, ledger.find(name)
        self._lock = threading.RLock()
        self._state = State()
        with ledger.reading(self._number) as reader:
            self._read_on(reader)

    def _use(self, parts: Parts) -> None:
        self._parts = parts
        self._chooser = Chooser(parts)
        self._cached_trainer: Trainer | None = None
        self._intake = Intake(parts, self._chooser)

    @property
    def _trainer(self) -> Trainer:
        if self._cached_trainer is None:
            from evenhand.campaign.training import Trainer

            self._cached_trainer = Trainer(self._ledger, self._number, self._parts, self._write, self._moment)
        return self._cached_trainer

    def _trainer_now(self) -> Trainer:
        """The trainer for the settings as they are now."""
        self._refresh()
        return self._trainer

    def release(self) -> None:
        """Let go of the database's connections."""
        self._ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.release()

    def __repr__(self) -> str:
        state = self._state
        return f"<Campaign {self.name!r}: {state.labels_used} of {state.settings['budget']} labels used>"

    def _refresh(self) -> State:
        """The state, with the events that came since folded in."""
        with self._lock, self._ledger.reading(self._number) as reader:
            return self._folded(reader)

    @contextmanager
    def _moment(self) -> Iterator[tuple[Reader, State]]:
        """A moment to look at without holding others up: the reader, and the state then in lists of its own."""
        with ExitStack() as stack:
            with self._lock:
                reader = stack.enter_context(self._ledger.reading(self._number))
                state = self._folded(reader).copy().expire(reader.now)
            yield reader, state

    def _folded(self, reader: Reader) -> State:
        """The state at the reader's moment."""
        state = self._read_on(reader)
        self._follow()
        return state

    def _follow(self) -> None:
        """Use the settings as they are now: another process may have changed them."""
        used, now = self._parts.settings, self._state.settings
        if now and any(used[name] != now[name] for name in _FOLLOWED):
            self._use(Parts(dict(now), self._parts.given))

    def _read_on(self, reader: Reader) -> State:
        """Fold the events that came since; a state that is far behind goes on from the newest snapshot."""
        tail = reader.tail(self._state.seq, self._state.at, SNAPSHOT_EVERY)
        if len(tail) < SNAPSHOT_EVERY:
            return self._fold(tail)
        found = reader.snapshot()
        far = found is not None and found[0] > self._state.seq + SNAPSHOT_EVERY
        known = State.from_text(found[1]) if found is not None and far else None
        if known is not None:
            self._state = known
        while tail := reader.events(self._state.seq, limit=_PAGE):
            self._fold(tail)
        return self._state

    def _fold(self, events: Sequence[Event]) -> State:
        """Fold events in; a state cut off in the middle is dropped and read anew the next time."""
        try:
            return self._state.fold(events)
        except BaseException:
            self._state = State()
            raise

    def _write(self, step: Callable[[State, Writer], Any], *, still_open: bool = False) -> list[Event]:
        """Under the campaign's write lock: fold what others wrote, decide, append; what came back is stored."""
        if self._read_only:
            raise InputError(f"the campaign {self.name!r} was opened read-only: open it without read_only to change it")
        with self._lock, self._remembering():
            with self._ledger.writing(self._number) as writer:
                writer.default_actor = user_name()
                self._fold(writer.tail(self._state.seq, self._state.at))
                self._follow()
                if still_open:
                    self._refuse_closed()
                before = self._state.seq
                step(self._swept(writer), writer)
                for event in writer.appended:
                    if event.actor is not None:
                        check_text(event.actor, "the name of who does this")
                after = before + len(writer.appended)
                if after // SNAPSHOT_EVERY > before // SNAPSHOT_EVERY:
                    writer.put_snapshot(after, self._state.copy().fold(writer.appended).as_text())
            self._fold(writer.appended)
            self._follow()
            return writer.appended

    def _swept(self, writer: Writer) -> State:
        """The state a step decides on: requests whose lease has ended are written down as expired first."""
        overdue = self._state.overdue(writer.now)
        if not overdue:
            return self._state
        for number in overdue:
            event = writer.append("expired", {}, request=number)
            writer.put(returned(writer, self._state.open[number], event.seq))  # the step's own reads find them there
        return self._state.copy().fold(writer.appended)

    @contextmanager
    def _remembering(self) -> Iterator[None]:
        """Forget what a step was about to store if it was not stored."""
        try:
            yield
        except BaseException:
            self._intake.forget()
            raise

    def _refuse_closed(self) -> None:
        if self._state.closed is not None:
            raise InputError(f"the campaign {self.name!r} is closed ({self._state.closed}): it takes nothing any more")

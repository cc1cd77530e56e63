"""Histories of campaigns: each is read once and brought up to date when somebody views it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooLong

from evenhand.campaign import Campaign
from evenhand.campaign.history import History, Past
from evenhand.errors import LedgerError

_MOST = 50
_PATIENCE = 0.3
_SHORT = 5000
"""Events that are read in less time than anybody notices."""


class Histories:
    """The histories that a server keeps; while a long one is being read, pages are sent without it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[int, tuple[History, threading.Lock]] = OrderedDict()
        self._reading: dict[int, Future[Past]] = {}
        self._readers = ThreadPoolExecutor(2, "history")

    def get(self, campaign: Campaign, seconds: float = _PATIENCE) -> Past | None:
        """The history up to now; None if reading it takes longer than this."""
        try:
            return self.begin(campaign).result(seconds)
        except TooLong:
            return None

    def at_hand(self, campaign: Campaign) -> Past | None:
        """The history up to now; None if it is long and nobody has read it, as reading would hold up what asks for it."""
        with self._lock:
            is_new = campaign.number not in self._known
        return None if is_new and campaign.state.seq > _SHORT else self.get(campaign)

    def begin(self, campaign: Campaign) -> Future[Past]:
        """Read the history, or what is new in it, in the background."""
        number = campaign.number
        with self._lock:
            reading = self._reading.get(number)
            if reading is None or reading.done():
                reading = self._reading[number] = self._readers.submit(self._follow, campaign)
            return reading

    def shutdown(self) -> None:
        """Stop reading."""
        self._readers.shutdown(wait=False, cancel_futures=True)

    def _follow(self, campaign: Campaign) -> Past:
        with self._lock:
            found, lock = self._known.setdefault(campaign.number, (History(), threading.Lock()))
            self._known.move_to_end(campaign.number)
            while len(self._known) > _MOST:
                self._known.popitem(last=False)
        try:
            with lock, campaign.reading() as reader:
                return found.follow(reader).past()
        except LedgerError:
            # a backup was restored, or reading was cut off: start again the next time
            with self._lock:
                self._known.pop(campaign.number, None)
            raise

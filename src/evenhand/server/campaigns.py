"""The campaigns that a server has open."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict

from evenhand.campaign import Campaign
from evenhand.errors import NotFound
from evenhand.ledger.database import DatabaseLedger

_NUMBERED = re.compile(r"~[0-9]{1,18}")
_MOST = 200
"""How many campaigns stay open; the least recently used one is closed, and reopening it takes milliseconds."""


class Campaigns:
    """Open campaigns of one database, shared by all requests: each is read once and follows its ledger from then on."""

    def __init__(self, ledger: DatabaseLedger) -> None:
        self.ledger = ledger
        self._lock = threading.Lock()
        self._open: OrderedDict[int, Campaign] = OrderedDict()
        # a campaign keeps its name and number for good
        self._numbers: dict[str, int] = {}

    def known(self, name: str) -> int | None:
        """The number of a campaign that was asked for before; None if only the database knows it."""
        # a campaign whose name looks like a number is reached by its own number
        return None if _NUMBERED.fullmatch(name) else self._numbers.get(name)

    def number(self, name: str) -> int:
        """The number of a campaign by its name, or by `~12`, which also reaches names that no path can hold."""
        if (found := self.known(name)) is not None:
            return found
        known = self._numbers = self.ledger.campaigns()
        if _NUMBERED.fullmatch(name):
            if int(name[1:]) in known.values():
                return int(name[1:])
        elif name in known:
            return known[name]
        raise NotFound(f"there is no campaign {name!r}")

    def get(self, name: str) -> Campaign:
        """A campaign, opened if it is not open yet."""
        return self.by_number(self.number(name))

    def opened(self, number: int) -> Campaign | None:
        """A campaign by its number, if it is open."""
        with self._lock:
            if number not in self._open:
                return None
            self._open.move_to_end(number)
            return self._open[number]

    def by_number(self, number: int) -> Campaign:
        """A campaign by its number."""
        if (found := self.opened(number)) is not None:
            return found
        names = {known: name for name, known in self.ledger.campaigns().items()}
        made = Campaign.open(self.ledger, names[number])
        with self._lock:
            # two requests may have opened it at once: both use the one that is kept
            found = self._open.setdefault(number, made)
            while len(self._open) > _MOST:
                self._open.popitem(last=False)
        return found

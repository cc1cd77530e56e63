"""What Evenhand raises: bad input, nothing to ask, a learner or a database that failed."""

from __future__ import annotations

from typing import Any

__all__ = [
    "Conflict",
    "EvenhandError",
    "InputError",
    "LearnerError",
    "LedgerError",
    "NotAllowed",
    "NotFound",
    "NothingToAsk",
    "Repeated",
    "RiskError",
    "ToolError",
]


class EvenhandError(Exception):
    """Anything Evenhand raises on purpose."""


class InputError(EvenhandError, ValueError):
    """What was given cannot be used; the message says what was wrong, which value, and what to do.

    `refused` lists the rows of a delivery that cannot be stored.
    """

    refused: tuple[Any, ...] = ()


class RiskError(InputError):
    """A risk of the user's own failed, or gave what no risk may be."""


class NotFound(InputError):
    """What was named is not there: a campaign, a request, an example."""


class Conflict(InputError):
    """What was given contradicts what is there already: another label of the same id, a request that was answered."""


class NotAllowed(InputError):
    """The server does not know this token, or its role may not do this."""


class Repeated(EvenhandError):
    """A step with this idempotency key was taken before; `events` are the numbers of its first and last event."""

    def __init__(self, events: tuple[int, int]) -> None:
        super().__init__("this was done before")
        self.events = events


class NothingToAsk(EvenhandError):
    """No request can be made now.

    `reason` says why: `"budget spent"`, `"waiting for open requests"`, `"groups used up"`, `"stopping rule"`,
    `"closed"`, or how a proof ended: `"certified"`, `"refuted"`, `"not reached"`. `note` has more, where there is more to say.
    """

    def __init__(self, reason: str, note: str = "") -> None:
        super().__init__(f"{reason}: {note}" if note else reason)
        self.reason, self.note = reason, note


class LearnerError(EvenhandError, RuntimeError):
    """The learner failed in fit. Nothing is lost: the next refit tries again."""


class ToolError(EvenhandError, RuntimeError):
    """A labelling tool could not be reached or did not do what was asked; nothing is lost, the next pass goes on."""


class LedgerError(EvenhandError, RuntimeError):
    """The database could not do what was asked; what was acknowledged before is intact.

    `plain` says it without the database's own words, which may tell of paths, hosts and users.
    """

    def __init__(self, message: str, plain: str = "the database cannot be used now") -> None:
        super().__init__(message)
        self.plain = plain

"""What Evenhand raises: bad input, nothing to ask, a learner or a database that failed."""

from __future__ import annotations

from typing import Any


class EvenhandError(Exception):
    """The base class of every error that Evenhand raises on purpose."""


class InputError(EvenhandError, ValueError):
    """The input cannot be used; the message says what was wrong, which value, and what to do.

    `refused` lists the rows of a delivery that cannot be stored.
    """

    refused: tuple[Any, ...] = ()


class RiskError(InputError):
    """A user's risk function failed, or returned values that a risk must not have."""


class NotFound(InputError):
    """The campaign, request or example that was named does not exist."""


class Conflict(InputError):
    """The input contradicts what is stored: another label for the same id, or a request that is already answered."""


class NotAllowed(InputError):
    """The server does not know this token, or the token's role does not allow this."""


class Repeated(EvenhandError):
    """A step with this idempotency key was taken before; `events` are the numbers of its first and last event."""

    def __init__(self, events: tuple[int, int]) -> None:
        super().__init__("this was done before")
        self.events = events


class NothingToAsk(EvenhandError):
    """No request can be made now.

    `reason` says why: `"budget spent"`, `"waiting for open requests"`, `"groups used up"`, `"stopping rule"`,
    `"closed"`, or how a proof ended: `"certified"`, `"refuted"`, `"not reached"`. `note` may add a sentence of detail.
    """

    def __init__(self, reason: str, note: str = "") -> None:
        super().__init__(f"{reason}: {note}" if note else reason)
        self.reason, self.note = reason, note


class LearnerError(EvenhandError, RuntimeError):
    """The learner's `fit` failed. Nothing is lost: the next refit tries again."""


class ToolError(EvenhandError, RuntimeError):
    """A labelling tool could not be reached or refused a call. Nothing is lost: the next pass continues from here."""


class LedgerError(EvenhandError, RuntimeError):
    """The database failed; everything that was acknowledged before is intact.

    `plain` says it without the database's own words, which may tell of paths, hosts and users.
    """

    def __init__(self, message: str, plain: str = "the database cannot be used now") -> None:
        super().__init__(message)
        self.plain = plain

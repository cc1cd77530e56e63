"""What a campaign hands out and gives back: requests, receipts, and why there is nothing to ask."""

from __future__ import annotations

from dataclasses import dataclass, field

from evenhand.decision import Decision

__all__ = ["Docket", "LearnerError", "NothingToAsk", "Receipt", "Request", "why_nothing"]


class NothingToAsk(Exception):
    """No request can be made now.

    `reason` says why: `"budget spent"`, `"waiting for open requests"`, `"groups used up"` or `"stopping rule"`.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class LearnerError(RuntimeError):
    """The learner failed in fit. Nothing is lost: the next ask tries again."""


def why_nothing(size: int, *, available: bool, waiting: bool) -> str | None:
    """Why no request of `size` labels can be made: no group is `available`, all is promised or all is spent."""
    if not available:
        return "groups used up"
    if size < 2:
        return "waiting for open requests" if waiting else "budget spent"
    return None


@dataclass(frozen=True)
class Request:
    """What to collect: `size` labelled examples of `group`, of which `validating` will validate."""

    id: int
    group: str
    size: int
    validating: int
    decision: Decision


@dataclass(frozen=True)
class Receipt:
    """What a delivery brought: rows by role, and how many fewer (−) or more (+) than asked for."""

    request: int
    rows: int
    training: int
    validation: int
    beyond: int


@dataclass
class Docket:
    """The requests of a campaign: the open ones, the mark of what answered each, and those given up."""

    open: dict[int, Request] = field(default_factory=dict)
    told: dict[int, str] = field(default_factory=dict)
    abandoned: set[int] = field(default_factory=set)

    def find(self, request: Request | int) -> Request:
        """An open request, by itself or its number."""
        number = _number(request)
        if number in self.open:
            return self.open[number]
        state = "was answered" if number in self.told else "was abandoned" if number in self.abandoned else None
        raise ValueError(f"request {number} {state or 'was never made'}; open are {list(self.open) or 'none'}")

    def answered(self, request: Request | int, mark: str) -> bool:
        """Whether this very answer was given before; another answer than the one given is refused."""
        given = self.told.get(_number(request))
        if given not in (None, mark):
            raise ValueError(
                f"request {_number(request)} was answered with other data: ask for a new one, or use add()"
            )
        return given is not None

    def answer(self, request: Request, mark: str) -> None:
        """Close an open request with the mark of what came."""
        del self.open[request.id]
        self.told[request.id] = mark

    def give_up(self, request: Request | int) -> Request:
        """Close an open request with nothing."""
        found = self.find(request)
        del self.open[found.id]
        self.abandoned.add(found.id)
        return found


def _number(request: Request | int) -> int:
    return request.id if isinstance(request, Request) else int(request)

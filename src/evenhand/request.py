"""What a campaign hands out and gives back: requests, receipts, and why there is nothing to ask."""

from __future__ import annotations

from dataclasses import dataclass

from evenhand.decision import Decision

__all__ = ["LearnerError", "NothingToAsk", "Receipt", "Request"]


class NothingToAsk(Exception):
    """No request can be made now.

    `reason` says why: `"budget spent"`, `"waiting for open requests"`, `"groups used up"` or `"stopping rule"`.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class LearnerError(RuntimeError):
    """The learner failed in fit. Nothing is lost: the next ask tries again."""


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

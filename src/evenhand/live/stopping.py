"""Stopping rules of a live campaign: their text, and the recorded facts they look at."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any as Anything

import numpy as np

from evenhand.ledger import State
from evenhand.live.evidence import evidence_since
from evenhand.live.learners import live_learner
from evenhand.monitor import Monitor
from evenhand.stopping import Any, Deadline, LabelsSpent, NoImprovement, Rule, TargetError

__all__ = ["reason_to_stop", "stop_settings", "wants_frozen"]

_RULES: dict[str, Callable[[str], Rule]] = {
    "target": lambda text: TargetError(float(text)),
    "labels": lambda text: LabelsSpent(int(text)),
    "until": Deadline,
    "no-improvement": lambda text: NoImprovement(int(text)),
}


def stop_settings(stop: str | Sequence[str] | None, learner: str | None) -> dict[str, Anything]:
    """The settings of stopping rules, any of which stops: `target=0.1`, `until=2027-03-01`; None for none.

    >>> stop_settings(["labels=2000", "no-improvement=50"], None)
    {'stop': ['labels=2000', 'no-improvement=50'], 'rounds': 50}
    """
    texts = [] if stop is None else [stop] if isinstance(stop, str) else list(stop)
    rules = [_parse(text) for text in texts]
    if any(isinstance(rule, TargetError) for rule in rules):
        if learner is None:
            raise ValueError("target= rests on a certificate, which needs a learner")
        if getattr(live_learner(learner), "incremental", False):
            raise ValueError("target= rests on a frozen model, and this learner's cannot be rebuilt exactly")
    return {"stop": texts, "rounds": max((rule.rounds_back for rule in rules), default=0)}


def reason_to_stop(state: State, now: float) -> str | None:
    """Why to ask no more; None to go on."""
    if not state.settings.get("stop"):
        return None
    return _rule(state).reason(_Seen(state, now))


def wants_frozen(state: State, now: float) -> bool:
    """Whether the rule wants the newest model frozen, to gather evidence on it."""
    if not state.settings.get("stop"):
        return False
    rule, seen = _rule(state), _Seen(state, now)
    return rule.reason(seen) is None and rule.freeze(seen)


class _Seen(Monitor):
    """What the rules look at, from the facts in the ledger."""

    def __init__(self, state: State, now: float) -> None:
        super().__init__(state.groups)
        self._now, self.labels, self.validated = now, state.labels_used, np.array(state.scored)
        right = [a if a is not None and n else np.nan for a, n in zip(state.accuracy, state.scored, strict=True)]
        self.errors = 1 - np.array(right, dtype=float)
        self.scores = deque(tuple(row) for row in state.history)
        if state.frozen is not None:
            self.since = evidence_since(state)
            self.version, self.frozen_labels = state.frozen["version"], state.frozen["labels"]

    def now(self) -> datetime:
        """The time of the look."""
        return datetime.fromtimestamp(self._now, UTC)


def _rule(state: State) -> Rule:
    return Any([_parse(text) for text in state.settings["stop"]])


def _parse(text: str) -> Rule:
    name, mark, value = text.partition("=")
    if not mark or name not in _RULES:
        raise ValueError(
            f"cannot read the stopping rule {text!r}: write target=0.1, labels=2000, until=2027-03-01 or no-improvement=50"
        )
    try:
        return _RULES[name](value)
    except ValueError as error:
        raise ValueError(f"cannot read the stopping rule {text!r}: {error}") from None

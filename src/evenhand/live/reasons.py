"""Decisions written down for the ledger."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import isfinite
from typing import Any

from evenhand.decision import Decision

__all__ = ["Reasons"]


class Reasons:
    """Writes decisions as JSON, in the form of `Decision.as_dict` but much quicker: it happens under the write lock."""

    def __init__(self, groups: Sequence[str]) -> None:
        self._keys = [f"{json.dumps(group)}:" for group in groups]

    def text(self, decision: Decision) -> str:
        """The decision as JSON."""
        group, kind, chance = json.dumps(decision.group), decision.kind, decision.probability
        terms = ",".join([f"{json.dumps(name)}:{self._named(values)}" for name, values in decision.terms.items()])
        drawn = "null" if chance is None or kind not in ("explore", "population") else self._named(chance)
        return f'{{"group":{group},"kind":"{kind}","terms":{{{terms}}},"probability":{drawn}}}'

    def _named(self, values: Any) -> str:
        pairs = zip(self._keys, values.tolist(), strict=True)
        return "{" + ",".join([f"{key}{value!r}" if isfinite(value) else f"{key}null" for key, value in pairs]) + "}"

"""Losses reported by somebody who trains the model elsewhere."""

from __future__ import annotations

import math

from evenhand.campaign.features import LARGEST
from evenhand.campaign.state import State
from evenhand.errors import InputError
from evenhand.notation import JsonMapping

__all__ = ["check_losses"]


def check_losses(state: State, losses: JsonMapping) -> dict[str, dict[str, float]]:
    """Reported mean losses, accuracies and numbers of validation examples, checked."""
    if state.settings["learner"] is not None:
        raise InputError("this campaign has a learner and scores by itself: make it with learner=None to report losses")
    if not losses:
        raise InputError("no losses given: report {group: (mean loss, accuracy, examples)}")
    # a slip, such as a percentage in place of a count, would outweigh every other group for good
    most = int(state.settings["budget"]) + state.added
    found = {}
    for group, reported in losses.items():
        if group not in state.groups:
            raise InputError(f"unknown group {group!r}: the groups are {', '.join(map(repr, state.groups))}")
        try:
            mean, right, n = (float(value) for value in reported)
        except (TypeError, ValueError):
            raise InputError(f"losses of {group!r}: give (mean loss, accuracy, examples), not {reported!r}") from None
        if not (0 <= mean <= LARGEST and 0 <= right <= 1 and 1 <= n < math.inf and n == int(n)):
            raise InputError(
                f"losses of {group!r}: the mean loss must be a number from 0 up, accuracy in [0, 1], examples a whole number "
                f"from 1 up, not {reported!r}"
            )
        if n > most:
            raise InputError(
                f"losses of {group!r}: {n:g} validation examples are more than the {most:,} labels there can be"
            )
        found[str(group)] = {"n": int(n), "loss_sum": mean * n, "accuracy": right}
    return found

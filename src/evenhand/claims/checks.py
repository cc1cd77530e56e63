"""Checks of settings, each with an error that names the setting and its value."""

from evenhand.errors import InputError

MOST_DELTA = 0.5


def probability(name: str, value: float) -> float:
    """The value, if it lies strictly between 0 and 1."""
    if not 0 < value < 1:
        raise InputError(f"{name} must lie strictly between 0 and 1, got {value!r}")
    return float(value)


def level(delta: float) -> float:
    """The probability with which a claim may be false: more than one half would claim nothing."""
    if not 0 < delta <= MOST_DELTA:
        raise InputError(f"delta must be above 0 and at most {MOST_DELTA}, got {delta!r}: 0.05 is 95 % confidence")
    return float(delta)


def confidence(delta: float) -> str:
    """The confidence of a claim at level δ, in words.

    >>> confidence(0.05), confidence(0.001)
    ('95 % confidence', '99.9 % confidence')
    """
    return f"{round(100 * (1 - delta), 6):g} % confidence"

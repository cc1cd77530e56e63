"""Checks of settings, each with an error that names the setting and its value."""

from evenhand.errors import InputError


def probability(name: str, value: float) -> float:
    """The value, if it lies strictly between 0 and 1."""
    if not 0 < value < 1:
        raise InputError(f"{name} must lie strictly between 0 and 1, got {value!r}")
    return float(value)

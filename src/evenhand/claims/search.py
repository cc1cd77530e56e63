"""The smallest whole number with a property that, once true, stays true."""

from collections.abc import Callable

# beyond any budget, and its square is still a float
FOREVER = 10**60
BEYOND = "more than 10^60 rounds"
"""How much what was not found needs: the search ends there, and does not know whether it is never."""


def smallest(holds: Callable[[int], bool], start: int = 1) -> int | None:
    """The smallest n ≥ start where a monotone property holds, by doubling and bisection; None if there is none below 10⁶⁰.

    >>> smallest(lambda n: n * n >= 1000)
    32
    """
    if holds(start):
        return start
    low, high = start, 2 * start
    while not holds(high):
        low, high = high, 2 * high
        if high > FOREVER:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high

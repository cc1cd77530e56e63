"""How many labels a certificate will need, before any is bought."""

from evenhand.claims import checks
from evenhand.claims.intervals import wilson
from evenhand.claims.search import smallest
from evenhand.claims.sequences import error_rate
from evenhand.errors import InputError


def labels_for_width(
    width: float,
    error: float = 0.5,
    *,
    delta: float = 0.05,
    groups: int = 1,
    errors: int = 0,
    n: int = 0,
    any_time: bool = True,
) -> int:
    """How many more validation labels it takes until a group's interval is ±width, at an error rate near `error`.

    The interval is that of the first certificate, which may use δ/2: later ones share the other half. It is the one
    behind `worst_at_most`; with `groups` it is `low` to `high`, which hold for that many groups at once. If `n` labels
    with `errors` errors are there already, their rate replaces `error`. `any_time=False` is Wilson's interval at δ,
    looked at once, at a size fixed in advance.

    >>> labels_for_width(0.05, 0.1), labels_for_width(0.05, 0.1, any_time=False)
    (505, 141)
    """
    if not 0 < width < 0.5:
        raise InputError(f"width must lie between 0 and 0.5, got {width!r}")
    checks.level(delta)
    if not 0 <= error <= 1:
        raise InputError(f"error must lie in [0, 1], got {error!r}")
    if groups < 1:
        raise InputError(f"groups must be at least 1, got {groups!r}")
    if not 0 <= errors <= n:
        raise InputError(f"errors must lie between 0 and n, got {errors!r} of {n!r}")
    # half an error more: after no error in a few labels, a rate of 0 would promise a width that nobody gets
    rate = (errors + 0.5) / (n + 1) if n else error
    level = delta / groups

    def narrow(more: int) -> bool:
        size = n + more
        # errors as they are expected to come: the width is that of a typical future, half of all futures are worse
        s = errors + rate * more
        low, high = error_rate(s, size, level / 2) if any_time else wilson(s, size, 1 - level)
        return bool((high - low) / 2 <= width)

    found = smallest(narrow, start=1)
    if found is None:
        raise InputError(f"no sample is large enough for ±{width!r}")
    return found

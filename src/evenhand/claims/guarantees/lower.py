"""The lower bound: no rule does better than this on the worse of two instances. All labels count."""

from math import exp, pi, sqrt

from evenhand.errors import InputError
from evenhand.sources.synthetic.model1 import SyntheticModel1


def lower_bound(labels: int, r: float) -> float:
    """c_r/(16√n), c_r = φ(√2·r): the mean excess 0-1 risk that every rule has on one of `lower_bound_pair`.

    >>> round(lower_bound(1000, 1.0), 6)
    0.00029
    """
    _check(labels, r)
    return exp(-r * r) / sqrt(2 * pi) / (16 * sqrt(labels))


def other_radius(labels: int, r: float) -> float:
    """r' = r + 1/√(2n), the other radius of the pair."""
    _check(labels, r)
    return r + 1 / sqrt(2 * labels)


def lower_bound_pair(labels: int, r: float) -> tuple[SyntheticModel1, SyntheticModel1]:
    """The two instances the bound is about: u at radius r and v at r', and the other way round."""
    far = other_radius(labels, r)

    def instance(u: float, v: float, name: str) -> SyntheticModel1:
        means = {"u": {0: (-u, u), 1: (u, -u)}, "v": {0: (-v, -v), 1: (v, v)}}
        return SyntheticModel1(means, name=f"lower-bound pair, {name}")

    return instance(r, far, "u harder"), instance(far, r, "v harder")


def _check(labels: int, r: float) -> None:
    if not r > 0:
        raise InputError(f"r must be positive, got {r!r}")
    if labels < 2 or not labels > 1 / (2 * r * r):
        raise InputError(
            f"the lower bound needs at least 2 labels and more than 1/(2r²) = {1 / (2 * r * r):.6g}, got {labels!r}"
        )

"""The phases of a run, as the proof of Theorem 1 counts them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from evenhand.errors import InputError


@dataclass(frozen=True)
class Phase:
    """One phase: its last round t_i, the group z_i asked then, and the groups whose share grew since the last phase.

    In phase 0 these are the groups that end above their fair share.
    """

    end: int
    group: str
    grown: frozenset[str]


def phases(choices: Sequence[str], pi_star: Mapping[str, float]) -> tuple[Phase, ...]:
    """The phases of a sequence of choices; none if it ends exactly on π*.

    >>> [phase.end for phase in phases("abbaab", {"a": 0.4, "b": 0.6})]
    [5, 6]
    """
    unknown = sorted(set(choices) - set(pi_star))
    if unknown:
        raise InputError(f"choices contain {unknown[0]!r}, which has no fair share in pi_star")
    last = {group: t for t, group in enumerate(choices, start=1)}
    final = _shares(choices, len(choices), pi_star)
    # in fractions: whether a share has grown must not hang on the last bit
    grown = frozenset(z for z in pi_star if final[z] > Fraction(pi_star[z]).limit_denominator(10**9))
    found: list[Phase] = []
    while grown:
        end = max(last[z] for z in grown)
        found.append(Phase(end, choices[end - 1], grown))
        if end == len(choices):
            break
        now = _shares(choices, end, pi_star)
        grown = frozenset(z for z in pi_star if last.get(z, 0) > end and now[z] < final[z])
    return tuple(found)


def _shares(choices: Sequence[str], rounds: int, groups: Mapping[str, float]) -> dict[str, Fraction]:
    return {z: Fraction(list(choices[:rounds]).count(z), rounds) for z in groups}

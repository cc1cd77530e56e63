"""How many rows of a finite pool a model gets wrong, from those that were labelled: drawn at random, without replacement.

Of N rows, S are wrong. After n of them, drawn in a secret order, s were. A number S₀ is tested against the smaller ones:
the mixture of the likelihoods of all S < S₀, with the prior Beta-binomial(N, ½, ½) cut off there, over the likelihood of
S₀. Under every S ≥ S₀ that ratio is a supermartingale in n, so S₀ is excluded once it is 1/δ, at whichever look.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from evenhand.arrays import Ints, Mask
from evenhand.claims import checks
from evenhand.errors import InputError


@lru_cache(maxsize=4096)
def wrong_at_most(rows: int, wrong: int, labels: int, delta: float = 0.05) -> int:
    """The most rows of a pool that may be wrong, valid at every number of labels at once.

    Args:
        rows: the rows of the pool.
        wrong: how many of those labelled were wrong.
        labels: how many were labelled, in a random order.
        delta: the probability that the bound is ever too low.

    >>> wrong_at_most(500, 35, 312, 0.025), wrong_at_most(500, 0, 0)
    (77, 500)
    """
    checks.level(delta)
    _check(rows, wrong, labels)
    return int(_candidates(rows, wrong, labels)[_kept(rows, wrong, labels, delta)][-1])


def wrong_at_least(rows: int, wrong: int, labels: int, delta: float = 0.05) -> int:
    """The fewest rows of a pool that must be wrong: the mirror of `wrong_at_most`, right and wrong exchanged.

    >>> wrong_at_least(500, 200, 312, 0.025)
    290
    """
    return rows - wrong_at_most(rows, labels - wrong, labels, delta)


def labels_to_prove(rows: int, rate: float, target: float, delta: float = 0.05) -> int | None:
    """At how many labels the bound falls to a share of `target`, if a share of `rate` is wrong; None if it never does.

    The errors among the labels are those to be expected, rounded: in four runs of five 1.3 times as many suffice.

    >>> [labels_to_prove(n, 0.113, 0.155, 0.025) for n in (300, 500, 1000, 2000)]
    [223, 312, 437, 561]
    """
    for labels in range(1, rows + 1):
        wrong = round(rate * labels)
        # the rounding takes turns: what is proven at one number may not be at the next, so the first one counts
        if wrong_at_most(rows, wrong, labels, delta) <= target * rows:
            return labels
    return None


def _check(rows: int, wrong: int, labels: int) -> None:
    if not 0 <= wrong <= labels <= rows:
        raise InputError(f"of {rows} rows {labels} cannot be labelled and {wrong} of those wrong")


def _candidates(rows: int, wrong: int, labels: int) -> Ints:
    """The numbers of wrong rows that the labels leave possible."""
    return np.arange(wrong, rows - (labels - wrong) + 1)


def _kept(rows: int, wrong: int, labels: int, delta: float) -> Mask:
    """Which of these numbers are not excluded."""
    from scipy.special import betaln, gammaln

    total = np.arange(rows + 1)
    prior = gammaln(rows + 1) - gammaln(total + 1) - gammaln(rows - total + 1) + betaln(total + 0.5, rows - total + 0.5)
    possible = _candidates(rows, wrong, labels)
    right = labels - wrong
    # C(S, s)·C(N−S, n−s), but for what does not depend on S
    likelihood = (
        gammaln(possible + 1) - gammaln(possible - wrong + 1)
        + gammaln(rows - possible + 1) - gammaln(rows - possible - right + 1)
    )  # fmt: skip
    joint = prior[possible] + likelihood
    with np.errstate(divide="ignore", invalid="ignore"):
        # over the numbers below each candidate; those that the labels rule out have no likelihood, but prior weight
        mixture = np.concatenate([[-np.inf], np.logaddexp.accumulate(joint)[:-1]])
        weight = np.concatenate([[-np.inf], np.logaddexp.accumulate(prior)])[possible]
        evidence = np.where(possible > wrong, mixture - weight - likelihood, -np.inf)
    return np.asarray(evidence < -np.log(delta))

"""Claims about a finite pool: compared with exact enumeration, and their coverage at every look."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.claims.finite import labels_to_prove, wrong_at_least, wrong_at_most
from evenhand.claims.sequences import rate_at_least, rate_at_most, upper_rate
from evenhand.errors import InputError


def enumerated(rows: int, wrong: int, labels: int, delta: float) -> int:
    """The bound from its definition, in exact fractions: Beta(½, ½) moments are ratios of central binomials."""

    def beta(a: int, b: int) -> Fraction:  # B(a+½, b+½)/B(½, ½)
        return Fraction(
            math.comb(2 * a, a) * math.comb(2 * b, b) * math.factorial(a) * math.factorial(b),
            4 ** (a + b) * math.factorial(a + b),
        )

    prior = [math.comb(rows, k) * beta(k, rows - k) for k in range(rows + 1)]
    likelihood = [
        Fraction(math.comb(k, wrong) * math.comb(rows - k, labels - wrong), math.comb(rows, labels))
        for k in range(rows + 1)
    ]
    kept = []
    for k in range(rows + 1):
        if not likelihood[k]:
            continue
        below = sum(prior[:k])
        mixture = sum(p * x for p, x in zip(prior[:k], likelihood[:k], strict=True)) / below if below else Fraction(0)
        if mixture * Fraction(delta) < likelihood[k]:
            kept.append(k)
    return max(kept)


@given(st.integers(1, 30), st.data())
def test_the_bound_is_that_of_exact_enumeration(rows: int, data: st.DataObject) -> None:
    labels = data.draw(st.integers(0, rows))
    wrong = data.draw(st.integers(0, labels))
    delta = data.draw(st.sampled_from([0.5, 0.1, 0.025, 0.001]))
    assert wrong_at_most(rows, wrong, labels, delta) == enumerated(rows, wrong, labels, delta)
    assert wrong_at_least(rows, wrong, labels, delta) == rows - enumerated(rows, labels - wrong, labels, delta)


@given(st.integers(1, 400), st.data())
def test_a_pool_that_is_labelled_is_known(rows: int, data: st.DataObject) -> None:
    wrong = data.draw(st.integers(0, rows))
    assert wrong_at_most(rows, wrong, rows) == wrong == wrong_at_least(rows, wrong, rows)


@pytest.mark.parametrize(("rows", "wrong", "labels"), [(5, 3, 2), (5, 1, 6), (5, -1, 2)])
def test_counts_that_cannot_be_are_refused(rows: int, wrong: int, labels: int) -> None:
    with pytest.raises(InputError, match=str(rows)):
        wrong_at_most(rows, wrong, labels)


def false_claims(looks: np.ndarray, truth: float) -> int:
    return int((looks.min(axis=1) < truth).sum())


@pytest.mark.parametrize(("rows", "share"), [(60, 0.1), (200, 0.3), (200, 0.01)])
def test_the_pool_is_covered_at_every_look(rows: int, share: float) -> None:
    rng, runs, delta = np.random.default_rng(7), 400, 0.1
    truth = round(rows * share)
    pool = np.arange(rows) < truth
    counts = np.cumsum([rng.permuted(pool) for _ in range(runs)], axis=1)
    looks = np.array([[wrong_at_most(rows, int(c), n + 1, delta) for n, c in enumerate(run)] for run in counts])
    # three standard errors above what is promised
    assert false_claims(looks, truth) <= runs * delta + 3 * math.sqrt(runs * delta * (1 - delta))


@pytest.mark.parametrize("rate", [0.02, 0.113, 0.5])
def test_people_are_covered_at_every_look(rate: float) -> None:
    rng, runs, delta, most = np.random.default_rng(3), 400, 0.1, 600
    errors = np.cumsum(rng.random((runs, most)) < rate, axis=1)
    looks = rate_at_most(errors, np.arange(1, most + 1), delta)
    allowed = runs * delta + 3 * math.sqrt(runs * delta * (1 - delta))
    assert false_claims(looks, rate) <= allowed
    low = rate_at_least(errors, np.arange(1, most + 1), delta)
    assert int((low.max(axis=1) > rate).sum()) <= allowed


def test_the_one_sided_bound_is_the_supremum_of_what_is_not_excluded() -> None:
    """The definition on a grid, by numerical integration."""
    from scipy.integrate import quad

    s, n, delta = 7, 60, 0.025

    def excluded(p: float) -> bool:
        def density(q: float) -> float:
            return 1 / math.sqrt(q * (1 - q))

        def ratio(q: float) -> float:
            return math.exp(s * math.log(q / p) + (n - s) * math.log((1 - q) / (1 - p))) * density(q)

        return quad(ratio, 0, p)[0] / quad(density, 0, p)[0] >= 1 / delta

    bound = float(rate_at_most(s, n, delta))
    assert excluded(bound + 1e-4)
    assert not excluded(bound - 1e-4)
    assert bound < float(upper_rate(s, n, delta))


def test_labels_that_prove_a_target() -> None:
    """Expected counts, rounded: what a claim about the pool costs, beside one about people."""
    n = np.arange(1, 1500)
    people = [int(n[np.argmax(bound(np.round(0.113 * n), n, 0.025) <= 0.155)]) for bound in (upper_rate, rate_at_most)]
    assert people == [986, 783]
    assert [labels_to_prove(rows, 0.05, 0.10, 0.025) for rows in (300, 500, 1000, 2000)] == [147, 186, 227, 250]
    assert labels_to_prove(50, 0.5, 0.4) is None

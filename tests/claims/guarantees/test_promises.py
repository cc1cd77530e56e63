"""The theorems against formulas written out again in mpmath, and their limits and monotonicity."""

import itertools

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenhand.claims.guarantees as g
from evenhand.claims.bounds import RademacherBound, VCBound
from evenhand.claims.guarantees.optimism import value
from evenhand.sources.synthetic.model1 import SyntheticModel1

I = SyntheticModel1.instance("I")


def own(n):
    return n**-0.5


def problem(**changes):
    settings = {"groups": 3, "pi_min": 0.2, "C": 1.5, "bound": own, "A": 0.15, "gap": 0.02, "epsilon0": 0.1}
    return g.Problem(**{**settings, **changes})


def theorem_1(m, pi_min, C, A, rounds, e):
    pi_min, A = mp.mpf(pi_min), mp.mpf(A)
    n_a = A * rounds * pi_min / (2 * pi_min - A)
    return float(sum(4 * C / ((i * A + (m - i) * pi_min) / m) + 2 for i in range(m)) * e(n_a))


@given(st.integers(1, 8), st.floats(0.01, 1), st.floats(0.5, 0.999), st.floats(0, 20), st.integers(2, 10**9))
def test_theorem_1(m, part, a, C, labels):
    pi_min = part / m
    p = g.Problem(groups=m, pi_min=pi_min, C=C, bound=own, A=a * pi_min)
    # a sequence is taken at one example where the theorem asks for less
    expected = theorem_1(m, pi_min, C, a * pi_min, labels // 2, lambda n: max(n, 1) ** mp.mpf(-0.5))
    promise = g.optimistic(p, labels)
    assert promise.value == pytest.approx(expected, rel=1e-9)
    assert promise.order == pytest.approx(m * C / pi_min * promise.deviation)
    assert promise.rounds == labels // 2
    assert promise.vacuous == (promise.value >= 1)


def test_the_default_a_is_half_of_pi_min():
    assert g.Problem(groups=2, pi_min=0.2, C=1.0, bound=own).A == 0.1


def test_conditions_by_brute_force():
    p = problem(gap=lambda r: r / 2, xi=0.6)
    conditions = g.optimistic(p, 1000).conditions
    rounds = [c.labels // 2 for c in conditions]

    def first(holds):
        """Any smaller number of rounds must fail, the number itself hold."""
        return lambda n: holds(n) and (n == 1 or not holds(n - 1))

    t = 0.2 / (2 * 0.2 - 0.15)
    assert first(lambda n: n >= 0.2 ** (-1 / 0.4) - 1e-9)(rounds[0])
    assert first(lambda n: 0.15 * (n * t) >= (n * t) ** 0.6 - 1e-9)(rounds[1])
    assert first(lambda n: 2 * ((0.2 * n) ** 0.6) ** -0.5 <= 0.1)(rounds[2])
    total = 0.0
    for i in range(3):
        total += 4 * 1.5 / ((i * 0.15 + (3 - i) * 0.2) / 3) + 2
        radius = (i + 1) * (0.2 - 0.15) / 3
        assert first(lambda n, c=total, r=radius: c * ((0.2 * n) ** 0.6) ** -0.5 <= r / 2)(rounds[3 + i])
    assert len(rounds) == 6


def test_half_exploration_gives_the_papers_first_condition():
    assert g.optimistic(problem(xi=0.5), 100).conditions[0].labels == 2 * 25


def test_unknown_conditions_name_their_input():
    promise = g.optimistic(problem(gap=None, epsilon0=None), 10**12)
    assert {c.unknown for c in promise.conditions} == {None, "gap", "epsilon0"}
    assert promise.valid is None
    assert "give `gap`" in str(promise)


def test_a_gap_of_zero_never_lets_it_hold():
    promise = g.optimistic(problem(gap=0.0), 10**9)
    assert promise.valid is False
    assert promise.speaks_from is None
    assert "never holds" in str(promise)
    assert g.labels_for(problem(gap=0.0), 0.5) is None


@given(st.floats(0.001, 2), st.sampled_from([0.0, 1e-6]), st.sampled_from([None, 0.3]))
@settings(max_examples=40)
def test_budget_and_promise_are_inverse(target, resolution, kappa):
    p = problem(resolution=resolution, kappa=kappa)
    labels = g.labels_for(p, target)
    assert labels is not None
    assert g.optimistic(p, labels).value <= target
    assert g.optimistic(p, labels).valid
    before = g.optimistic(p, labels - 2)
    assert before.value > target or not before.valid


@given(st.lists(st.integers(2, 10**15), min_size=2, max_size=20))
def test_a_larger_budget_never_promises_less(budgets):
    for p in (problem(), problem(bound=VCBound(3)), problem(kappa=0.2, bound=RademacherBound())):
        values = [value(p, n / 2) for n in sorted(budgets)]
        assert all(a >= b for a, b in itertools.pairwise(values))


def test_below_its_resolution_c_promises_nothing_more():
    fine, coarse = problem(), problem(resolution=1e-3)
    assert g.optimistic(fine, 10**4).value == g.optimistic(coarse, 10**4).value
    floor = sum(2 * 1.5 * 1e-3 / a for a in coarse.phases)
    assert g.optimistic(coarse, 10**18).value == pytest.approx(floor, rel=1e-3)
    assert g.labels_for(coarse, floor / 2) is None


def test_square_root_form():
    p = problem(kappa=0.3)
    e = g.optimistic(p, 10**6).deviation
    expected = sum(2 * 0.3 * np.sqrt(2 * e) / a + 2 * e for a in p.phases)
    assert g.optimistic(p, 10**6).value == pytest.approx(expected)
    assert problem(kappa=0.3, bound=VCBound(3)).rate == 0.25


@pytest.mark.parametrize(
    ("bound", "rate"),
    [(VCBound(3), 0.5), (RademacherBound(alpha=0.3), 0.3), (RademacherBound(alpha=2.0), 0.5), (own, None)],
)
def test_rates(bound, rate):
    p = problem(bound=bound)
    assert p.rate == rate
    if rate:
        far, further = (g.optimistic(p, 10**k).value for k in (40, 44))
        assert np.log10(far / further) / 4 == pytest.approx(rate, abs=0.02)


def theorem_2(m, pi_min, C, epsilon, beta, rounds, e):
    q = mp.mpf(epsilon) / m
    n_q = q * rounds * (pi_min - q * (1 + beta)) * (1 - beta)
    return float(m * 4 * (1 + C / (q * (1 - beta))) * e(n_q))


@given(st.floats(0.01, 0.58), st.floats(0.01, 0.99), st.integers(10**4, 10**9))
def test_theorem_2(epsilon, part, labels):
    p = problem()
    beta = part * min(1, 3 * 0.2 / epsilon - 1)
    promise = g.epsilon_greedy(p, epsilon, labels, beta)
    expected = theorem_2(3, 0.2, 1.5, epsilon, beta, labels // 2, lambda n: max(n, 1) ** mp.mpf(-0.5))
    assert promise.value == pytest.approx(expected, rel=1e-9)
    assert promise.probability == pytest.approx(1 - 2 * 0.05)


def test_theorem_2_budget_by_brute_force():
    promise = g.epsilon_greedy(problem(), 0.3, 1000, 0.5)
    q = 0.1

    def settled(n):
        return mp.sqrt(mp.log(3 * mp.pi**2 * n**2 / (3 * mp.mpf(0.05))) / (2 * n)) <= 0.5 * q

    first = next(n for n in range(1, 100_000) if settled(n))
    assert promise.conditions[0].labels / 2 == pytest.approx(first / (0.2 - q * 1.5), abs=1.001)
    assert promise.conditions[0].met is False


def test_theorem_2_budget_and_promise_are_inverse():
    labels = g.epsilon_greedy_labels_for(problem(), 0.3, 0.4)
    assert g.epsilon_greedy(problem(), 0.3, labels).value <= 0.4
    assert g.epsilon_greedy(problem(), 0.3, labels - 2).value > 0.4


def test_optimism_promises_more_than_epsilon_greedy():
    p = problem()
    assert g.optimistic(p, 10**6).value < g.epsilon_greedy(p, 0.3, 10**6).value


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"groups": 0}, "groups"),
        ({"pi_min": 0.4}, "pi_min"),
        ({"pi_min": 0.0}, "pi_min"),
        ({"A": 0.09}, "A must"),
        ({"A": 0.2}, "A must"),
        ({"C": -1.0}, "C must"),
        ({"C": float("nan")}, "C must"),
        ({"kappa": -0.1}, "kappa"),
        ({"epsilon0": -0.1}, "epsilon0"),
        ({"resolution": -0.1}, "resolution"),
        ({"gap": -0.1}, "gap"),
        ({"xi": 1.0}, "xi"),
        ({"delta": 0.0}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"bound": lambda n: n}, "must not grow"),
    ],
)
def test_bad_problems(changes, message):
    with pytest.raises(ValueError, match=message):
        problem(**changes)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: g.optimistic(problem(), 1), "at least 2 labels"),
        (lambda: g.labels_for(problem(), 0.0), "positive"),
        (lambda: g.smallest_budget(problem(gap=None), 0), "give `gap`"),
        (lambda: g.epsilon_greedy(problem(), 0.6, 1000), "0 < epsilon"),
        (lambda: g.epsilon_greedy(problem(), 0.0, 1000), "without exploring"),
        (lambda: g.epsilon_greedy(problem(), 1.5, 1000), r"\[0, 1\]"),
        (lambda: g.epsilon_greedy(problem(), 0.3, 1000, 1.0), "beta"),
        (lambda: g.epsilon_greedy(problem(), 0.3, 1000, 0.0), "beta"),
        (lambda: g.epsilon_greedy(problem(), 0.5, 1000, 0.5), "beta"),
        (lambda: g.exploration(0.5, [0.2, 0.8], shares=[1.0]), "one number per group"),
        (lambda: g.lower_bound(1, 1.0), "at least 2 labels"),
        (lambda: g.lower_bound(100, 0.05), "more than"),
        (lambda: g.lower_bound(100, 0.0), "r must"),
    ],
)
def test_bad_questions(call, message):
    with pytest.raises(ValueError, match=message):
        call()

"""The theorems against formulas written out again in mpmath, and their limits and monotonicity."""

import itertools

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenhand as eh
import evenhand.claims.guarantees as g
from evenhand.claims.bounds import RademacherBound, VCBound
from evenhand.claims.guarantees.optimism import value
from evenhand.strategies.parsing import parse_strategy
from evenhand.strategies.standing import Standing


def own(n):
    return n**-0.5


def problem(**changes):
    settings = {"groups": 3, "pi_min": 0.2, "bound": own, "A": 0.15, "gap": 0.02, "epsilon0": 0.1}
    constant = {} if changes.get("kappa") is not None else {"C": 1.5}
    return g.Problem(**{**settings, **constant, **changes})


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
    assert "needs more than 10^60 rounds" in str(promise)
    assert g.labels_for(problem(gap=0.0), 0.5) is None


@given(st.floats(0.001, 2), st.sampled_from([{}, {"resolution": 1e-6}, {"kappa": 0.3}]))
@settings(max_examples=20)
def test_budget_and_promise_are_inverse(target, form):
    p = problem(**form)
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
    floor = sum(2 * 1.5 * 1e-3 / ((i * 0.15 + (3 - i) * 0.2) / 3) for i in range(3))
    far = g.optimistic(coarse, 10**18)
    assert far.value == pytest.approx(floor, rel=1e-3)
    assert far.floor == pytest.approx(floor)
    assert far.order == pytest.approx(3 * 1.5 / 0.2 * 5e-4)
    assert g.labels_for(coarse, floor / 2) is None


def test_square_root_form():
    p = problem(kappa=0.3)
    promise = g.optimistic(p, 10**6)
    e = promise.deviation
    expected = sum(2 * 0.3 * np.sqrt(2 * e) / ((i * 0.15 + (3 - i) * 0.2) / 3) + 2 * e for i in range(3))
    assert promise.value == pytest.approx(expected)
    assert promise.order == pytest.approx(3 * 0.3 * np.sqrt(e) / 0.2)


@pytest.mark.parametrize(
    ("form", "rate"),
    [
        ({"bound": VCBound(3)}, 0.5),
        ({"bound": RademacherBound(alpha=0.3)}, 0.3),
        ({"bound": RademacherBound(alpha=2.0)}, 0.5),
        ({"bound": VCBound(3), "kappa": 0.3}, 0.25),
        ({"bound": RademacherBound(alpha=0.3), "kappa": 0.3}, 0.15),
        ({"bound": VCBound(3), "resolution": 1e-3}, 0.0),
        ({"bound": own}, None),
    ],
)
def test_rates(form, rate):
    p = problem(**form)
    for promise in (g.optimistic, g.uncoupled, lambda p, n: g.epsilon_greedy(p, 0.3, n)):
        assert promise(p, 1000).rate == rate
        if rate is not None:
            (far, a), (further, b) = ((promise(p, 10**k).value, promise(p, 10**k).order) for k in (40, 44))
            assert np.log10(far / further) / 4 == pytest.approx(rate, abs=0.02)
            assert np.log10(a / b) / 4 == pytest.approx(rate, abs=0.02)


@pytest.mark.parametrize("form", [{"C": 2.0}, {"C": 2.0, "resolution": 0.01}, {"kappa": 0.3}])
@pytest.mark.parametrize("xi", [0.5, 0.8])
def test_a_promise_names_the_rule_that_has_the_terms_it_assumes(form, xi):
    bound = VCBound(d=4, delta=0.1)
    p = g.Problem(groups=2, pi_min=0.2, bound=bound, xi=xi, **form)
    named = parse_strategy(g.optimistic(p, 1000).rule)[1]
    assert named == eh.Optimistic.theoretical(bound, xi=xi, **form)
    # the term of the rule is what the assumption allows the risk to move by, over the share
    n = np.array([3000, 7000])
    standing = Standing(
        groups=("u", "v"), counts=n, pending=0 * n, validated=n, pending_validation=0 * n, loss_sum=0.0 * n,
        accuracies=np.full((2, 20), np.nan), trend=np.zeros(2), available=n > 0, starting=np.array(False),
    )  # fmt: skip
    rho = float(np.array([0.3, 0.7]) @ bound(n, groups=2))
    moved = float(p.coupling(rho))
    assert named.score_terms(standing)["coupling"] == pytest.approx(moved / np.array([0.3, 0.7]))
    two = parse_strategy(g.uncoupled(p, 1000).rule)[1]
    assert two == eh.Optimistic(bound=bound, xi=xi)
    assert parse_strategy(g.epsilon_greedy(p, 0.2, 1000).rule)[1] == eh.EpsilonGreedy(0.2, explore="uniform")
    assert parse_strategy(g.epsilon_greedy(p, 0.2, 1000, shares=[0.6, 0.4]).rule)[1] == eh.EpsilonGreedy(0.2)


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


@given(st.floats(0.05, 0.95), st.floats(0.01, 0.99), st.floats(0.01, 0.99), st.integers(10**4, 10**9))
@settings(max_examples=40)
def test_theorem_2_with_population_shares(first, part, slack, labels):
    """Every group explored at ε·p(z): spare = min π* − ε·p, N_q = n·(spare − β·q)·q(1−β), q = ε·min p."""
    fair, shares = np.array([0.2, 0.3, 0.5]), np.array([first, (1 - first) * 0.4, (1 - first) * 0.6])
    epsilon = part * min(1.0, (fair / shares).min())
    q, spare = epsilon * shares.min(), (fair - epsilon * shares).min()
    beta = slack * min(1, spare / q)
    promise = g.epsilon_greedy(problem(fair=fair), epsilon, labels, beta, shares=shares)
    n_q = labels // 2 * (spare - beta * q) * q * (1 - beta)
    expected = 3 * 4 * (1 + 1.5 / (q * (1 - beta))) * max(n_q, 1) ** -0.5
    assert promise.value == pytest.approx(expected, rel=1e-9)
    # where only π_min is known, the promise is a weaker one or none
    if problem().pi_min > epsilon * shares.max() + 1e-9 and beta < min(1, (0.2 - epsilon * shares.max()) / q):
        assert g.epsilon_greedy(problem(), epsilon, labels, beta, shares=shares).value >= promise.value * (1 - 1e-12)


def test_uniform_shares_are_uniform_exploration():
    equal = g.epsilon_greedy(problem(), 0.3, 10**6, shares=[1 / 3] * 3)
    named = g.epsilon_greedy(problem(), 0.3, 10**6)
    assert equal.value == pytest.approx(named.value)
    assert (named.rule, equal.rule) == ("epsilon-greedy:epsilon=0.3,explore=uniform", "epsilon-greedy:epsilon=0.3")


def test_exploring_rounds_stay_within_the_spread_by_simulation():
    """Ω₃ of the proof for population shares: |N_z(t) − ε·p(z)·t| ≤ √(t·log(mπ²t²/(3δ))/2), all t and z, 1 − δ of runs."""
    rng, epsilon, shares, t = np.random.default_rng(0), 0.4, np.array([0.1, 0.3, 0.6]), np.arange(1, 2001)
    allowed = np.sqrt(t * np.log(3 * np.pi**2 * t**2 / (3 * 0.05)) / 2)
    missed = 0
    for _ in range(300):
        drawn = np.searchsorted(np.cumsum(epsilon * shares), rng.random(len(t)))
        counts = np.cumsum(drawn[:, None] == np.arange(3), axis=0)
        missed += bool((np.abs(counts - epsilon * shares * t[:, None]) > allowed[:, None]).any())
    assert missed <= 0.05 * 300


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
        ({"C": None}, "give one of them"),
        ({"C": 1.0, "kappa": 0.1}, "give one of them"),
        ({"kappa": 0.1, "resolution": 0.1}, "belongs to C"),
        ({"fair": [0.2, 0.8]}, "3 shares"),
        ({"fair": [0.3, 0.3, 0.4]}, "smallest share of fair"),
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
        (lambda: g.epsilon_greedy(problem(), 0.3, 1000, shares=[0.7, 0.2, 0.1]), "give `fair`"),
        (lambda: g.epsilon_greedy(problem(), 0.3, 1000, shares=[0.7, 0.7, -0.4]), "sum to 1"),
        (lambda: g.epsilon_greedy(problem(), 0.3, 1000, shares=[0.5, 0.5, 0.0]), "without exploring"),
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

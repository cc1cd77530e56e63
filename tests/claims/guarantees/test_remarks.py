"""What the paper says in passing: orders, the two-term form, A_opt beside ε-greedy, the greedy rule's bound."""

from dataclasses import replace

import mpmath as mp
import numpy as np
import pytest

import evenhand.claims.guarantees as g
from evenhand.claims.bounds import RademacherBound, VCBound
from evenhand.sources.synthetic.model1 import SyntheticModel1

I = SyntheticModel1.instance("I")
KNOWN = g.Problem(groups=2, pi_min=0.2, bound=VCBound(3), C=1.0, gap=I.gap, epsilon0=0.5)


def own(n):
    return n**-0.5


@pytest.mark.parametrize(
    ("form", "pi_power", "n_power"),
    [
        ({"bound": VCBound(3), "C": 2.0}, 1.5, 0.5),
        ({"bound": RademacherBound(alpha=0.3), "C": 2.0}, 1.3, 0.3),
        ({"bound": RademacherBound(alpha=0.8), "C": 2.0}, 1.5, 0.5),
        ({"bound": VCBound(3), "kappa": 0.4}, 1.25, 0.25),
    ],
)
def test_the_order_of_remark_1_has_the_powers_the_promise_has(form, pi_power, n_power):
    found = [g.order_of(g.Problem(groups=2, pi_min=share, **form), 10**36) for share in (1e-3, 1e-6)]
    assert [(o.pi_power, o.n_power) for o in found] == [pytest.approx((pi_power, n_power))] * 2
    promised = [g.optimistic(g.Problem(groups=2, pi_min=share, **form), 10**36).value for share in (1e-3, 1e-6)]
    assert np.log10(promised[1] / promised[0]) / 3 == pytest.approx(pi_power, abs=0.03)
    assert np.log10(found[1].value / found[0].value) / 3 == pytest.approx(pi_power)
    more = g.order_of(g.Problem(groups=2, pi_min=1e-3, **form), 10**39)
    assert np.log10(found[0].value / more.value) / 3 == pytest.approx(n_power)


def test_the_order_of_remark_1_as_a_number():
    found = g.order_of(replace(KNOWN, C=2.0), 2000)
    assert found.value == pytest.approx(float(2 * 2 / mp.mpf("0.2") ** 1.5 * mp.sqrt(mp.mpf(3) / 1000)))
    assert found.hidden == pytest.approx(g.optimistic(replace(KNOWN, C=2.0), 2000).value / found.value)
    assert found.form == "m·C·π_min^−1.5·(d/n)^0.5"
    assert g.order_of(replace(KNOWN, bound=own), 2000) is None


def test_the_paper_is_right_about_the_bounds_and_not_about_the_budgets():
    found = g.compare(KNOWN, 10**9, target=0.05)
    assert found.optimistic.value < found.exploring.value
    assert found.tighter == KNOWN.rule
    assert found.exploring.labels < found.optimistic.labels / 10**6
    assert found.cheaper == found.exploring.rule
    assert found.optimistic.labels == g.labels_for(KNOWN, 0.05)
    assert found.exploring.labels == g.epsilon_greedy_labels_for(KNOWN, found.epsilon, 0.05, found.beta)


def test_no_epsilon_on_a_grid_needs_fewer_labels():
    found = g.compare(KNOWN, 1000, target=0.1)
    for epsilon in np.linspace(0.02, 0.39, 20):
        assert g.epsilon_greedy_labels_for(KNOWN, epsilon, 0.1) >= 0.95 * found.exploring.labels


def test_where_no_budget_is_enough_the_smallest_bound_is_compared():
    found = g.compare(replace(KNOWN, C=4.0, resolution=0.01), 10**9, target=0.01)
    assert found.optimistic.labels is found.exploring.labels is found.cheaper is None
    p = replace(KNOWN, C=4.0, resolution=0.01)
    others = [g.epsilon_greedy(p, epsilon, 10**9).value for epsilon in np.linspace(0.02, 0.38, 10)]
    assert found.exploring.value <= min(others)


@pytest.mark.parametrize("pi_min", [0.05, 0.2, 0.45])
@pytest.mark.parametrize("part", [0.2, 0.5, 0.9])
def test_at_one_budget_the_bound_of_a_opt_is_the_smaller(pi_min, part):
    p = g.Problem(groups=2, pi_min=pi_min, bound=own, C=1.0)
    found = g.compare(p, 10**8, epsilon=part * 2 * pi_min)
    assert found.optimistic.examples > found.exploring.examples
    assert found.tighter == p.rule
    assert "`gap` is not known" in str(found)


def first_phase(t, pi_min, C, xi, e):
    """The display of the appendix, with the 2e that its fourth line has and its fifth drops."""
    t = mp.mpf(t)
    return (2 + 2 * C / mp.mpf(pi_min) + 2 * C * t ** (1 - xi)) * e(t**xi)


@pytest.mark.parametrize("xi", [0.5, 0.7, 0.9])
def test_first_phase_of_the_two_term_form(xi):
    p = g.Problem(groups=2, pi_min=0.2, bound=own, C=1.5, xi=xi)
    expected = first_phase(0.2 * 5000, 0.2, 1.5, xi, lambda n: n ** mp.mpf(-0.5))
    assert g.first_phase(p, 10_000) == pytest.approx(float(expected))


@pytest.mark.parametrize(("form", "xi", "falls"), [({"C": 1.0}, 0.7, True), ({"C": 1.0}, 0.6, False),
                                                   ({"kappa": 1.0}, 0.75, False), ({"kappa": 1.0}, 0.85, True),
                                                   ({"C": 1.0, "resolution": 0.1}, 0.9, False)])  # fmt: skip
def test_the_first_phase_vanishes_just_where_the_coupling_term_may_go(form, xi, falls):
    p = g.Problem(groups=2, pi_min=0.2, bound=own, xi=xi, **form)
    assert (g.first_phase(p, 10**40) < g.first_phase(p, 10**30)) == falls
    verdict = g.two_terms(p.deviation, xi, square_root="kappa" in form, resolution=p.resolution)
    assert verdict.covered == falls
    assert ("at any ξ" in str(verdict)) == ("resolution" in form)
    assert (g.uncoupled_labels_for(replace(p, gap=1.0), 50.0) is not None) == falls


def test_two_term_promise_by_brute_force():
    p = g.Problem(groups=2, pi_min=0.3, bound=own, C=0.5, xi=0.9, A=0.2, gap=0.9, epsilon0=0.5)
    found = g.uncoupled(p, 10**8)
    shares = [0.3, 0.25, 0.2]  # A_0, A_1, A_2
    e = (0.2 * 5e7 * 0.3 / 0.4) ** -0.5
    assert found.value == pytest.approx(sum(2 * e + 2 * 0.5 * e * (1 / shares[i] + 1 / shares[i + 1]) for i in (0, 1)))
    # phase i needs the worst of the phases' sums over all later times to be below the gap
    times = np.geomspace(1, 1e12, 200_001)
    e = np.maximum(times**0.9, 1) ** -0.5
    totals = np.cumsum([2 * e + e * (1 / a + times**0.1) for a in shares[:2]], axis=0)
    for i, total in enumerate(totals):
        worst = np.maximum.accumulate(total[::-1])[::-1]
        expected = times[np.argmax(worst <= 0.9)] / 0.3
        # the phases are evaluated on a grid of a hundred times a decade, on the safe side
        assert expected <= found.conditions[3 + i].labels / 2 * 1.001
        assert found.conditions[3 + i].labels / 2 <= 1.06 * expected


def test_abernethys_bound():
    assert g.abernethy([40, 60], d=3, delta=0.1) == pytest.approx(float(mp.sqrt(2 * 3 * mp.log(20) / 40)))
    for call, message in (
        (lambda: g.abernethy([0, 3], d=3), "at least 1 example"),
        (lambda: g.abernethy([3], d=0), "VC dimension"),
        (lambda: g.abernethy([3], d=1, delta=0.0), "delta"),
    ):
        with pytest.raises(ValueError, match=message):
            call()

"""What is known of a problem: gaps, floors, pairs of instances, phases, Assumption 3 where risks are known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize
from scipy.stats import norm

import evenhand.claims.guarantees as g
from evenhand.claims.bounds import RademacherBound, VCBound
from evenhand.sources.synthetic.model1 import SyntheticModel1

I, II = SyntheticModel1.instance("I"), SyntheticModel1.instance("II")


@given(st.data(), st.lists(st.integers(0, 50), min_size=2, max_size=6).filter(any))
def test_lemma_3_whoever_alone_is_drawn_has_a_group_whose_share_grows(data, before):
    groups = st.sampled_from(range(len(before)))
    drawn = data.draw(
        st.lists(groups, min_size=1, max_size=60).filter(lambda own: sum(before[z] for z in set(own)) < sum(before))
    )
    after = np.array(before) + np.bincount(drawn, minlength=len(before))
    grown = after * sum(before) > np.array(before) * after.sum()  # whole numbers: no rounding
    assert grown[sorted(set(drawn))].any()


def test_example_1_of_the_paper():
    order = [1, 2, 3, 4, 1, 1, 1, 1, 1, 1, 4, 1, 1, 2, 2, 2, 3, 3, 3, 4]
    found = g.phases([f"a{k}" for k in order], dict.fromkeys(["a1", "a2", "a3", "a4"], 0.25))
    assert [phase.end for phase in found] == [13, 19, 20]
    assert [phase.group for phase in found] == ["a1", "a3", "a4"]
    assert [sorted(phase.grown) for phase in found] == [["a1"], ["a2", "a3"], ["a4"]]
    assert len(found) - 1 == 2


def test_no_phase_where_the_run_ends_on_the_fair_mixture():
    assert g.phases("uvuv", {"u": 0.5, "v": 0.5}) == ()
    with pytest.raises(ValueError, match="'w'"):
        g.phases("uw", {"u": 0.5, "v": 0.5})


@pytest.mark.parametrize("radius", [0.01, 0.1, 0.25])
def test_gap_by_brute_force(radius):
    shares = np.linspace(0, 1, 1001)
    outside = shares[np.abs(shares - 0.2) >= radius - 1e-9]
    expected = I.excess_risk(np.stack([outside, 1 - outside], axis=-1)).min()
    assert I.gap(radius) == pytest.approx(expected, abs=1e-9)


def test_gap_of_three_groups_by_brute_force():
    model = SyntheticModel1(
        {
            "a": {0: (-1.0, 0.0), 1: (1.0, 0.0)},
            "b": {0: (0.0, -1.2), 1: (0.0, 1.2)},
            "c": {0: (0.8, 0.8), 1: (-0.4, 0.1)},
        }
    )
    fair, step = model.pi_star(), 0.04
    grid = np.array([(i, j, 25 - i - j) for i in range(26) for j in range(26 - i)]) * step
    outside = grid[np.abs(grid - fair).max(axis=1) > 0.1]
    assert model.gap(0.1) == pytest.approx(model.excess_risk(outside).min(), abs=6e-3)
    assert model.gap(0.1) <= model.excess_risk(outside).min() + 1e-9


def test_gap_beyond_the_simplex_is_infinite():
    assert I.gap(0.9) == float("inf")


def test_over_exploring_is_stuck():
    stuck = g.exploration(0.5, I.pi_star())
    assert not stuck.converges
    assert stuck.stuck == 0
    assert stuck.largest == pytest.approx(0.4)
    assert stuck.share == pytest.approx(0.225)
    assert stuck.last_share == pytest.approx(0.25)
    # independent: error of f_π on v at these shares, by direct minimisation of the mixture's log loss
    for share, floor in ((stuck.share, stuck.floor(I)), (stuck.last_share, stuck.last_floor(I))):
        pi = np.array([share, 1 - share])
        w = optimize.minimize(lambda w, pi=pi: pi @ I.group_risk(w, 0.0, "log"), [1.0, 1.0], tol=1e-12).x
        error = norm.cdf(-(w @ [1, 1]) / np.linalg.norm(w))
        assert floor == pytest.approx(error - I.worst_risk(I.pi_star()), abs=1e-6)
    assert stuck.last_floor(I) == pytest.approx(0.00534, abs=5e-6)


def test_tau0_by_brute_force():
    t = np.arange(1, 200_000, dtype=float)
    width = np.sqrt(np.log(2 * np.pi**2 * t**2 / (3 * 0.05)) / (2 * t))
    assert g.exploration(0.5, [0.2, 0.8]).tau0 == t[width <= (0.5 - 0.4) / 4][0]


def test_exploring_little_enough_converges():
    calm = g.exploration(0.3, I.pi_star())
    assert calm.converges
    assert calm.stuck is None
    assert calm.floor(I) == calm.last_floor(I) == 0
    assert not g.exploration(0.4, [0.2, 0.8]).converges
    assert not g.exploration(0.0, [0.2, 0.8]).converges


def test_population_shares_decide_who_is_over_explored():
    fair = np.array([0.2, 0.8])
    assert g.exploration(0.5, fair, shares=[0.1, 0.9]).converges
    assert g.exploration(0.5, fair, shares=[0.9, 0.1]).share == pytest.approx((0.2 + 0.45) / 2)


def test_lower_bound():
    assert g.lower_bound(400, 0.7) == pytest.approx(norm.pdf(np.sqrt(2) * 0.7) / (16 * 20))
    harder_u, harder_v = g.lower_bound_pair(400, 0.7)
    assert harder_u.mu[0, 1].tolist() == [0.7, -0.7]
    assert harder_u.mu[1, 1] == pytest.approx([0.7 + 1 / np.sqrt(800)] * 2)
    np.testing.assert_allclose(harder_u.pi_star(), harder_v.pi_star()[::-1])


def test_lower_bound_holds_for_every_fixed_mixture():
    # a rule that ignores the data is a rule: the worse instance of the pair costs it at least the bound
    for labels in (10, 100, 10_000):
        shares = np.linspace(0, 1, 201)
        pi = np.stack([shares, 1 - shares], axis=-1)
        worse = np.max([q.excess_risk(pi) for q in g.lower_bound_pair(labels, 1.0)], axis=0)
        assert worse.min() >= g.lower_bound(labels, 1.0)


@pytest.mark.parametrize(
    ("bound", "xi", "covered"),
    [
        (VCBound(3), 0.5, False),
        (VCBound(3), 2 / 3, False),
        (VCBound(3), 0.7, True),
        (RademacherBound(alpha=0.25), 0.79, False),
        (RademacherBound(alpha=0.25), 0.81, True),
        (RademacherBound(complexity=lambda n: n**-0.25), 0.7, False),
        (RademacherBound(complexity=lambda n: n**-0.25), 0.85, True),
    ],
)
def test_when_the_coupling_term_may_go(bound, xi, covered):
    verdict = g.two_terms(bound, xi)
    assert verdict.covered is covered
    assert verdict.threshold >= 2 / 3
    assert ("practical" in str(verdict)) is not covered
    n = np.array([1e30, 1e40])
    ratio = bound(n**xi, groups=1) / n ** (xi - 1)
    assert (ratio[1] < ratio[0]) == covered


def test_assumption_3_needs_an_ever_larger_constant():
    shifts = np.array([0.1, 0.03, 0.01, 0.003, 0.001])
    ratios = g.coupling_ratio(I, [0.2, 0.8], np.stack([shifts, -shifts], axis=-1))
    np.testing.assert_allclose(ratios[:, 0].round(), [3, 11, 32, 107, 320])


def test_square_root_form_holds_near_the_optimum():
    pi = np.array([0.35, 0.65])
    kappa = g.square_root_constant(I, pi)
    coef, intercept = I.f_pi(pi)
    rng = np.random.default_rng(0)
    best = 0.0
    for step in rng.normal(size=(400, 3)) * 1e-3:
        moved = I.group_risk(coef + step[:2], intercept + step[2], "log") - I.group_risk(coef, intercept, "log")
        best = max(best, np.max(pi * np.abs(moved)) / np.sqrt(moved @ pi))
    assert best <= kappa * 1.01
    assert best >= kappa * 0.9

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenhand.claims.bounds as b


def vc(n, d, m, delta, sides):
    n, d = mpmath.mpf(n), mpmath.mpf(d)
    logs = 2 * d * mpmath.log(2 * mpmath.e * n / d) + 2 * mpmath.log(sides * n**2 * mpmath.pi**2 * m / (3 * delta))
    return 2 * mpmath.sqrt(logs / n)


@pytest.mark.parametrize(("two_sided", "sides"), [(True, 4), (False, 2)])
@pytest.mark.parametrize("n", [2, 50, 1_000, 123_456, 10**9])
def test_vc_formula(n, two_sided, sides):
    bound = b.VCBound(d=3, delta=0.05, two_sided=two_sided)
    assert bound(n, groups=5) == pytest.approx(min(1, float(vc(n, 3, 5, 0.05, sides))), rel=1e-12)


@pytest.mark.parametrize(("two_sided", "sides"), [(True, 4), (False, 2)])
@pytest.mark.parametrize("d", [1, 3, 20])
def test_vc_bound_spends_half_of_delta_over_all_groups_and_counts(d, two_sided, sides):
    """Vapnik's inequality at e(N), sides·(2eN/d)^d·exp(−N·e²/8), is 3δ/(π²N²m): summed over N and m groups, δ/2."""
    m, delta, bound = 4, 0.05, b.VCBound(d=d, delta=0.05, two_sided=two_sided)
    for n in (10**4, 10**5, 10**8):
        e = mpmath.mpf(float(bound(n, groups=m)))
        assert e < 1
        chance = sides * (2 * mpmath.e * n / mpmath.mpf(d)) ** d * mpmath.exp(-n * e**2 / 8)
        assert float(chance) == pytest.approx(float(3 * delta / (mpmath.pi**2 * n**2 * m)), rel=1e-8)
    everything = m * mpmath.nsum(lambda n: 3 * delta / (mpmath.pi**2 * n**2 * m), [1, mpmath.inf])
    assert float(everything) == pytest.approx(delta / 2)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_growth_function_is_below_its_closed_form(d):
    """Sauer: at most Σ_{i≤d} C(2N, i) patterns on 2N points, which is at most (2eN/d)^d from N = d/2 on."""
    for n in range(math.ceil(d / 2), 200):
        assert sum(math.comb(2 * n, i) for i in range(d + 1)) <= (2 * math.e * n / d) ** d * (1 + 1e-12)


def deviations(n, runs, rng):
    """sup over intervals of P − P_N, and of P_N − P, of uniform points: a class of VC dimension 2, exactly."""
    x = np.sort(rng.random((runs, n)), axis=1)
    above = np.max(np.arange(1, n + 1) / n - x, axis=1)
    below = np.max(x - np.arange(n) / n, axis=1)
    # an interval takes the largest rise and the largest fall of F_N − F; by symmetry both signs have this supremum
    return above + below


def test_both_sides_of_vapniks_inequality_by_simulation():
    """Each step of the two-sided bound: ghost sample, then a swap of pairs with every pattern bounded on its own."""
    rng, n, runs = np.random.default_rng(0), 60, 4000
    patterns = 1 + 2 * n + math.comb(2 * n, 2)  # intervals on 2N points
    true = deviations(n, runs, rng)
    # intervals on two samples: largest minus smallest partial sum of the signs of the merged order
    signs = rng.permuted(np.tile(np.repeat([1, -1], n), (runs, 1)), axis=1)
    walk = np.concatenate([np.zeros((runs, 1)), np.cumsum(signs, axis=1)], axis=1)
    ghost = (walk.max(axis=1) - walk.min(axis=1)) / n
    for epsilon in (0.19, 0.22, 0.25, 0.28):
        assert n * epsilon**2 >= 2
        left, middle = np.mean(true > epsilon), np.mean(ghost > epsilon / 2)
        assert 0 < left <= 2 * middle
        assert middle <= 2 * patterns * math.exp(-n * epsilon**2 / 8)


def test_a_single_pattern_obeys_the_swap_bound_exactly():
    """P(|Σ σ_i a_i| > Nε/2) ≤ 2·exp(−Nε²/8) for a in {−1, 0, 1}^N, over all 2^N signs."""
    n = 12
    signs = 1 - 2 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
    for moved in (4, 8, 12):
        sums = np.abs(signs[:, :moved].sum(axis=1))
        for epsilon in (0.2, 0.5, 0.8, 1.2):
            one_sided = np.mean(signs[:, :moved].sum(axis=1) > n * epsilon / 2)
            assert one_sided <= math.exp(-n * epsilon**2 / 8)
            assert np.mean(sums > n * epsilon / 2) <= 2 * math.exp(-n * epsilon**2 / 8)


def test_the_printed_form_is_the_smaller_and_a_factor_in_front_far_larger():
    n = np.geomspace(1e4, 1e9, 12)
    two, one = b.VCBound(3)(n, groups=2), b.VCBound(3, two_sided=False)(n, groups=2)
    assert (one < two).all()
    assert (two < 1.02 * one).all()


def test_rademacher_formula():
    n, m, delta = mpmath.mpf(500), 4, mpmath.mpf("0.1")
    expected = 2 * 0.3 * n ** mpmath.mpf(-0.4) + mpmath.sqrt(mpmath.log(n**2 * mpmath.pi**2 * m / (3 * delta)) / n)
    assert b.RademacherBound(B=0.3, alpha=0.4, delta=0.1)(500, groups=4) == pytest.approx(float(expected), rel=1e-12)
    # McDiarmid in both directions, at the share of δ/2 a count of a group may use, asks for less
    asked = 2 * 0.3 * n ** mpmath.mpf(-0.4) + mpmath.sqrt(
        mpmath.log(2 * n**2 * mpmath.pi**2 * m / (3 * delta)) / (2 * n)
    )
    assert asked < expected
    own = b.RademacherBound(complexity=lambda n: 0.3 * n**-0.4, delta=0.1)
    assert own(500, groups=4) == pytest.approx(float(expected), rel=1e-12)


@given(
    st.integers(1, 400),
    st.floats(1e-6, 0.5),
    st.integers(1, 300),
    st.booleans(),
    st.lists(st.floats(0, 1e12), min_size=2, max_size=50),
)
def test_never_grows_and_stays_in_the_unit_interval(d, delta, m, two_sided, counts):
    n = np.sort(counts)
    for bound in (b.VCBound(d, delta, two_sided), b.RademacherBound(B=d / 10, alpha=0.5, delta=delta)):
        values = bound(n, groups=m)
        assert ((values > 0) & (values <= 1)).all()
        assert (np.diff(values) <= 1e-12).all()


def test_says_nothing_below_half_the_dimension():
    np.testing.assert_array_equal(b.VCBound(d=100)([0, 1, 49]), 1)


def test_more_groups_never_help():
    n = np.geomspace(1e3, 1e9, 20)
    assert (b.VCBound(3)(n, groups=200) >= b.VCBound(3)(n, groups=2)).all()


def test_groups_default_to_the_last_axis():
    n = np.full((7, 5), 10**6)
    np.testing.assert_array_equal(b.VCBound(3)(n), b.VCBound(3)(n, groups=5))
    assert b.VCBound(3)(10**6) == b.VCBound(3)(10**6, groups=1)


def test_a_list_gives_one_bound_per_group():
    bound = b.as_bound([b.VCBound(3), lambda n: n**-0.5])
    n = np.array([[10**6, 100], [10**8, 400]])
    expected = np.stack([b.VCBound(3)(n[:, 0], groups=2), n[:, 1] ** -0.5], axis=1)
    np.testing.assert_allclose(bound(n, groups=2), expected)
    with pytest.raises(ValueError, match="one bound per group"):
        bound(np.ones((4, 3)))


def test_own_function_of_single_numbers_works():
    bound = b.as_bound(lambda n: 1 / math.sqrt(n))
    np.testing.assert_allclose(bound([[4, 100]]), [[0.5, 0.1]])
    assert bound(0) == 1


def test_own_function_may_ask_for_the_number_of_groups():
    bound = b.as_bound(lambda n, groups: groups / n)
    np.testing.assert_allclose(bound([10.0, 20.0, 30.0]), [0.3, 0.15, 0.1])


@pytest.mark.parametrize(
    ("function", "where"),
    [
        (lambda n: np.log(n), "N = 1 to .* at N = 2"),
        (lambda n: np.where(n < 37, 1 / n, 1.0), "N = 36 to .* at N = 37"),
        (lambda n: 0.0 * n + 1e-3 * (n > 1e9), "N = "),
        (lambda n: 1 - n, "N = 2"),
        (lambda n: n * np.nan, "N = 1"),
    ],
)
def test_a_bound_that_grows_is_refused(function, where):
    with pytest.raises(ValueError, match=where):
        b.as_bound(function)


def test_a_complexity_that_grows_is_refused():
    with pytest.raises(ValueError, match="must not grow"):
        b.RademacherBound(complexity=lambda n: n**0.5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: b.VCBound(d=0), "d, the VC dimension"),
        (lambda: b.VCBound(d=3, delta=0.0), "delta"),
        (lambda: b.VCBound(d=3, delta=1.0), "delta"),
        (lambda: b.RademacherBound(B=-1.0), "B must"),
        (lambda: b.RademacherBound(alpha=0.0), "alpha must"),
        (lambda: b.VCBound(d=3)(10, groups=0), "groups must"),
        (lambda: b.as_bound("vc"), "a bound is"),
        (lambda: b.as_bound([]), "a bound is"),
    ],
)
def test_bad_settings(make, message):
    with pytest.raises(ValueError, match=message):
        make()

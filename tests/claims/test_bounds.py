import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenhand.claims.bounds as b


def vc(n, d, m, delta, factor):
    n, d = mpmath.mpf(n), mpmath.mpf(d)
    logs = 2 * d * mpmath.log(2 * mpmath.e * n / d) + 2 * mpmath.log(2 * n**2 * mpmath.pi**2 * m / (3 * delta))
    return min(1, float(factor * mpmath.sqrt(logs / n)))


@pytest.mark.parametrize(("two_sided", "factor"), [(True, 4), (False, 2)])
@pytest.mark.parametrize("n", [2, 50, 1_000, 123_456, 10**9])
def test_vc_formula(n, two_sided, factor):
    bound = b.VCBound(d=3, delta=0.05, two_sided=two_sided)
    assert bound(n, groups=5) == pytest.approx(vc(n, 3, 5, 0.05, factor), rel=1e-12)


def test_rademacher_formula():
    n, m, delta = mpmath.mpf(500), 4, mpmath.mpf("0.1")
    expected = 2 * 0.3 * n ** mpmath.mpf(-0.4) + mpmath.sqrt(mpmath.log(n**2 * mpmath.pi**2 * m / (3 * delta)) / n)
    assert b.RademacherBound(B=0.3, alpha=0.4, delta=0.1)(500, groups=4) == pytest.approx(float(expected), rel=1e-12)
    own = b.RademacherBound(complexity=lambda n: 0.3 * n**-0.4, delta=0.1)
    assert own(500, groups=4) == pytest.approx(float(expected), rel=1e-12)


@given(
    st.integers(1, 400),
    st.floats(1e-6, 0.999),
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

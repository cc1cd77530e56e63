import mpmath
import pytest

from evenhand.claims.certificates import Evidence
from evenhand.claims.intervals import wilson
from evenhand.claims.planning import labels_for_width


def half_width(errors, n, delta):
    """Half of {p: ln B(S+½, n−S+½) − ln π − S ln p − (n−S) ln(1−p) < ln(1/δ)}, by root finding in mpmath."""
    s, n = mpmath.mpf(errors), mpmath.mpf(n)
    constant = mpmath.log(mpmath.beta(s + 0.5, n - s + 0.5)) - mpmath.log(mpmath.pi) - mpmath.log(1 / mpmath.mpf(delta))

    def over(p):
        return constant - s * mpmath.log(p) - (n - s) * mpmath.log(1 - p)

    low = mpmath.findroot(over, (mpmath.mpf(10) ** -12, s / n), solver="anderson") if s else 0
    return (mpmath.findroot(over, (s / n, 1 - mpmath.mpf(10) ** -12), solver="anderson") - low) / 2


@pytest.mark.parametrize(("error", "groups"), [(0.1, 1), (0.1, 4), (0.5, 1)])
def test_labels_until_the_first_certificate_is_so_narrow(error, groups):
    n = labels_for_width(0.05, error, groups=groups)
    delta = mpmath.mpf("0.05") / 2 / groups
    assert half_width(error * n, n, delta) <= 0.05 < half_width(error * (n - 1), n - 1, delta)


def test_the_certificate_is_as_narrow_as_planned():
    n = labels_for_width(0.05, 0.1, groups=2)
    evidence = Evidence(("u", "v"))
    evidence.add([0, 1] * n, [1.0, 1.0] * (n // 10) + [0.0, 0.0] * (n - n // 10))
    found = evidence.certificate()
    assert (found.high[0] - found.low[0]) / 2 == pytest.approx(0.05, abs=2e-3)


@pytest.mark.parametrize("error", [0.02, 0.3, 0.5])
def test_one_look_is_wilsons(error):
    n = labels_for_width(0.04, error, any_time=False)

    def half(size):
        low, high = wilson(error * size, size)
        return (high - low) / 2

    assert half(n) <= 0.04 < half(n - 1)


def test_goes_on_from_what_is_there():
    assert labels_for_width(0.05, errors=20, n=200) < labels_for_width(0.05, 0.1)
    assert labels_for_width(0.05, errors=1000, n=10_000) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: labels_for_width(0.0), "width"),
        (lambda: labels_for_width(0.1, 1.2), "error"),
        (lambda: labels_for_width(0.1, delta=0.0), "delta"),
        (lambda: labels_for_width(0.1, groups=0), "groups"),
        (lambda: labels_for_width(0.1, errors=3, n=2), "between 0 and n"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()

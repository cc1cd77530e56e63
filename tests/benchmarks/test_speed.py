"""Benchmarks run and tell what they measured; their times are never asserted."""

import json

import numpy as np
import pytest

from evenhand.sources.synthetic.model1 import SyntheticModel1
from speed.__main__ import main
from speed.cases import CASES, one_hot
from speed.growth import Curve, draw_curves
from speed.plain_loop import RULES, gaussian_draws, plain_loop
from speed.timing import Outcome, machine


@pytest.mark.parametrize("rule", RULES)
def test_plain_loop_leans_to_the_harder_group(rule):
    mu = SyntheticModel1.instance("I").mu
    counts = sum(plain_loop(gaussian_draws(mu, seed), 2, 2, 120, RULES[rule], seed) for seed in range(2))
    assert counts.sum() == 240
    assert counts.min() > 0


def test_one_hot_rows():
    X, y = one_hot(50)
    assert X.shape == (50, 108)
    assert (X.sum(axis=1) == 12).all()
    assert set(y.tolist()) == {0, 1}


@pytest.mark.parametrize("name", ["mann-kendall", "memory", "scoring"])
def test_quick_benchmarks(name):
    outcome = CASES[name](False)
    assert outcome.name == name
    assert outcome.ours > 0
    assert outcome.theirs > 0


def test_ratios():
    faster = Outcome("a", "work", "base", "round", 1.0, 30.0, 20)
    larger = Outcome("b", "work", "base", "bytes", 4.0, 1.0, 3.0)
    assert (faster.ratio, faster.reached) == (30.0, True)
    assert (larger.ratio, larger.reached) == (4.0, False)


def test_slope_and_picture(tmp_path):
    curve = Curve("rounds t", [10, 100, 1000], [1e-4, 1e-3, 1e-2])
    assert curve.slope == pytest.approx(1.0)
    draw_curves([curve, curve], tmp_path / "growth.svg")
    assert (tmp_path / "growth.svg").stat().st_size > 1000


def test_command_line(capsys):
    main(["--only", "mann-kendall", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["benchmarks"][0]["name"] == "mann-kendall"
    assert found["machine"].keys() == machine().keys()
    assert found["command"] == "python -m speed --only mann-kendall"
    assert np.isfinite(found["benchmarks"][0]["ratio"])
    main(["--only", "mann-kendall"])
    assert "× (target ≥ 100" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["--only", "speed"])

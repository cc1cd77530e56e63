"""Benchmarks run and tell what they measured; their times are never asserted."""

import json

import pytest
from benchmarks.speed.__main__ import main
from benchmarks.speed.cases import one_hot
from benchmarks.speed.growth import Curve
from benchmarks.speed.plain_loop import RULES, gaussian_draws, plain_loop
from benchmarks.speed.timing import Outcome

from evenhand.sources.synthetic.model1 import SyntheticModel1


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


def test_ratios_and_slopes():
    faster = Outcome("a", "work", "base", "round", 1.0, 30.0, 20)
    larger = Outcome("b", "work", "base", "bytes", 4.0, 1.0, 3.0)
    assert (faster.ratio, faster.reached) == (30.0, True)
    assert (larger.ratio, larger.reached) == (4.0, False)
    assert Curve("rounds t", [10, 100, 1000], [1e-4, 1e-3, 1e-2]).slope == pytest.approx(1.0)


def test_command_line(tmp_path, capsys):
    main(["--only", "mann-kendall", "memory", "scoring", "--json", str(tmp_path / "found.json")])
    found = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert [one["name"] for one in found["benchmarks"]] == ["mann-kendall", "memory", "scoring"]
    assert all(one["ours"] > 0 and one["theirs"] > 0 for one in found["benchmarks"])
    assert "(target ≥ 100" in capsys.readouterr().out

"""A simulation's report."""

from __future__ import annotations

from html import unescape

import evenhand as eh


def test_the_report_needs_nothing_else_and_has_the_summary_s_numbers() -> None:
    result = eh.simulate(
        eh.SyntheticModel1.instance("I"),
        {"A & B": eh.Optimistic(), "<uniform>": eh.Uniform()},
        budget=60,
        trials=4,
        seed=1,
    )
    text = unescape(result.report())
    assert "<script" not in text
    assert " src=" not in text
    assert text.count('class="chart"') == 2 * 3  # the worst group and two mixtures, each for a page and a telephone
    for label, found in result.summary()["strategies"].items():
        assert label in text
        worst = found["worst_group_accuracy"]
        assert f"{worst['mean']:.3f} ± {worst['sd']:.3f}" in text

"""A verdict can hold, fail and stay open; being unable to tell is not a proof."""

import json
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from typer.testing import CliRunner

from evenhand.cli import app
from evenhand.errors import InputError
from evenhand.experiments import german
from evenhand.experiments.catalogue import experiments
from evenhand.experiments.run import Options, reproduce
from evenhand.experiments.verdicts import (
    DOES_NOT_HOLD,
    FAMILY,
    HOLDS,
    LEVEL,
    NOT_TESTED,
    OPEN,
    Above,
    MoreOften,
    Test,
    Within,
    count,
    judge,
)  # fmt: skip


def sample(mean, n=100, sd=0.01):
    """Values whose mean and standard deviation are these."""
    values = np.random.default_rng(3).normal(size=n)
    return mean + sd * (values - values.mean()) / values.std(ddof=1)


def verdict(comparison, values, **given):
    return judge(Test("it is so", (comparison,)), {comparison.name: values}, **given).verdict


# the half width of the interval around 100 values with standard deviation 0.01
HALF = scipy.stats.t.ppf((1 + LEVEL) / 2, 99) * 0.001


@pytest.mark.parametrize(
    ("mean", "expected"),
    [(0.01, HOLDS), (1.01 * HALF, HOLDS), (0.99 * HALF, OPEN), (-0.99 * HALF, OPEN), (-1.01 * HALF, DOES_NOT_HOLD)],
)
def test_above_needs_the_whole_interval(mean, expected):
    assert verdict(Above("a − b"), sample(mean)) == expected


@pytest.mark.parametrize(
    ("mean", "expected"),
    [
        (0, HOLDS), (0.02 - 1.01 * HALF, HOLDS), (0.02 - 0.99 * HALF, OPEN), (0.02 + 0.99 * HALF, OPEN),
        (-0.02 - 1.01 * HALF, DOES_NOT_HOLD), (0.1, DOES_NOT_HOLD),
    ],
)  # fmt: skip
def test_within_needs_the_whole_interval_inside_the_margin(mean, expected):
    assert verdict(Within("a − b", 0.02), sample(mean)) == expected


def test_not_being_significant_is_not_being_alike():
    noisy = sample(0.0, n=10, sd=0.1)
    assert scipy.stats.ttest_1samp(noisy, 0).pvalue > 0.9
    assert verdict(Within("a − b", 0.02), noisy) == OPEN


@pytest.mark.parametrize(("one", "other", "expected"), [(7, 2, OPEN), (35, 10, HOLDS), (10, 35, DOES_NOT_HOLD)])
def test_how_often_by_the_trials_that_differ(one, other, expected):
    values = np.repeat([1.0, -1.0, 0.0], [one, other, 500 - one - other])
    assert verdict(MoreOften("I", "a", "b", "stuck"), values) == expected
    # McNemar's exact test at the same level
    significant = scipy.stats.binomtest(one, one + other).pvalue < 1 - LEVEL
    assert (expected != OPEN) == significant


def test_how_often_says_of_how_many_trials():
    test = Test("", (MoreOften("I", "a", "b", "stuck"),))
    said = judge(test, {"I: a stuck and b not": [1.0] * 35 + [-1.0] * 5 + [0.0] * 60}).evidence
    assert said.startswith("I: of the 40 trials in which just one of the two is stuck, a is it in 87.5 % [")
    assert judge(test, {"I: a stuck and b not": [0.0] * 9}).evidence.startswith("I: there is no trial")
    assert judge(test, {"I: a stuck and b not": [1.0] * 4}).evidence.endswith("a is it in 100.0 %")


def test_all_comparisons_have_to_hold_and_one_can_fail_the_claim():
    test = Test("both", (Above("a"), Above("b")))
    good, bad, unclear = sample(0.01), sample(-0.01), sample(0)
    assert judge(test, {"a": good, "b": good}).verdict == HOLDS
    assert judge(test, {"a": good, "b": unclear}).verdict == OPEN
    assert judge(test, {"a": bad, "b": unclear}).verdict == DOES_NOT_HOLD
    with pytest.raises(InputError, match="no values of 'b'"):
        judge(test, {"a": good})


def test_too_little_says_nothing():
    assert verdict(Above("a − b"), sample(1.0, n=4)) == NOT_TESTED
    assert verdict(Above("a − b"), np.array([1.0])) == NOT_TESTED
    assert verdict(Above("a − b"), sample(1.0), untested="stopped early") == NOT_TESTED
    test = Test("", (Above("a"),))
    assert judge(test, {"a": [1.0]}).evidence == "a: +1.0000 in the one trial"
    assert judge(test, {"a": [1.0, 2.0, 3.0]}).evidence == "a: +2.0000 in 3 trials"
    assert judge(test, {"a": sample(1.0)}, untested="short").evidence == "a: +1.0000 in 100 trials (short)"


def test_an_exact_number_is_its_own_interval():
    peak = Test("about 0.23", (Within("peak", 0.01, 0.23),), exact=True)
    assert [judge(peak, {"peak": [at]}).verdict for at in (0.2, 0.225)] == [DOES_NOT_HOLD, HOLDS]


def test_the_family_counts_every_comparison_and_covers():
    assert count([test for one in experiments().values() for test in one.tests]) <= FAMILY
    # a family of true nulls: all intervals cover in all but 5 % of the pages
    draws = np.random.default_rng(0).normal(size=(300, FAMILY, 20))
    half = scipy.stats.t.ppf((1 + LEVEL) / 2, 19) * draws.std(axis=-1, ddof=1) / np.sqrt(20)
    wrong = (np.abs(draws.mean(axis=-1)) > half).any(axis=1)
    assert wrong.mean() < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300)


def test_every_claim_has_a_test_and_names_are_its_own():
    for experiment in experiments().values():
        assert experiment.tests
        assert len({test.claim for test in experiment.tests}) == len(experiment.tests)
        for test in experiment.tests:
            assert len({one.name for one in test.comparisons}) == len(test.comparisons)


def test_verdicts_are_given_again_from_what_was_kept(tmp_path):
    run = CliRunner().invoke(app, ["reproduce", "fig-mixture-curve", "--out", str(tmp_path)])
    assert run.exit_code == 0
    again = CliRunner().invoke(app, ["reproduce", "--judge", "--out", str(tmp_path)])
    assert again.exit_code == 0
    assert "does not hold: In instance I the best share of u is about 0.23" in again.output
    others = ", ".join(name for name in experiments() if name != "fig-mixture-curve")
    assert again.stderr == f"not judged, because {tmp_path} has no values of them: {others}\n"
    kept = json.loads((tmp_path / "verdicts.json").read_text())
    kept["experiments"]["fig-mixture-curve"]["In instance I the best share of u is about 0.23"]["values"] = {
        "share of u at the peak, instance I": [0.23]
    }
    (tmp_path / "verdicts.json").write_text(json.dumps(kept))
    changed = CliRunner().invoke(app, ["reproduce", "--judge", "--out", str(tmp_path)])
    assert changed.exit_code == 1
    assert "results.json says: does not hold" in changed.output
    none = CliRunner().invoke(app, ["reproduce", "--judge", "--out", str(tmp_path / "none")])
    assert isinstance(none.exception, InputError)


CONVERGENCE = "With exploration the mean mixture ends near π*, and trials come closer to it"
ENDS = "A_opt, I: final share of u less π*"


def values_of(kept):
    return kept["experiments"]["fig-convergence"][CONVERGENCE]["values"]


def scaled(kept, results):
    values_of(kept)[ENDS] = [value * 1.01 + 1e-4 for value in values_of(kept)[ENDS]]


def dropped(kept, results):
    values_of(kept)[ENDS] = values_of(kept)[ENDS][::2]


def not_a_number(kept, results):
    values_of(kept)[ENDS][0] = float("nan")


def words(kept, results):
    values_of(kept)[ENDS][0] = "many"


def stuck_by_seven(kept, results):
    claim = kept["experiments"]["fig-convergence"]["Greedy gets stuck more often than A_opt, and ends further from π*"]
    claim["values"]["I: Greedy stuck and A_opt not"][0] = 7


def lost_claim(kept, results):
    kept["experiments"]["fig-convergence"].pop(CONVERGENCE)


def lost_experiment(kept, results):
    kept["experiments"].pop("fig-convergence")


def renamed(kept, results):
    claims = kept["experiments"]["fig-convergence"]
    claims["It looks good"] = claims[CONVERGENCE]


def invented(kept, results):
    kept["experiments"]["fig-nothing"] = {}


def other_numbers(kept, results):
    results["experiments"]["fig-convergence"]["claims"][0]["evidence"] += "!"


def other_test(kept, results):
    results["experiments"]["fig-convergence"]["claims"][0]["test"] = "it looks good"


def other_schema(kept, results):
    kept["schema"] = 99


def nothing_there(kept, results):
    results.clear()


def lost_everywhere(kept, results):
    lost_claim(kept, results)
    claims = results["experiments"]["fig-convergence"]["claims"]
    claims[:] = [claim for claim in claims if claim["text"] != CONVERGENCE]


def not_judged_by_hand(kept, results):
    kept["experiments"]["fig-convergence"][CONVERGENCE]["untested"] = "it was late"
    (claim,) = (one for one in results["experiments"]["fig-convergence"]["claims"] if one["text"] == CONVERGENCE)
    claim["verdict"] = NOT_TESTED


def other_level(kept, results):
    kept["level"] = 0.95


def other_family(kept, results):
    kept["comparisons_at_most"] = 10


def one_more_comparison(kept, results):
    values_of(kept)["how good it looks"] = values_of(kept)[ENDS]


def said_twice(kept, results):
    claims = results["experiments"]["fig-convergence"]["claims"]
    claims.insert(0, claims[0] | {"verdict": HOLDS})


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reproduced")
    given = ["reproduce", "fig-convergence", "--trials", "8", "--jobs", "1", "--out", str(folder)]
    assert CliRunner().invoke(app, given).exit_code == 0
    assert CliRunner().invoke(app, ["reproduce", "--judge", "--out", str(folder)]).exit_code == 0
    return {name: json.loads((folder / name).read_text()) for name in ("verdicts.json", "results.json")}


@pytest.mark.parametrize("change", [scaled, other_numbers, other_test])
def test_what_was_published_must_follow_from_the_values(change, reproduced, tmp_path):
    assert tampered(change, reproduced, tmp_path).exit_code == 1


@pytest.mark.parametrize(
    "change",
    [
        dropped, not_a_number, words, stuck_by_seven, lost_claim, lost_experiment, renamed, invented, other_schema, nothing_there,
    ],
)  # fmt: skip
def test_files_that_no_run_wrote_are_refused(change, reproduced, tmp_path):
    assert isinstance(tampered(change, reproduced, tmp_path).exception, InputError)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lost_everywhere, "lack the claim 'With exploration.*: run evenhand reproduce fig-convergence again"),
        (not_judged_by_hand, "because of 'it was late'; by its runs that should be 'nothing': run"),
        (other_level, "has level 0.95, the tests of this version have 0.99.*: run"),
        (other_family, "has comparisons_at_most 10, .*: run"),
        (said_twice, "has the claim 'With exploration.* twice: take one out"),
        (one_more_comparison, "has values of 'how good it looks', which the test .* does not use: take them out"),
    ],
)
def test_what_was_changed_in_both_files_is_noticed(change, message, reproduced, tmp_path):
    with pytest.raises(InputError, match=message):
        raise tampered(change, reproduced, tmp_path).exception


@pytest.fixture(scope="module")
def with_table(tmp_path_factory):
    """The final table beside the figure of one of its data sets, the other data sets being absent."""
    folder = tmp_path_factory.mktemp("table")
    known, data = experiments(), "German"
    small = replace(known["fig-german"].studies["german"], quick={"trials": 5, "budget": 40})
    table = replace(known["table-final"], studies={data: small})
    with pytest.MonkeyPatch.context() as patch:
        # its ceilings, over 500 splits, take longer than all the rest
        patch.setattr(german, "SPLITS", 1)
        reproduce([replace(known["fig-german"], studies={"german": small}), table], folder, Options())
    return {name: json.loads((folder / name).read_text()) for name in ("verdicts.json", "results.json")}


def table_values(kept):
    return kept["experiments"]["table-final"]["German: A_opt ends ahead of Uniform, at 400 labels"]["values"]


def same(kept, results):
    pass


def shifted_in_the_table(kept, results):
    table_values(kept)["A_opt − Uniform, 400 labels"][0] += 0.01


def of_other_trials(kept, results):
    results["experiments"]["table-final"]["studies"]["German"]["seed"] += 1


def test_the_table_has_the_values_of_the_figure(with_table, tmp_path):
    assert tampered(same, with_table, tmp_path).exit_code == 0
    with pytest.raises(
        InputError, match=r"of table-final .German. and of fig-german are of the same trials and differ"
    ):
        raise tampered(shifted_in_the_table, with_table, tmp_path).exception

    def both(kept, results):
        shifted_in_the_table(kept, results)
        of_other_trials(kept, results)

    # values of other trials may differ; that they do not give the published numbers is another matter
    assert tampered(both, with_table, tmp_path).exit_code == 1


def tampered(change, reproduced, folder):
    """What `--judge` says of files after a change."""
    kept, results = (json.loads(json.dumps(reproduced[name])) for name in ("verdicts.json", "results.json"))
    change(kept, results)
    (folder / "verdicts.json").write_text(json.dumps(kept))
    (folder / "results.json").write_text(json.dumps(results))
    return CliRunner().invoke(app, ["reproduce", "--judge", "--out", str(folder)])

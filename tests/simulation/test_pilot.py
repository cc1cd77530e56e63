import json
import re
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_rel
from typer.testing import CliRunner

import evenhand as eh
from evenhand import progress
from evenhand.cli import app
from evenhand.errors import InputError
from evenhand.simulation.pilot import Pilot, pilot
from evenhand.strategies import Strategy


def people(n: int = 1200, seed: int = 0, hard: bool = True) -> pd.DataFrame:
    """Five groups whose label one column tells, and one that needs all columns and is noisy; or labels that say nothing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 12))
    team = rng.choice([*"abcde", "z"], n)
    easy = X[:, 0] > 0
    needs_all = X[:, 1:] @ np.linspace(1, 2, 11) + rng.normal(size=n) > 0
    y = np.where(team == "z", needs_all, easy) if hard else rng.random(n) < 0.5
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(12)])
    # in the other groups the columns mean nothing, so that examples of theirs teach nothing about the last one
    frame.loc[team != "z", [f"x{j}" for j in range(1, 12)]] = 0.0
    return frame.assign(team=team, y=np.where(y, "yes", "no"))


def run(frame: pd.DataFrame, **settings: Any) -> Pilot:
    return pilot(frame, "y", "team", **{"budget": 200, "trials": 10, "batch": 2, "final": "plain"} | settings)


def test_a_rule_that_buys_something_is_recommended_with_its_interval() -> None:
    found = run(people())
    assert found.rule == "optimistic"
    assert found.gain is not None
    assert found.gain.low > 1
    assert found.sentence.startswith("With 200 labels, use optimistic: it is expected to buy the worst-off group +")
    assert found.sentence.endswith("points over uniform (95 % interval, corrected for 3 comparisons).")


def test_noise_is_called_noise() -> None:
    found = run(people(hard=False))
    assert (found.rule, found.gain) == ("uniform", None)
    assert found.sentence == "With 200 labels, all rules are within noise of each other here: use Uniform."


def test_a_rule_that_is_worse_than_uniform_is_said_to_be() -> None:
    frame = people(3000)
    frame["team"] = np.where(frame["team"] == "z", "z", "rest")
    frame = pd.concat([frame[frame["team"] == "rest"], frame[frame["team"] == "z"].head(200)])
    found = pilot(frame, "y", "team", budget=150, trials=10, final="plain", rules=["uncurated"])
    assert found.rule == "uniform"
    assert "no rule is better than Uniform beyond noise (uncurated over uniform: -" in found.sentence


def test_the_intervals_are_those_of_paired_t_tests_on_the_trials_of_one_simulation() -> None:
    found = run(people(), trials=12)
    table = eh.Table(people(), label="y", groups="team")
    rules = ["uniform", "uncurated", "optimistic"]
    final = eh.simulate(table, rules, budget=200, batch=2, trials=12, trace="none").final
    worst = final.groupby(["strategy", "trial"], observed=True)["final_test_accuracy"].min()
    assert found.trials == 12
    assert found.level == pytest.approx(1 - 0.05 / 3)
    for lead in found.leads:
        test = ttest_rel(100 * worst[lead.a], 100 * worst[lead.b])
        low, high = test.confidence_interval(1 - 0.05 / 3)
        assert (lead.low, lead.high) == pytest.approx((low, high))


def test_a_chosen_model_and_another_risk() -> None:
    found = run(people(400), budget=100, trials=2, final="chosen", risk="log")
    assert found.unit == "log loss"
    assert found.as_dict()["settings"]["final"] == "chosen"
    assert run(people(400), budget=100, trials=2, risk="fnr", positive="yes").unit == "points"


def test_a_table_too_small_for_the_budget_says_what_was_simulated() -> None:
    found = run(people(600), budget=5000, batch=50, trials=2)
    assert found.asked == 5000
    assert found.simulated < 0.36 * 600
    assert found.batch == round(50 * found.simulated / 5000)
    assert any(
        "5,000 labels cannot be tried on" in note and f"{found.simulated:,} were" in note for note in found.notes
    )
    assert "It cannot see that other rows differ" in found.notes[-1]
    assert any("tested on" in note for note in found.notes)


def test_rows_without_a_label_are_left_out(tmp_path: Path) -> None:
    frame = people(800)
    some = frame.assign(y=frame["y"].where(frame.index < 600))
    whole, part = run(frame.head(600), budget=100, trials=2), run(some, budget=100, trials=2)
    assert "200 of 800 rows have no label: the pilot is about the other 600" in part.notes
    some.to_csv(tmp_path / "t.csv", index=False)
    from_file = pilot(tmp_path / "t.csv", "y", "team", budget=100, trials=2, batch=2, final="plain")
    assert whole.leads == part.leads == from_file.leads
    with pytest.raises(InputError, match="no row has a label"):
        run(frame.assign(y=None))


@pytest.mark.parametrize(
    ("change", "settings", "match"),
    [
        ({"team": "a"}, {}, "one group only, 'a'"),
        ({}, {"trials": 1}, "2 or more, not 1"),
        ({}, {"test": None}, "needs test rows"),
        ({}, {"budget": 30}, "less than 10 labels for each of 6 groups"),
        ({"team": ["tiny"] * 3 + ["a", "b"] * 298 + ["a"]}, {}, "'tiny' has 3 labelled rows.*merge_below=10"),
        ({"y": "yes"}, {}, "always 'yes'"),
    ],
)
def test_what_a_pilot_says_nothing_about(change: dict[str, Any], settings: dict[str, Any], match: str) -> None:
    with pytest.raises(InputError, match=match):
        run(people(600).assign(**change), **settings)


def test_small_groups_can_be_merged_and_few_rows_are_refused() -> None:
    frame = people(600)
    frame.loc[:2, "team"], frame.loc[3:11, "team"] = "tiny", "small"
    assert "other" in run(frame, merge_below=10, trials=2).result.groups
    with pytest.raises(InputError, match="too few for a pilot of 6 groups"):
        run(people(130))


def test_ctrl_c_keeps_the_trials_that_are_done() -> None:
    class Impatient(eh.Greedy):
        calls = 0

        def __call__(self, *given: Any) -> Any:
            Impatient.calls += 1
            if Impatient.calls > 130:  # 50 rounds a block of trials: the first trial alone, then five
                raise KeyboardInterrupt
            return super().__call__(*given)

    rule: Strategy = Impatient()
    found = run(people(600), rules=[rule], budget=200, trials=20)
    assert found.result.interrupted
    assert found.trials == 6
    assert found.as_dict()["interrupted"]


def test_the_command_line(tmp_path: Path) -> None:
    people().to_parquet(tmp_path / "t.parquet")
    options = [
        "--label",
        "y",
        "--group",
        "team",
        "--budget",
        "200",
        "--batch",
        "2",
        "--trials",
        "5",
        "--final",
        "plain",
    ]

    def say(*words: str) -> Any:
        return CliRunner().invoke(app, ["plan", *words])

    shown = say("--pilot", str(tmp_path / "t.parquet"), *options)
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.strip().splitlines()[-1].startswith("With 200 labels, ")
    found = json.loads(say("--pilot", str(tmp_path / "t.parquet"), *options, "--json").stdout)
    assert found["sentence"] in shown.stdout
    assert [d["a"] + d["b"] for d in found["differences"]] == [
        "uncurateduniform",
        "optimisticuniform",
        "optimisticuncurated",
    ]
    for words, message in (
        (["--pilot", str(tmp_path / "t.parquet"), "--label", "y", "--group", "team"], "give --budget"),
        (["--pilot", str(tmp_path / "t.parquet"), *options, "--vc", "4"], "--vc has no effect with --pilot"),
        (["--groups", "2", "--pi-min", "0.2", "--seed", "3"], "--seed has no effect without --pilot TABLE"),
        (["--pilot", "synthetic2", "--budget", "200"], "'synthetic2' is no table"),
        (["--pilot", "nowhere.csv", "--budget", "200", "--label", "y", "--group", "team"], "there is no file"),
    ):
        refused = say(*words)
        assert isinstance(refused.exception, InputError | SystemExit)
        assert message in (refused.output + str(refused.exception))


def test_minutes_end_a_pilot_with_the_trials_there_are() -> None:
    found = run(people(600), trials=30, minutes=1e-6)
    assert found.trials == 2, "fewer compare nothing"
    assert "2 of 30 trials were run in 1e-06 minutes" in found.notes
    assert found.result.final.equals(run(people(600), trials=2).result.final), "the same trials as without"
    for minutes in (0, -1, "x", float("nan")):
        with pytest.raises(InputError, match="minutes"):
            run(people(600), minutes=minutes)
    assert run(people(600), trials=3, minutes=60).trials == 3


def test_a_long_pilot_says_where_it_is_also_in_a_pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Eleven minutes passed without a line: even the first trial may take one."""
    monkeypatch.setattr(progress, "EVERY", 0.02)
    run(people(600), trials=6, progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert any(line.startswith("trials: 0 of 6, ") for line in lines)
    assert any(re.match(r"trials: 1 of 6, \d+ s so far, about .* more", line) for line in lines)
    assert any(re.match(r"the first trial is done: all 6 take about \d+ s", line) for line in lines)
    threads = [thread for thread in threading.enumerate() if thread.name.startswith("progress")]
    for thread in threads:
        thread.join(1)
        assert not thread.is_alive()

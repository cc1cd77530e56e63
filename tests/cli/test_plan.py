import json
import subprocess
import sys

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from evenhand.claims.bounds import VCBound
from evenhand.claims.guarantees import Problem, epsilon_greedy, labels_for, optimistic
from evenhand.cli.plan import plan

app = typer.Typer()
app.command()(plan)


def run(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


def run_json(*arguments):
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_both_ways_agree_with_the_library():
    found = run_json("--groups", 4, "--pi-min", 0.1, "--C", 2, "--gap", 0.1, "--budget", 5000, "--promise", 0.5)
    problem = Problem(groups=4, pi_min=0.1, C=2.0, bound=VCBound(3), gap=0.1)
    assert found["promise"]["value"] == pytest.approx(optimistic(problem, 5000).value)
    assert found["budget"]["labels"] == labels_for(problem, 0.5)
    assert found["promise"]["vacuous"] is True
    assert found["promise"]["speaks_from"] > 5000
    assert {c["unknown"] for c in found["promise"]["conditions"]} == {None, "epsilon0"}


def test_a_known_source_needs_no_numbers():
    found = run_json("synthetic1:I", "--budget", 1000)
    assert found["inputs"]["pi_min"] == 0.2
    assert found["inputs"]["gap"] == "computed from the model"
    assert found["lower_bound"]["labels"] == 1000


def test_over_exploring_promises_nothing():
    found = run_json("synthetic1:I", "--epsilon", 0.5, "--budget", 1000, "--promise", 0.1)
    assert found["promise"] is None
    assert found["budget"]["labels"] is None
    assert found["exploration"]["last_floor"] == pytest.approx(0.00534, abs=1e-5)
    assert "over-explores" in run("synthetic1:I", "--epsilon", 0.5, "--budget", 1000).output


def test_other_bounds_and_rules():
    one = run_json("--groups", 2, "--pi-min", 0.3, "--alpha", 0.5, "--budget", 10**9, "--epsilon", 0.2)
    assert one["promise"]["rule"] == "epsilon-greedy:epsilon=0.2,explore=uniform"
    assert "RademacherBound" in one["inputs"]["bound"]
    printed = run_json("synthetic1:II", "--printed", "--budget", 10**9)["promise"]["value"]
    assert printed < run_json("synthetic1:II", "--budget", 10**9)["promise"]["value"]
    assert run_json("--groups", 1, "--pi-min", 1.0, "--promise", 0.5, "--epsilon", 0.5)["budget"]["labels"] > 0


def test_epsilon_greedy_by_the_population_beside_uniform():
    found = run_json("synthetic1:I", "--epsilon", 0.3, "--population", "0.3,0.7", "--budget", 10**9, "--promise", 0.5)
    assert found["population"]["promise"]["rule"] == "epsilon-greedy:epsilon=0.3"
    problem = Problem(groups=2, pi_min=0.2, fair=[0.2, 0.8], C=1.0, bound=VCBound(3))
    expected = epsilon_greedy(problem, 0.3, 10**9, shares=[0.3, 0.7]).value
    assert found["population"]["promise"]["value"] == pytest.approx(expected)
    assert found["promise"]["value"] == pytest.approx(epsilon_greedy(problem, 0.3, 10**9).value)
    stuck = run("--fair", "0.2,0.8", "--epsilon", 0.3, "--population", "0.9,0.1", "--budget", 1000).output
    assert "exploring by the population's shares, over-explores" in " ".join(stuck.split())


def test_remarks_are_printed_as_numbers():
    text = " ".join(run("synthetic1:I", "--budget", 1000, "--resolution", 0.01).output.split())
    found = run_json("synthetic1:I", "--budget", 1000, "--resolution", 0.01)["remarks"]
    assert found["order"]["value"] == pytest.approx(2 / 0.2**1.5 * (3 / 500) ** 0.5)
    assert found["greedy"]["at_the_fair_mixture"]["value"] == pytest.approx((6 * np.log(40) / 100) ** 0.5)
    for part in ("Remark 1", "Remark 2", "Remark 3", "B₀' = ", "has no promise", "C ends at its resolution"):
        assert part in text
    three = run("--groups", 3, "--pi-min", 0.2, "--budget", 9).output
    assert "no problem with three or more groups" in " ".join(three.split())


def test_the_table_says_what_is_not_known():
    text = run("--groups", 2, "--pi-min", 0.2, "--budget", 1000).output
    assert "no promise at 1,000 labels" in text
    assert "give gap" in text
    assert "Assumption 2" in text


def test_plot(tmp_path):
    file = tmp_path / "plan.svg"
    result = run("synthetic1:I", "--budget", 1000, "--plot", file, "--trials", 1)
    assert result.exit_code == 0, result.output
    assert file.read_text().startswith("<?xml")
    bare = tmp_path / "bare.png"
    run("--groups", 2, "--pi-min", 0.2, "--budget", 1000, "--epsilon", 0.1, "--plot", bare)
    assert bare.stat().st_size > 1000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--groups", 2, "--pi-min", 0.2], "give a budget"),
        (["--groups", 2, "--budget", 10], "--pi-min"),
        (["--groups", 2, "--pi-min", 0.6, "--budget", 10], "pi_min"),
        (["--groups", 2, "--pi-min", 0.2, "--budget", 10, "--delta", 1.5], "delta"),
        (["--groups", 2, "--pi-min", 0.2, "--budget", 10, "--A", 0.3], "A must"),
        (["--groups", 2, "--pi-min", 0.2, "--budget", 10, "--C", -1], "C must"),
        (["--groups", 2, "--pi-min", 0.2, "--budget", 10, "--epsilon", 0.1, "--beta", 2], "beta"),
        (["adult", "--budget", 10], "risks are known"),
        (["synthetic1:I", "--budget", 10, "--population", "0.5,0.5"], "give epsilon"),
        (["synthetic1:I", "--budget", 10, "--fair", "a,b"], "separated by commas"),
        (["synthetic1:I", "--budget", 10, "--C", 1, "--kappa", 1], "give one of them"),
        (["--groups", 2, "--pi-min", 0.2, "--budget", 9, "--epsilon", 0.1, "--population", "0.5,0.5"], "give fair"),
    ],
)
def test_bad_input(arguments, message):
    error = run(*arguments).exception
    assert isinstance(error, ValueError)
    assert message in str(error)


def test_importing_the_command_is_light():
    heavy = "numpy", "scipy", "sklearn", "pandas", "matplotlib"
    code = f"import sys, evenhand.cli.plan; print([m for m in {heavy} if m in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )

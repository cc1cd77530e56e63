"""Verdicts are given again from the values that a reproduction kept."""

import importlib.util
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evenhand.cli import app

FILE = Path(__file__).parents[2] / "evidence/judge.py"
CONVERGENCE = "With exploration the mean mixture ends near π*, and trials come closer to it"


@pytest.fixture(scope="module")
def judge():
    spec = importlib.util.spec_from_file_location("judge", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return lambda folder: module.main([str(folder)])


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reproduced")
    given = ["reproduce", "fig-convergence", "fig-mixture-curve", "--trials", "8", "--jobs", "1", "--out", str(folder)]
    assert CliRunner().invoke(app, given).exit_code == 0
    return {name: json.loads((folder / name).read_text()) for name in ("verdicts.json", "results.json")}


def scaled(kept, results):
    ends = kept["experiments"]["fig-convergence"][CONVERGENCE]["values"]
    ends["A_opt, I: final share of u less π*"] = [value + 0.1 for value in ends["A_opt, I: final share of u less π*"]]


def other_verdict(kept, results):
    results["experiments"]["fig-convergence"]["claims"][0]["verdict"] = "holds, of course"


def lost_claim(kept, results):
    kept["experiments"]["fig-convergence"].pop(CONVERGENCE)


def other_level(kept, results):
    kept["level"] = 0.95


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda kept, results: None, 0), (scaled, 1), (other_verdict, 1), (lost_claim, "no values of 'With exploration"),
        (other_level, "another level"),
    ],
)  # fmt: skip
def test_what_was_published_has_to_follow_from_the_values(change, code, reproduced, judge, tmp_path, capsys):
    kept, results = (json.loads(json.dumps(reproduced[name])) for name in ("verdicts.json", "results.json"))
    change(kept, results)
    (tmp_path / "verdicts.json").write_text(json.dumps(kept))
    (tmp_path / "results.json").write_text(json.dumps(results))
    if isinstance(code, str):
        with pytest.raises(SystemExit, match=code):
            judge(tmp_path)
        return
    assert judge(tmp_path) == code
    assert "holds: The harder group needs more examples: v in I, u in II" in capsys.readouterr().out


def test_the_published_verdicts_are_those_of_the_kept_values(judge):
    assert judge(FILE.parent / "results") == 0

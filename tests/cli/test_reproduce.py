import subprocess
import sys
import time

import pytest
import typer
from typer.testing import CliRunner

from evenhand.cli.reproduce import reproduce
from evenhand.experiments import study as studies

app = typer.Typer()
app.command()(reproduce)


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_list():
    found = run("--list")
    assert found.exit_code == 0
    assert len(found.output.splitlines()) == 14
    assert run("fig-adult", "--list").output.startswith("fig-adult ")


def test_run_twice(tmp_path):
    command = ("fig-convergence", "--trials", 2, "--jobs", 1, "--out", tmp_path / "out")
    first, second = run(*command), run(*command)
    assert (first.exit_code, second.exit_code) == (0, 0)
    assert "fig-convergence: done, 16 trials run" in first.output
    assert "not tested at this scale: With exploration the mean mixture ends near π*" in first.output
    assert "already there, nothing to do" in second.output


def test_a_killed_run_goes_on(tmp_path):
    command = ["fig-convergence", "--trials", "3", "--jobs", "1", "--out", str(tmp_path / "out")]
    program = "from evenhand.cli import main; main()"
    process = subprocess.Popen([sys.executable, "-c", program, "reproduce", *command], stderr=subprocess.DEVNULL)
    while process.poll() is None and not list(tmp_path.glob("out/trials/*/*.npz")):
        time.sleep(0.02)
    process.kill()
    process.wait()
    kept = len(list(tmp_path.glob("out/trials/*/*.npz")))
    assert 0 < kept < 6
    assert f"done, {3 * (8 - kept)} trials run" in run(*command).output


def test_absent_data_have_an_exit_code(tmp_path, monkeypatch):
    def nothing(name, **settings):
        raise ValueError(f"get {name} here")

    monkeypatch.setattr(studies, "open_source", nothing)
    studies._source.cache_clear()
    found = run("fig-cifar", "--out", tmp_path / "out")
    assert found.exit_code == 4
    assert "fig-cifar: skipped" in found.output
    assert "get cifar10 here" in found.stderr


def test_failures_have_an_exit_code(tmp_path, monkeypatch):
    def broken(*arguments, **settings):
        raise ZeroDivisionError("nought")

    monkeypatch.setattr("evenhand.simulation.blocks.run_block", broken)
    found = run("fig-trend", "--trials", 1, "--jobs", 1, "--out", tmp_path / "out")
    assert found.exit_code == 1
    assert "synthetic2, A_opt+, trial 1100, seed 0: ZeroDivisionError: nought" in found.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fig-nothing",), "there is no experiment 'fig-nothing'"),
        (("--scale", "huge"), "scale must be one of quick, paper"),
        (("--backend", "dask"), "needs the scheduler's address"),
    ],
)
def test_bad_input(arguments, message):
    found = run(*arguments)
    assert isinstance(found.exception, ValueError)
    assert message in str(found.exception)

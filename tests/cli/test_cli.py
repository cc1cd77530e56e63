"""The command line, run as a user runs it."""

import json
import subprocess
import sys

import pandas as pd
import pytest

HEAVY = ("numpy", "scipy", "sklearn", "pandas", "matplotlib", "sqlalchemy", "torch", "pyarrow")


def evenhand(*arguments, **settings):
    command = [sys.executable, "-c", "from evenhand.cli import main; main()", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, **settings)


SMALL = ("simulate", "synthetic1:I", "--budget", 60, "--trials", 4)


def test_help_is_light():
    code = (
        "import sys\nsys.argv = ['evenhand', '--help']\ntry:\n    from evenhand.cli import main; main()\nfinally:\n    "
    )
    code += "print('LOADED', *sorted({m.split('.')[0] for m in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0
    assert "simulate" in done.stdout
    loaded = done.stdout.split("LOADED")[1].split()
    assert not set(HEAVY) & set(loaded)


def test_simulate_writes_what_it_says(tmp_path):
    out = tmp_path / "run"
    done = evenhand(*SMALL, "--strategy", "optimistic:c0=0.1", "--strategy", "even=uniform", "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert list(summary["strategies"]) == ["optimistic:c0=0.1", "even"]
    assert summary == json.loads((out / "summary.json").read_text())
    assert len(pd.read_parquet(out / "trace.parquet")) == 2 * 4 * 30 * 2
    assert {p.name for p in out.iterdir()} >= {"mixture.png", "worst_group.png", "groups.png"}
    again = evenhand(*SMALL, "--out", out)
    assert again.returncode == 2
    assert "--resume" in again.stderr
    assert evenhand(*SMALL, "--strategy", "uniform", "--out", out, "--force").returncode == 0


def test_table_of_results_is_readable():
    done = evenhand(*SMALL, "--strategy", "optimistic", "--strategy", "uniform")
    assert done.returncode == 0
    assert "fair mixture π*: u 0.20, v 0.80" in done.stdout
    assert "worst group, optimistic − uniform" in done.stdout


def test_a_table_by_another_risk_says_so():
    done = evenhand(*SMALL, "--strategy", "optimistic", "--strategy", "uniform", "--risk", "fnr", "--positive", 1)
    assert done.returncode == 0, done.stderr
    assert "seed 0, false negative rate" in done.stdout
    assert "worst group's risk, optimistic − uniform" in done.stdout
    costs = evenhand(*SMALL, "--risk", "costs:0,1;5,0", "--json")
    assert json.loads(costs.stdout)["risk"] == "costs:0,1;5,0"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("simulate", "synthetic1:III"), "III"),
        ((*SMALL, "--risk", "f1"), "unknown risk 'f1'"),
        ((*SMALL, "--risk", "fnr"), "needs the positive class"),
        ((*SMALL, "--risk", "fpr", "--positive", "ill"), "the classes are 0, 1"),
        ((*SMALL, "--risk", "costs:0,1"), "row and a column"),
        (("simulate", "synthetic9"), "unknown source"),
        (("simulate", "adlt"), "did you mean 'adult'"),
        (("simulate", "nowhere.csv", "--label", "y", "--group", "g"), "no file 'nowhere.csv'"),
        ((*SMALL, "--strategy", "optimstic"), "did you mean 'optimistic'"),
        ((*SMALL, "--strategy", "optimistic:xi=2"), "xi"),
        ((*SMALL, "--learner", "os.system"), "unknown learner"),
        ((*SMALL, "--learner", "sklearn.decomposition.PCA"), "not a classifier"),
        ((*SMALL, "--budget", 2), "warm-up round"),
        ((*SMALL, "--budget", "many"), "--budget"),
        ((*SMALL, "--resume"), "--out"),
    ],
)
def test_bad_input_is_told_without_a_traceback(arguments, message):
    done = evenhand(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


CTRL_C = """
import os, signal
import evenhand.simulation.blocks as simulation
from evenhand.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background is started with it ignored
real, blocks = simulation.run_block, []
def run_block(*args, **settings):
    blocks.append(1)
    if len(blocks) == 3:
        os.kill(os.getpid(), signal.SIGINT)
    return real(*args, **settings)
simulation.run_block = run_block
main()
"""


def test_ctrl_c_keeps_what_is_finished_and_resume_goes_on(tmp_path):
    arguments = ["simulate", "synthetic1:I", "--budget", "40", "--trials", "300", "--strategy", "greedy", "--out"]
    arguments.append(str(tmp_path / "run"))
    stopped = subprocess.run([sys.executable, "-c", CTRL_C, *arguments], capture_output=True, text=True)
    assert stopped.returncode == 130, stopped.stderr
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["interrupted"]
    assert summary["strategies"]["greedy"]["trials"] == 200
    assert evenhand(*arguments, "--resume").returncode == 0
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert not summary["interrupted"]
    assert summary["strategies"]["greedy"]["trials"] == 300


def test_force_runs_anew_and_leaves_what_is_not_its_own(tmp_path):
    mine = tmp_path / "run" / "trials" / "notes.txt"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    arguments = ["simulate", "synthetic1:I", "--trials", "2", "--out", tmp_path / "run", "--trace", "none"]
    assert evenhand(*arguments, "--budget", 30, "--force").returncode == 0
    refused = evenhand(*arguments, "--budget", 40, "--resume")
    assert refused.returncode == 2
    assert "budget was 30, is 40" in refused.stderr
    assert evenhand(*arguments, "--budget", 40, "--force").returncode == 0
    assert len(list(mine.parent.glob("*/settings.json"))) == 2
    assert mine.read_text() == "mine"


def test_demo_runs(tmp_path):
    done = evenhand("demo", "--budget", 200, "--trials", 2, "--out", tmp_path / "demo")
    assert done.returncode == 0, done.stderr
    for said in (
        "You may label 200 people",
        "age=55 and over, sex=Female",
        "20 requests of 10 labels",
        "see the report in a browser",
    ):
        assert said in done.stdout
    assert {p.name for p in (tmp_path / "demo").iterdir()} == {
        "train.parquet",
        "train.test.parquet",
        "train.model.zip",
        "train.report.html",
        "train.report.json",
        "train.checkpoint.json",
    }


WITHOUT_NETWORK = """
import socket
from evenhand.cli import main

def refuse(*_, **__):
    raise SystemExit("a connection was asked for")

for name in ("connect", "connect_ex", "sendto"):
    setattr(socket.socket, name, refuse)
for name in ("create_connection", "getaddrinfo", "gethostbyname"):
    setattr(socket, name, refuse)
if CHECK:
    socket.create_connection(("192.0.2.1", 80))
main()
"""


@pytest.mark.parametrize("check", [False, True])
def test_the_demo_opens_no_connection(check, tmp_path):
    code = WITHOUT_NETWORK.replace("CHECK", str(check))
    command = [sys.executable, "-c", code, "demo", "--budget", "200", "--trials", "2", "--out", str(tmp_path / "demo")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, "a connection was asked for" in done.stderr) == (int(check), check), done.stderr
    assert (tmp_path / "demo/train.report.html").exists() is not check


def test_version():
    assert evenhand("--version").stdout.strip() == "0.1.0"

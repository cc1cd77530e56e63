import json
import os
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest

import evenhand as eh
from evenhand.experiments.catalogue import choose
from evenhand.experiments.run import Options, reproduce
from evenhand.simulation.backends import spread

RULES = ["optimistic", "greedy", "uniform", "epsilon-greedy"]
SETTINGS = {"budget": 120, "trials": 100, "seed": 3}


class Cluster:
    """A scheduler and two workers, each a process of its own."""

    def __init__(self, folder):
        self.file = folder / "scheduler.json"
        self.quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.scheduler = self._start("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-show")
        self.workers = [self._worker(), self._worker()]
        while not self.file.exists() or not self.file.read_text().strip():
            time.sleep(0.05)
        self.address = json.loads(self.file.read_text())["address"]

    def _worker(self):
        return self._start("dask_worker", "--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1")

    def _start(self, program, *options):
        extra = ["--no-dashboard"] if program == "dask_scheduler" else []
        command = [sys.executable, "-m", f"distributed.cli.{program}", *options, *extra]
        return subprocess.Popen([*command, "--scheduler-file", str(self.file)], **self.quiet)

    def kill_one(self):
        self.workers[0].kill()

    def stop(self):
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    running = Cluster(tmp_path_factory.mktemp("cluster"))
    yield running
    running.stop()


def test_a_worker_killed_in_the_middle_costs_nothing(cluster):
    source = eh.SyntheticModel1.instance("I")
    expected = eh.simulate(source, RULES, **SETTINGS)
    finished = []

    def kill_after_the_first(done, total):
        finished.append(done)
        if len(finished) == 1:
            cluster.kill_one()

    found = eh.simulate(
        source, RULES, **SETTINGS, progress=kill_after_the_first, backend="dask", address=cluster.address
    )
    assert cluster.workers[0].wait() == -signal.SIGKILL
    assert finished[-1] == 400
    pd.testing.assert_frame_equal(found.final, expected.final)
    pd.testing.assert_frame_equal(found.trace, expected.trace)


def test_reproduce_on_a_cluster_equals_one_process(cluster, tmp_path):
    chosen = choose(["fig-convergence"])
    tables = []
    for name, options in (
        ("here", Options(trials=2)),
        ("there", Options(trials=2, backend="dask", address=cluster.address)),
    ):
        assert reproduce(chosen, tmp_path / name, options)[0].status == "done"
        tables.append((tmp_path / name / "fig-convergence.csv").read_text())
    assert tables[0] == tables[1]


def test_an_error_on_a_cluster_is_the_outcome_of_its_item_alone(cluster):
    outcomes = sorted(spread(int, ["1", "x", "3"], backend="dask", address=cluster.address), key=lambda o: o.index)
    assert [outcome.value for outcome in outcomes] == [1, None, 3]
    assert isinstance(outcomes[1].error, ValueError)


def die_once(folder):
    """Kill the own process the first time, as the system does when memory runs out."""
    mark = os.path.join(folder, "died")
    if not os.path.exists(mark):
        open(mark, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return 7


def negative(x):
    if x == 2:
        raise ArithmeticError("two")
    return -x


def test_work_of_a_process_that_died_is_run_again(tmp_path):
    assert [outcome.value for outcome in spread(die_once, [str(tmp_path)] * 2, jobs=2)] == [7, 7]


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_is_the_outcome_of_its_item_alone(jobs):
    outcomes = sorted(spread(negative, [1, 2, 3], jobs=jobs), key=lambda outcome: outcome.index)
    assert [outcome.value for outcome in outcomes] == [-1, None, -3]
    assert isinstance(outcomes[1].error, ArithmeticError)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"backend": "slurm"}, "backend must be one of processes, dask"),
        ({"backend": "dask"}, "needs the scheduler's address"),
        ({"address": "tcp://127.0.0.1:1"}, "belongs to backend dask"),
    ],
)
def test_bad_backends_are_refused(settings, message):
    source = eh.SyntheticModel1.instance("I")
    with pytest.raises(ValueError, match=message):
        eh.simulate(source, ["uniform"], budget=10, trials=1, **settings)

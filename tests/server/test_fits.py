"""Fits run in a worker process: nobody waits for one who does not want to, and one that is killed is replaced."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.conftest import Running
from tests.server.test_api import rows

import evenhand as eh
from evenhand.server import jobs
from evenhand.server.observing import Observer
from evenhand.server.worker import Worker

SLOW = """
import time
from evenhand.campaign import models
from sklearn.linear_model import LogisticRegression

models.LEASE_SECONDS = 2.0  # of a worker that is killed; a test would wait for 30 s too long


class Slow(LogisticRegression):
    def fit(self, X, y, sample_weight=None):
        time.sleep({seconds})
        return super().fit(X, y, sample_weight)


def make():
    return Slow()
"""


def children(process: int) -> list[int]:
    """The worker processes of a server."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
            spawned = b"spawn_main" in (path.parent / "cmdline").read_bytes()
        except OSError:
            continue
        if int(fields[1]) == process and spawned:
            found.append(int(path.parent.name))
    return found


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder: Path = tmp_path_factory.mktemp("fits")
    (folder / "slow_learner.py").write_text(SLOW.format(seconds=2.0))
    database, path = f"sqlite:///{folder / 'ledger.db'}", f"{folder}:{os.environ.get('PYTHONPATH', '')}"
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        patch.setenv("EVENHAND_ALLOW", "slow_learner")
        for name, refit in (("always", "always"), ("later", "background")):
            eh.Campaign.create(
                database, name, ["u", "v"], learner="factory:slow_learner.make", budget=200, batch=2, refit=refit
            ).release()
    found = Running(database, (), {"EVENHAND_ALLOW": "slow_learner", "PYTHONPATH": path})
    yield found
    found.stop()


def collect(server: Running, name: str, k: int, **ask: Any) -> int:
    """Ask and tell once; gives how many labels the scores of the ask were behind."""
    asked = server.post(f"/api/campaigns/{name}/ask", ask)
    assert asked.status_code == 200, asked.text
    request = asked.json()["requests"][0]
    assert server.post(f"/api/campaigns/{name}/requests/{request['request']}/tell", rows(k)).status_code == 200
    return int(request["scores"]["labels_behind"])


def test_an_ask_waits_for_fresh_scores_but_not_longer_than_it_wants(slow: Running) -> None:
    for k in range(3):
        collect(slow, "always", k, max_wait=0)
    assert collect(slow, "always", 3, max_wait=0.1) > 0  # a fit takes two seconds: it did not wait
    assert collect(slow, "always", 4) == 0  # it waited for the fit


def test_background_fits_hold_nobody_up(slow: Running) -> None:
    # an ask that waited for the fit that the first labels began would have scores that are not behind
    assert [collect(slow, "later", k) for k in range(2)] == [0, 4]
    for _ in range(100):
        if slow.client.get("/api/campaigns/later").json()["scores"]["labels_behind"] == 0:
            return
        time.sleep(0.1)
    raise AssertionError("no refit came")


def test_a_worker_that_is_killed_is_replaced_and_its_job_done_again(slow: Running) -> None:
    collect(slow, "always", 9, max_wait=0)

    def kill() -> None:
        time.sleep(0.4)
        for process in children(slow.process.pid):
            os.kill(process, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    refitted = slow.post("/api/campaigns/always/refit")
    thread.join()
    assert refitted.json() == {"refitted": True}
    assert slow.client.get("/api/campaigns/always").json()["scores"]["labels_behind"] == 0


@pytest.mark.parametrize(
    "settings",
    [
        {"learner": "factory:os.system"}, {"learner": "sklearn.svm.SVC"}, {"learner": "factory:slow_learner.make"},
        {"learner": "/etc/passwd"}, {"risk": "factory:os.system"}, {"strategy": "factory:slow_learner.make"},
        {"strategy": "label=factory:slow_learner.make"}, {"strategy": "optimistic:terms=slow_learner.make"},
        {"strategy": "optimistic: terms=os.system"}, {"stop": ["factory:os.system"]}, {"stop": ["/etc/passwd"]},
    ],
)  # fmt: skip
def test_no_code_and_no_path_comes_in_over_http(slow: Running, settings: dict[str, Any]) -> None:
    found = slow.post("/api/campaigns", {"name": "bad", "groups": ["u", "v"], "budget": 40, **settings})
    assert found.status_code == 422, found.text
    changed = {key: value for key, value in settings.items() if key in ("learner", "stop")}
    if changed:
        assert slow.post("/api/campaigns/later/change", changed).status_code == 422
    assert slow.client.get("/api/campaigns/bad").status_code == 404


def test_plain_settings_are_taken(slow: Running) -> None:
    body = {"name": "good", "groups": ["u", "v"], "budget": 40, "strategy": "optimistic:bound=vc,d=3,delta=0.05"}
    assert slow.post("/api/campaigns", {**body, "learner": "logistic:C=2", "stop": ["labels:20"]}).status_code in (
        201,
        422,
    )


def test_a_server_that_ends_leaves_other_processes_alone(tmp_path: Path) -> None:
    """A program that runs the application itself may have processes of its own."""
    url = f"sqlite:///{tmp_path / 'a.db'}"
    eh.Campaign.create(url, "c", ["u", "v"], learner=None, budget=40).release()
    others = {process.pid for process in multiprocessing.active_children()}  # of tests before
    theirs = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,))
    theirs.start()
    try:
        worker = Worker(url, 1, Observer())
        with eh.Campaign.open(url, "c") as campaign:
            assert asyncio.run(worker.on(jobs.verify, campaign))["ok"]
        ours = [process for process in multiprocessing.active_children() if process.pid not in others | {theirs.pid}]
        worker.shutdown()
        for process in ours:
            process.join(20)
        assert [process.is_alive() for process in ours] == [False]
        assert theirs.is_alive()
    finally:
        theirs.kill()
        theirs.join()

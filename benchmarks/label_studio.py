"""A real Label Studio server and a campaign, kept in step by `evenhand sync label-studio` while people and machines misbehave.

    python -m benchmarks.label_studio [--tasks 300] [--json FILE] [--record]

300 tasks, five annotators with accounts of their own who take what the tab shows them next, and change, delete and skip; the
owner deletes and adds tasks; the sync is a process that is killed with SIGKILL ten times, at random moments, and
for a while there are two; the server is stopped and started once. At the end the project's export and the campaign must have
the same labels. Before that the story of the tests is told; `--record` keeps the server's answers, which `make test` plays.
Label Studio is installed into `.venv-label-studio` where it is not.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
from tests.connectors.studio.people import Account, Lead
from tests.connectors.studio.server import Server, install, release
from tests.connectors.studio.story import RealPeople, tell_story
from tests.connectors.studio.tape import RECORDING, Recorder

import evenhand as eh
from evenhand.connectors import LabelStudio, Sync

PEOPLE, KILLS, SECONDS = 5, 10, 1.0
NAME = "soak"


class Crowd:
    """People who label what the tab shows them, and what they did."""

    def __init__(self, lead: Lead, accounts: list[Account], project: int, seed: int) -> None:
        self.lead, self.accounts, self.project, self.seed = lead, accounts, project, seed
        self.done, self.stop = Counter[str](), threading.Event()
        self.lock = threading.Lock()
        self.given: dict[int, list[int]] = {k: [] for k in range(len(accounts))}

    def work(self, number: int) -> None:
        """One person: mostly the next task, at times another thought about an earlier one."""
        me, rng = self.accounts[number], random.Random(f"{self.seed} {number}")
        while not self.stop.is_set():
            try:
                self._act(me, rng, self.given[number])
            except httpx.HTTPStatusError as error:
                # deleted under their hands by the owner, or the same task by two people at once
                self._count(f"refused with {error.response.status_code}")
            time.sleep(rng.uniform(0.05, 0.3))

    def _act(self, me: Account, rng: random.Random, mine: list[int]) -> None:
        what = rng.random()
        if mine and what < 0.12:
            me.change(rng.choice(mine), rng.choice(["good", "bad"]))
            self._count("changed")
        elif mine and what < 0.15:
            me.unsay(mine.pop(rng.randrange(len(mine))))
            self._count("deleted")
        elif (task := me.next_task(self.project)) is not None:
            if task % 13 == 0 or what > 0.97:  # what nobody can label, and what somebody does not feel like
                me.skip(task)
                self._count("skipped")
            else:
                mine.append(me.say(task, rng.choice(["good", "bad"])))
                self._count("annotated")

    def own(self) -> None:
        """The owner: now and then deletes a task, adds one, annotates one that nobody asked for."""
        rng = random.Random(f"{self.seed} owner")
        while not self.stop.wait(rng.uniform(2.0, 8.0)):
            tasks = self.lead.tasks(self.project)
            what, task = rng.random(), rng.choice(tasks)
            try:
                if what < 0.4:
                    self.lead.delete_task(task["id"])
                    self._count("tasks deleted")
                elif what < 0.7:
                    self.lead.add(self.project, rows(1, len(tasks) + rng.randrange(10_000)))
                    self._count("tasks added")
                elif not task["annotations"]:
                    self.lead.say(task["id"], rng.choice(["good", "bad"]))
                    self._count("annotated unasked")
            except httpx.HTTPStatusError as error:
                self._count(f"refused with {error.response.status_code}")

    def _count(self, what: str) -> None:
        with self.lock:
            self.done[what] += 1


class Machine:
    """The sync as a process."""

    def __init__(self, server: Server, project: int, database: str, log: Path) -> None:
        self.command = [
            sys.executable, "-m", "evenhand", "sync", "label-studio", "--url", server.url, "--project", str(project),
            "--campaign", NAME, "--group", "region", "--feature", "age", "--feature", "length", "--db", database,
        ]  # fmt: skip
        self.environment = {**os.environ, "LABEL_STUDIO_API_KEY": server.key}
        self.log = log

    def begin(self) -> subprocess.Popen[bytes]:
        """A sync that goes on until it is stopped."""
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [*self.command, "--every", f"{SECONDS:g}s"], env=self.environment, stdout=log, stderr=log
            )

    def once(self) -> dict[str, Any]:
        """One pass; gives its report."""
        done = subprocess.run(
            [*self.command, "--once", "--json"], env=self.environment, check=True, capture_output=True, text=True
        )
        found: dict[str, Any] = json.loads(done.stdout)
        return found


def rows(count: int, first: int = 0) -> list[dict[str, Any]]:
    """Tasks in three regions, very unequal in number."""
    rng = random.Random(first)
    return [
        {
            "text": f"review {first + k}",
            "region": rng.choices(["north", "south", "islands"], [6, 3, 1])[0],
            "age": rng.randrange(18, 90),
            "length": rng.randrange(5, 400),
        }
        for k in range(count)
    ]


def project_labels(lead: Lead, project: int) -> dict[str, str]:
    """What the project says, from its export: of every task the label changed last, by this script's own reading."""
    found: dict[str, str] = {}
    for task in lead.tasks(project):
        given = [a for a in task["annotations"] if not a["was_cancelled"] and a["result"]]
        if given:
            last = max(given, key=lambda a: a["updated_at"])
            found[str(task["id"])] = last["result"][0]["value"]["choices"][0]
    return found


def check(lead: Lead, project: int, campaign: eh.Campaign) -> dict[str, Any]:
    """Compare both sides at the end."""
    said, problems = project_labels(lead, project), []
    there = {str(task["id"]) for task in lead.tasks(project)}
    with campaign.store.moment() as (reader, _):
        known = reader.find(list(there | said.keys()))
        labelled = {row.id: row for row in reader.changed() if row.label is not None}
    counted = {name: row.label for name, row in labelled.items() if row.counts}
    # skips and withdrawals are for good, and an answer that nobody asked for waits for its turn
    expected = {
        name: label for name, label in said.items() if known[name].role is not None and known[name].fate is None
    }
    problems += [
        f"{n}: campaign {counted.get(n)}, project {expected.get(n)}"
        for n in counted.keys() | expected.keys()
        if counted.get(n) != expected.get(n)
    ]
    told = [name for event in campaign.events() if event["kind"] == "told" for name in event["facts"]["ids"]]
    twice = [name for name, n in Counter(told).items() if n > 1]
    problems += [f"{name} was told twice" for name in twice]
    if there - known.keys():
        problems.append(f"{len(there - known.keys())} tasks are not in the pool")
    status = campaign.status()
    if status["used"] != len(labelled):
        problems.append(f"{status['used']} labels used, {len(labelled)} told")
    waiting = {name for request in campaign.open_requests for name in request.examples}
    if waiting & said.keys():
        problems.append(f"open requests wait for {len(waiting & said.keys())} tasks that are answered")
    if waiting - there:
        problems.append(f"open requests wait for {len(waiting - there)} tasks that are deleted")
    shown = lead.in_tab(project)
    numbers = [task["data"]["evenhand_request"] for task in shown]
    if {str(task["id"]) for task in shown} != waiting or numbers != sorted(numbers):
        problems.append(f"the tab shows {len(shown)} tasks, open requests wait for {len(waiting)}")
    problems += campaign.verify().problems
    fates = Counter(row.fate for row in known.values() if row.fate is not None)
    return {
        "problems": problems,
        "labels": len(counted),
        "labels_equal": sum(counted.get(name) == label for name, label in expected.items()),
        "told_twice": len(twice),
        "answers_after_a_skip_or_withdrawal": sum(known[n].fate is not None for n in said),
        "answers_not_asked_for": sum(known[n].role is None and known[n].fate is None for n in said),
        "tasks": len(there),
        "withdrawn": status["withdrawn"],
        "corrected": status["corrected"],
        "skipped": status["skipped"],
        "skipped_and_there": fates["skipped"],
        "requests_answered": status["answered"],
        "requests_open": len(campaign.open_requests),
        "waiting": len(waiting),
        "tasks_in_the_tab": len(shown),
        "collectors": len(status["collectors"]),
        "events": status["events"],
    }


def soak(server: Server, folder: Path, tasks: int, labels: int, seed: int) -> dict[str, Any]:
    """The whole loop; gives what was done and what both sides say in the end."""
    rng = random.Random(seed)
    lead = Lead(server.url, server.key, "lead@example.org")
    people = [lead.invite(f"annotator{k}@example.org") for k in range(1, PEOPLE + 1)]
    project = lead.project("soak", rows(tasks))
    database = f"sqlite:///{folder / 'ledger.db'}"
    # more than will be spent, so that requests are open at the end and the tab is not empty
    campaign = eh.Campaign.create(
        database, NAME, None, "optimistic", "table", budget=labels + 40, batch=3, lease="1d", seed=seed
    )
    machine = Machine(server, project, database, folder / "sync.log")
    crowd = Crowd(lead, people, project, seed)
    threads = [threading.Thread(target=crowd.work, args=(k,)) for k in range(PEOPLE)]
    threads.append(threading.Thread(target=crowd.own))
    began = time.monotonic()
    syncs, kills = [machine.begin()], 0
    for thread in threads:
        thread.start()
    restarted = both = 0.0
    try:
        while campaign.labels_used < labels and time.monotonic() - began < 1800:
            # by labels and not by the clock, so that every kill falls into the work whatever the machine
            if campaign.labels_used >= (kills + 1) * labels * 0.85 / (KILLS + 1) and kills < KILLS:
                time.sleep(rng.uniform(0, 8))  # while it starts, or in the middle of a pass, or between two
                syncs[0].kill()
                syncs[0].wait()
                syncs[0], kills = machine.begin(), kills + 1
                print(f"{campaign.labels_used} of {labels} labels, {kills} kills, {dict(crowd.done)}", flush=True)
            if kills == 3 and not both:
                both, syncs = time.monotonic(), [*syncs, machine.begin()]
            if kills == 5 and len(syncs) > 1:
                syncs[1].terminate()
                syncs.pop().wait()
                both = time.monotonic() - both
            if kills == 7 and not restarted:
                server.stop()
                restarted = server.start()
            if syncs[0].poll() is not None:
                raise SystemExit(f"the sync ended by itself: {machine.log.read_text()[-2000:]}")
            time.sleep(0.2)
    finally:
        crowd.stop.set()
        for thread in threads:
            thread.join()
        for sync in syncs:
            sync.terminate()
            sync.wait()
    seconds = time.monotonic() - began
    begin_pass = time.monotonic()
    reports = [machine.once(), machine.once()]
    return {
        "seconds": round(seconds, 1), "kills": kills, "two_at_once_seconds": round(both, 1),
        "restart_seconds": round(restarted, 1), "people": dict(sorted(crowd.done.items())),
        "last_pass": reports[-1], "pass_seconds": round((time.monotonic() - begin_pass) / 2, 2),
        **check(lead, project, campaign),
    }  # fmt: skip


def large(server: Server, tasks: int) -> dict[str, Any]:
    """Seconds of passes over a project with many tasks: the first, one over all of them, one over what was changed."""
    lead = Lead(server.url, server.key, "lead@example.org")
    project = lead.project("large", [])
    for first in range(0, tasks, 1000):
        lead.add(project, rows(min(1000, tasks - first), first))
    campaign = eh.Campaign(None, "optimistic", "table", budget=100, batch=5)
    seconds = []
    with LabelStudio(server.url, project, key=server.key) as tool:
        sync = Sync(campaign, tool, group="region", features=["age", "length"])
        another = Sync(campaign, tool, group="region", features=["age", "length"])
        for one in (sync, another, sync, sync):
            if len(seconds) == 2:
                time.sleep(65)  # a pass looks back a minute: the import would count as changed
            began = time.monotonic()
            one.once()
            seconds.append(time.monotonic() - began)
    del seconds[2]  # it still looks back to the import
    names = ("first_seconds", "whole_seconds", "next_seconds")
    return {"tasks": tasks, **{name: round(value, 2) for name, value in zip(names, seconds, strict=True)}}


def tell(server: Server, keep: bool) -> None:
    """The story of the tests against the real server; its answers are kept for them."""
    people = RealPeople(Lead(server.url, server.key, "lead@example.org"))
    with closing(people), Recorder(server.url, server.key, people) as tape:
        tell_story(tape, tape.people)
    if keep:
        tape.save(RECORDING, {"label-studio": release(server.binary), "at": f"{datetime.now(UTC):%Y-%m-%d %H:%M UTC}"})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=300)
    parser.add_argument("--labels", type=int, default=120, help="it ends after so many")
    parser.add_argument("--large", type=int, default=5000, help="tasks of the project whose passes are timed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="keep the figures in this file")
    parser.add_argument("--record", action="store_true", help="keep the server's answers for the tests")
    given = parser.parse_args()
    binary = install()
    with tempfile.TemporaryDirectory() as name:
        server = Server(binary, Path(name))
        try:
            found: dict[str, Any] = {"start_seconds": round(server.start(), 1)}
            tell(server, given.record)
            found |= soak(server, Path(name), given.tasks, given.labels, given.seed)
            print(json.dumps(found), flush=True)
            found["large"] = large(server, given.large)
        finally:
            server.stop()
    found["label_studio"] = release(binary)
    print(json.dumps(found, indent=1))
    if given.json is not None:
        given.json.write_text(json.dumps(found))
    if found["problems"]:
        raise SystemExit(f"{len(found['problems'])} problems")


if __name__ == "__main__":
    main()

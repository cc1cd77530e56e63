"""Processes that tell, correct and withdraw at once, some of them killed: run as a script by the tests.

python correctors.py URL CAMPAIGN FOLDER --processes 8 --kills 20 --seconds 4
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np

import evenhand as eh


def work(url: str, name: str, notes: Path, place: int, life: int, stop: Path) -> None:
    """Ask, tell four rows with ids, correct one, withdraw one; what was acknowledged is written down."""
    file = os.open(notes, os.O_APPEND | os.O_CREAT | os.O_WRONLY)
    c = eh.Campaign.open(url, name)
    rng = np.random.default_rng([place, life])

    def note(*words: object) -> None:
        os.write(file, (" ".join(map(str, words)) + "\n").encode())

    k = 0
    while not stop.exists():
        try:
            request = c.ask(collector=f"p{place}")
        except eh.NothingToAsk:
            return
        ids = [f"{place}.{life}.{k}.{i}" for i in range(request.size)]
        labels = rng.integers(0, 2, len(ids)).tolist()
        c.tell(request, rng.normal(size=(len(ids), 2)), labels, ids=ids)
        for one, label in zip(ids, labels, strict=True):
            note("told", one, label)
        note("correcting", ids[0], 1 - labels[0])
        c.correct(ids[0], 1 - labels[0], by=f"p{place}")
        note("corrected", ids[0], 1 - labels[0])
        note("withdrawing", ids[1], "-")
        c.withdraw(ids[1], by=f"p{place}")
        note("withdrawn", ids[1], "-")
        k += 1


def fork(*given: object) -> int:
    """A process of its own."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        work(*given)  # type: ignore[arg-type]
        code = 0
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(code)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("name")
    parser.add_argument("folder", type=Path)
    for option, default in (("processes", 8), ("kills", 20), ("seed", 0)):
        parser.add_argument(f"--{option}", type=int, default=default)
    given = parser.parse_args()
    stop, chance = given.folder / "stop", random.Random(given.seed)
    lives = [0] * given.processes

    def start(place: int) -> int:
        lives[place] += 1
        return fork(given.url, given.name, given.folder / f"{place}.notes", place, lives[place], stop)

    # what processes would otherwise import one by one
    c = eh.Campaign(["u"], "optimistic", "logistic", budget=4)
    c.tell(c.ask(), np.eye(2), [0, 1], ids=["a", "b"])
    c.correct("a", 1)
    eh.Campaign.open(given.url, given.name, read_only=True).release()
    crowd = {start(place): place for place in range(given.processes)}
    for _ in range(given.kills):
        time.sleep(chance.uniform(0.02, 0.2))
        pid = chance.choice(list(crowd))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        place = crowd.pop(pid)
        crowd[start(place)] = place
    stop.touch()
    sys.exit(sum(os.waitpid(pid, 0)[1] != 0 for pid in crowd))


if __name__ == "__main__":
    main()

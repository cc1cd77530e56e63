"""A crowd of real collector processes, some of them killed: run as a script by the tests and the benchmark.

    python crowd.py URL CAMPAIGN FOLDER --processes 8 --deliveries 1000 --kills 20 --seed 0

Every collector asks, delivers two rows, and writes down in FOLDER what was acknowledged to it. One whose place was
killed in the middle of a delivery tells it again, as a person would. One more process refits now and then.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import evenhand as eh
from evenhand.live import Ledger, LiveCampaign


def rows(request: int) -> tuple[np.ndarray, np.ndarray]:
    """What is delivered for a request, always the same."""
    rng = np.random.default_rng(request)
    return rng.normal(size=(2, 3)), rng.integers(0, 2, 2)


def collect(url: str, name: str, notes: Path, share: int, stop: Path) -> None:
    """Ask and tell until told to stop or `share` deliveries are acknowledged."""
    done = [line.split() for line in notes.read_text().splitlines()] if notes.exists() else []
    file = os.open(notes, os.O_APPEND | os.O_CREAT | os.O_WRONLY)
    live = LiveCampaign(Ledger(url), name)

    def note(*words: object) -> None:
        os.write(file, (" ".join(map(str, words)) + "\n").encode())

    def tell(request: int) -> None:
        note("telling", request)
        note("told", request, live.tell(request, *rows(request)).event)

    if done and done[-1][0] in ("telling", "asked"):
        tell(int(done[-1][1]))
    told = sum(words[0] == "told" for words in done)
    while told < share and not stop.exists():
        try:
            request = live.ask(collector=notes.name)
        except eh.NothingToAsk as nothing:
            if nothing.reason == "budget spent":
                break
            time.sleep(0.02)
            continue
        note("asked", request.id, request.event)
        tell(request.id)
        told += 1


def refit(url: str, name: str, stop: Path) -> None:
    """Refit now and then."""
    live = LiveCampaign(Ledger(url), name)
    while not stop.exists():
        live.refit()
        time.sleep(0.3)


def fork(work: Callable[..., None], *given: object) -> int:
    """A process of its own, which has not to import anything."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        work(*given)
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
    for option, default in (("processes", 8), ("deliveries", 1000), ("kills", 0), ("seed", 0)):
        parser.add_argument(f"--{option}", type=int, default=default)
    given = parser.parse_args()
    stop = given.folder / "stop"
    share = given.deliveries // given.processes
    chance = random.Random(given.seed)

    def start(place: int) -> int:
        return fork(collect, given.url, given.name, given.folder / f"{place}.notes", share, stop)

    refitter = fork(refit, given.url, given.name, stop)
    crowd = {start(place): place for place in range(given.processes)}
    failed = 0
    for _ in range(given.kills):
        time.sleep(chance.uniform(0.005, 0.15))
        pid = chance.choice([*crowd, refitter])
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        if pid == refitter:
            refitter = fork(refit, given.url, given.name, stop)
        else:
            place = crowd.pop(pid)
            crowd[start(place)] = place
    if given.kills:
        stop.touch()
    for pid in crowd:
        failed += os.waitpid(pid, 0)[1] != 0
    stop.touch()
    failed += os.waitpid(refitter, 0)[1] != 0
    sys.exit(failed)


if __name__ == "__main__":
    main()

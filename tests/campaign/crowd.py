"""A crowd of real collector processes, some of them killed: run as a script by the tests and the benchmark.

    python crowd.py URL CAMPAIGN FOLDER --processes 8 --requests 1000 --kills 20 --seed 0

Every collector asks for four rows and delivers them in two parts, with ids or without, and writes down in FOLDER what
was acknowledged to it. Now and then it tells a part again. One whose place was killed in the middle of a delivery tells
it from the beginning, as a person would. One more process refits now and then.
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

SIZE = 4
"""Rows of a request."""
PARTS = (slice(0, 1), slice(1, SIZE))
"""The rows of its two deliveries."""


def rows(request: int) -> tuple[np.ndarray, np.ndarray]:
    """What is delivered for a request, always the same."""
    rng = np.random.default_rng(request)
    return rng.normal(size=(SIZE, 3)), rng.integers(0, 2, SIZE)


def ids(request: int, part: int) -> list[str] | None:
    """The ids of a part: a third of the requests have them, a third only in their first part, a third none at all."""
    if request % 3 == 0 or (request % 3 == 1 and part == 1):
        return None
    return [f"{request}:{k}" for k in range(SIZE)][PARTS[part]]


def collect(url: str, name: str, notes: Path, share: int, stop: Path) -> None:
    """Ask and tell until told to stop, nothing is left, or `share` requests are answered."""
    done = [line.split() for line in notes.read_text().splitlines()] if notes.exists() else []
    file = os.open(notes, os.O_APPEND | os.O_CREAT | os.O_WRONLY)
    c = eh.Campaign.open(url, name)

    def note(*words: object) -> None:
        os.write(file, (" ".join(map(str, words)) + "\n").encode())

    def deliver(request: int, part: int) -> eh.campaign.requests.Receipt:
        X, y = rows(request)
        return c.tell(request, X[PARTS[part]], y[PARTS[part]], ids=ids(request, part), collector=notes.name)

    def tell(request: int) -> None:
        for part in range(len(PARTS)):
            note("telling", request, part)
            note("told", request, part, deliver(request, part).event)
            if request % 5 == 0 and not deliver(request, part).repeated:
                raise AssertionError(f"part {part} of request {request} told again was new")
        note("answered", request)

    if done and done[-1][0] != "answered":
        tell(int(done[-1][1]))
    answered = sum(words[0] == "answered" for words in done)
    while answered < share and not stop.exists():
        try:
            request = c.ask(collector=notes.name)
        except eh.NothingToAsk as nothing:
            if nothing.reason == "budget spent":
                break
            time.sleep(0.02)
            continue
        note("asked", request.id, request.event)
        tell(request.id)
        answered += 1


def refit(url: str, name: str, stop: Path) -> None:
    """Refit now and then."""
    c = eh.Campaign.open(url, name)
    while not stop.exists():
        c.refit()
        time.sleep(0.3)


def import_everything(url: str, name: str) -> None:
    """What processes would otherwise import one by one."""
    c = eh.Campaign(["u"], "optimistic", "logistic", budget=SIZE, batch=SIZE // 2)
    c.tell(c.ask(), np.eye(SIZE), [0, 1] * (SIZE // 2))
    c.refit()
    eh.Campaign.open(url, name, read_only=True).release()


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
    for option, default in (("processes", 8), ("requests", 1000), ("kills", 0), ("seed", 0)):
        parser.add_argument(f"--{option}", type=int, default=default)
    given = parser.parse_args()
    stop = given.folder / "stop"
    share = -(-given.requests // given.processes)
    chance = random.Random(given.seed)

    def start(place: int) -> int:
        return fork(collect, given.url, given.name, given.folder / f"{place}.notes", share, stop)

    import_everything(given.url, given.name)
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

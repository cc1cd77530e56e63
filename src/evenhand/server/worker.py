"""Fits in separate processes, so that nobody who asks or tells has to wait for one."""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from typing import Any, TypeVar

from evenhand.campaign import Campaign
from evenhand.campaign.state import State
from evenhand.server import jobs
from evenhand.server.observing import Observer
from evenhand.server.problems import Problem

T = TypeVar("T")
_MOST_WAITING = 100
_TRIES = 3
_POLL_SECONDS = 0.05
_FIT_SECONDS = 600.0


class Worker:
    """Runs jobs on one database in other processes.

    Waiting for a job holds no thread, so many waiting clients do not keep others from asking and telling.

    Args:
        url: the database.
        processes: how many jobs run at once.
        observer: counts refits.
    """

    def __init__(self, url: str, processes: int, observer: Observer) -> None:
        self._url, self._processes, self._observer = url, processes, observer
        self._lock = threading.Lock()
        self._refits: dict[str, Future[bool]] = {}
        self._waiting = 0
        # a new interpreter, not a fork: this process has threads and connections, which must not be shared
        self._context = multiprocessing.get_context("spawn")
        # nothing is ever sent: the workers end when this end is closed, by `shutdown` or because this process is gone
        self._alive, self._open = self._context.Pipe(duplex=False)
        self._pool = self._new_pool()

    def _new_pool(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(self._processes, self._context, initializer=jobs.begin, initargs=(self._alive,))

    async def on(self, job: Callable[..., T], campaign: Campaign, *args: Any) -> T:
        """Run a job on a campaign and wait for it; if its process is killed, run it once more."""
        if self._waiting >= _MOST_WAITING:
            raise Problem(503, "too many fits and checks wait already: try again", "busy", {"Retry-After": "10"})
        self._waiting += 1
        try:
            return await self._done(lambda: self._submit(job, self._url, campaign.name, *args))
        finally:
            self._waiting -= 1

    async def refit_now(self, campaign: Campaign) -> bool:
        """Refit a campaign and wait for it; False if there was nothing to do or the learner failed."""
        from evenhand.campaign.models import LEASE_SECONDS

        state = await asyncio.to_thread(lambda: campaign.state)
        if not state.fresh:
            return False
        wanted = max(state.arrived)
        # the process that held the lease may have been killed: it expires, and then the fit is done again
        await self._wait_for_scores(campaign, wanted, 2 * LEASE_SECONDS + _FIT_SECONDS, _is_unscored)
        return not await asyncio.to_thread(_is_unscored, campaign, wanted)

    async def _done(self, submit: Callable[[], Future[T]]) -> T:
        for _ in range(_TRIES - 1):
            with suppress(BrokenProcessPool):
                return await asyncio.wrap_future(submit())
        return await asyncio.wrap_future(submit())

    def _submit(self, job: Callable[..., T], *args: Any) -> Future[T]:
        with self._lock:
            try:
                return self._pool.submit(job, *args)
            except BrokenProcessPool:
                self._pool.shutdown(wait=False, cancel_futures=True)
                self._pool = self._new_pool()
                return self._pool.submit(job, *args)

    def refit_soon(self, campaign: Campaign) -> Future[bool]:
        """Queue a refit of a campaign; if one is already waiting, return that one."""
        with self._lock:
            waiting = self._refits.get(campaign.name)
        # a running one may have begun before the newest labels came: another one follows it
        if waiting is not None and not waiting.running() and not waiting.done():
            return waiting
        future = self._submit(jobs.refit, self._url, campaign.name)
        with self._lock:
            self._refits[campaign.name] = future
        future.add_done_callback(self._count)
        return future

    def begin_refit(self, campaign: Campaign) -> bool:
        """Begin a refit if labels came since the last one; False if there is nothing to fit."""
        wanted = _newest(campaign.state)
        if wanted is not None:
            self.refit_soon(campaign)
        return wanted is not None

    def wanted(self, campaign: Campaign) -> int | None:
        """The event that scores should rest on before the next ask; None, after starting it, for a background refit."""
        state = campaign.state
        if state.settings["refit"] == "background":
            self.begin_refit(campaign)
            return None
        wanted = _newest(state)
        return wanted if wanted is not None and campaign.refit_due(state) else None

    async def wait_for_scores(self, campaign: Campaign, wanted: int, seconds: float) -> None:
        """Wait until the scores rest on this event or a later one, but no longer than `seconds`."""
        await self._wait_for_scores(campaign, wanted, seconds, _is_behind)

    async def _wait_for_scores(
        self, campaign: Campaign, wanted: int, seconds: float, needed: Callable[[Campaign, int], bool]
    ) -> None:
        clock = asyncio.get_running_loop().time
        until = clock() + seconds
        # repeatedly: another server may be refitting, or the running fit may have begun before these labels came
        while (left := until - clock()) > 0 and await asyncio.to_thread(needed, campaign, wanted):
            future = asyncio.wrap_future(self.refit_soon(campaign))
            future.add_done_callback(lambda done: done.cancelled() or done.exception())
            await asyncio.wait([future], timeout=left)  # which leaves the fit alone when time is up
            if future.done() and (future.exception() is not None or not future.result()):
                await asyncio.sleep(_POLL_SECONDS)

    def _count(self, future: Future[bool]) -> None:
        failed = future.cancelled() or future.exception() is not None
        self._observer.refits.labels("failed" if failed else "done" if future.result() else "nothing to do").inc()

    def shutdown(self) -> None:
        """End the processes; a running fit is cut off, and another server takes over its lease."""
        with self._lock:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._open.close()
            self._alive.close()


def _newest(state: State) -> int | None:
    """The event of the newest labels if a fit would give other scores; None if it would not."""
    if state.settings["learner"] is None or not state.fresh or state.columns is None or state.closed is not None:
        return None
    newest = max(state.arrived)
    # a learner that failed on these labels would only fail again
    return newest if state.failure is None or state.failure["rests_on"] < newest else None


def _is_unscored(campaign: Campaign, wanted: int) -> bool:
    """Whether this event has neither scores that rest on it nor a failure in place of them."""
    state = campaign.state
    failed = state.failure is not None and state.failure["rests_on"] >= wanted
    idle = state.closed is not None or state.settings["learner"] is None or state.columns is None
    return state.scores_rest_on < wanted and not failed and not idle


def _is_behind(campaign: Campaign, wanted: int) -> bool:
    """Whether the next ask should wait for such scores."""
    return _is_unscored(campaign, wanted) and campaign.refit_due(campaign.seen)

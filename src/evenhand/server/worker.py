"""Fits in a process of their own, so that nobody who asks or tells waits for one."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures import TimeoutError as TooLong
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar

from evenhand.campaign import Campaign
from evenhand.server import jobs
from evenhand.server.observing import Observer

__all__ = ["Worker"]

T = TypeVar("T")
P = ParamSpec("P")


class Worker:
    """Runs jobs on one database in other processes.

    Args:
        url: the database.
        processes: how many jobs run at once.
        observer: counts refits.
    """

    def __init__(self, url: str, processes: int, observer: Observer) -> None:
        self._url, self._processes, self._observer = url, processes, observer
        self._lock = threading.Lock()
        self._refits: dict[str, Future[bool]] = {}
        self._pool = self._new_pool()

    def _new_pool(self) -> ProcessPoolExecutor:
        # a new interpreter, not a fork: this process has threads and connections, which must not be shared
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self._processes, context, initializer=jobs.begin)

    def run(self, job: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do a job and wait for it; once more where its process was killed."""
        try:
            return self._submit(job, *args, **kwargs).result()
        except BrokenProcessPool:
            return self._submit(job, *args, **kwargs).result()

    def _submit(self, job: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        with self._lock:
            try:
                return self._pool.submit(job, *args, **kwargs)
            except BrokenProcessPool:
                self._pool.shutdown(wait=False, cancel_futures=True)
                self._pool = self._new_pool()
                return self._pool.submit(job, *args, **kwargs)

    def on(self, job: Callable[..., T], campaign: Campaign, *args: Any) -> T:
        """Do a job on a campaign and wait for it."""
        return self.run(job, self._url, campaign.name, *args)

    def refit_soon(self, campaign: Campaign) -> Future[bool]:
        """A refit of a campaign; the one that is waiting already, if there is one."""
        with self._lock:
            waiting = self._refits.get(campaign.name)
        # one that runs may have begun before the newest labels came: it is followed by another
        if waiting is not None and not waiting.running() and not waiting.done():
            return waiting
        future = self._submit(jobs.refit, self._url, campaign.name)
        with self._lock:
            self._refits[campaign.name] = future
        future.add_done_callback(self._count)
        return future

    def bring_up(self, campaign: Campaign, seconds: float) -> None:
        """Have the scores brought up to date where the campaign's settings want it; waits so long at most."""
        state = campaign.store.refresh()
        if state.settings["learner"] is None or not state.fresh or state.columns is None or state.closed is not None:
            return
        if state.settings["refit"] == "background":
            self.refit_soon(campaign)
        elif campaign.store.trainer.due(state):
            with suppress(TooLong, BrokenProcessPool):  # the ask says how old its scores are
                self.refit_soon(campaign).result(seconds)

    def _count(self, future: Future[bool]) -> None:
        failed = future.cancelled() or future.exception() is not None
        self._observer.refits.labels("failed" if failed else "done" if future.result() else "nothing to do").inc()

    def shutdown(self) -> None:
        """End the processes; a fit that is under way is cut off, and another server takes its lease over."""
        with self._lock:
            self._pool.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():
            process.terminate()

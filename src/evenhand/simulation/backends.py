"""Where the work runs: in this process, in processes on this machine, or on a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from evenhand.errors import InputError

BACKENDS = ("processes", "dask")

_DEATHS = 5
"""How many times processes that died are replaced before giving up."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of one item: its position, and the value or the error it ended with."""

    index: int
    value: Any = None
    error: Exception | None = None


def check_backend(backend: str, address: str | None) -> None:
    """Refuse an unknown backend, or a cluster without its address."""
    if backend not in BACKENDS:
        raise InputError(f"backend must be one of {', '.join(BACKENDS)}, not {backend!r}")
    # no default: somebody else's cluster would silently run the work
    if backend == "dask" and not address:
        raise InputError("backend dask needs the scheduler's address, e.g. tcp://10.0.0.5:8786")
    if backend != "dask" and address:
        raise InputError(f"an address belongs to backend dask, not to {backend!r}")


def spread(
    function: Callable[[Any], Any],
    items: Sequence[object],
    *,
    jobs: int = 1,
    backend: str = "processes",
    address: str | None = None,
) -> Iterator[Outcome]:
    """Yield `function(item)` for every item as the calls complete, in any order.

    An item whose worker dies is run again. An item that raises gives an outcome with the error; the others continue.

    Args:
        function: a function that workers can import from a module.
        items: the arguments it is called with, one by one.
        jobs: how many processes, for the backend `processes`; 1 stays in this process.
        backend: `processes` or `dask`.
        address: the Dask scheduler's address.

    >>> sorted(outcome.value for outcome in spread(abs, [-1, -2]))
    [1, 2]
    """
    check_backend(backend, address)
    if backend == "dask":
        yield from _cluster(function, items, str(address))
    elif jobs == 1 or len(items) < 2:
        for index, item in enumerate(items):
            # without a pool of processes: a debugger and Ctrl-C work, and small runs start at once
            yield _attempt(function, index, item)
    else:
        yield from _processes(function, items, jobs)


def _attempt(function: Callable[[Any], Any], index: int, item: Any) -> Outcome:
    try:
        return Outcome(index, function(item))
    except Exception as error:
        return Outcome(index, error=error)


def _processes(function: Callable[[Any], Any], items: Sequence[object], jobs: int) -> Iterator[Outcome]:
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    waiting = set(range(len(items)))
    for death in range(_DEATHS + 1):
        # a process killed for its memory takes the whole
        # pool with it; only what is missing is started again
        work = (delayed(_attempt)(function, i, items[i]) for i in sorted(waiting))
        try:
            for outcome in Parallel(n_jobs=jobs, return_as="generator_unordered")(work):
                waiting.discard(outcome.index)
                yield outcome
            return
        except TerminatedWorkerError:
            if death == _DEATHS:
                raise


def _cluster(function: Callable[[Any], Any], items: Sequence[object], address: str) -> Iterator[Outcome]:
    try:
        distributed: Any = import_module("distributed")
    except ImportError:
        raise InputError("backend dask needs an extra: pip install 'evenhand[dask]'") from None
    try:
        client = distributed.Client(address, timeout="10s", set_as_default=False)
    except OSError as error:
        raise InputError(f"no Dask scheduler answers at {address}: {error}") from None
    with client:
        # the scheduler keeps each item, so what a dead worker held is run again elsewhere
        futures = {client.submit(function, item, pure=False): i for i, item in enumerate(items)}
        for future in distributed.as_completed(list(futures), loop=client.loop):
            index = futures.pop(future)
            if future.status == "finished":
                yield Outcome(index, future.result())
            else:
                yield Outcome(index, error=_reason(future))
            future.release()


def _reason(future: Any) -> Exception:
    error = future.exception()
    return error if isinstance(error, Exception) else RuntimeError(f"the cluster gave it up: {future.status}")

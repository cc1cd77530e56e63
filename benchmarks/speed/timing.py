"""Timing, results and the machine they belong to."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

__all__ = ["Outcome", "best", "once", "processor"]


@dataclass(frozen=True)
class Outcome:
    """One benchmark: our time and the baseline's per `unit`, in seconds (or bytes), and what it should reach."""

    name: str
    work: str
    baseline: str
    unit: str
    ours: float
    theirs: float
    target: float
    note: str = ""

    @property
    def ratio(self) -> float:
        """How many times better than the baseline; for memory, how many times the bytes drawn."""
        return self.ours / self.theirs if self.unit == "bytes" else self.theirs / self.ours

    @property
    def reached(self) -> bool:
        """Whether the target is met."""
        return self.ratio <= self.target if self.unit == "bytes" else self.ratio >= self.target

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self) | {"ratio": self.ratio, "reached": self.reached}


def once(work: Callable[[], object]) -> float:
    """Processor seconds of one call."""
    started = time.process_time()
    work()
    return time.process_time() - started


def best(work: Callable[[], object], repeats: int) -> float:
    """Processor seconds of the best of several calls."""
    return min(once(work) for _ in range(repeats))


def processor() -> str:
    """The name of this machine's processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    found = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    return (
        f"{found.get('model name', platform.machine())} (family {found.get('cpu family')}, model {found.get('model')})"
    )

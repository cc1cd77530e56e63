"""Where and how precisely networks run: device, threads, precision, and random numbers that repeat."""

from __future__ import annotations

import importlib.util
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from evenhand.errors import InputError

if TYPE_CHECKING:
    import torch


_PROBE = """
import torch
torch.set_num_threads(1)
net = torch.nn.Sequential(torch.nn.Conv2d(3, 32, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(32 * 36, 64))
with torch.autocast("cpu", dtype=torch.bfloat16):
    out = net(torch.randn(40, 3, 8, 8)).float().square().mean()
out.backward()
assert bool(torch.isfinite(out))
"""


class MissingTorch(InputError, ImportError):
    """PyTorch is not installed; the message gives the command that installs it."""


def require_torch() -> None:
    """Refuse to go on without PyTorch."""
    if importlib.util.find_spec("torch") is None:
        raise MissingTorch('networks need PyTorch, which is not installed: pip install "evenhand[torch]"')


def choose_device(name: str) -> torch.device:
    """The device of that name; `"auto"` is a GPU where there is one, else the CPU."""
    import torch

    found = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        device = torch.device(found if name == "auto" else name)
    except RuntimeError:
        raise InputError(f"unknown device {name!r}: use 'auto', 'cpu', 'cuda', 'cuda:1' or 'mps'") from None
    known = torch.cuda.device_count() if device.type == "cuda" else int(device.type in ("cpu", found))
    if device.type not in ("cpu", "cuda", "mps") or known <= (device.index or 0):
        raise InputError(f"device {name!r} was asked for, but PyTorch finds none here: use device='auto' or 'cpu'")
    return device


def check_precision(precision: str, device: torch.device) -> None:
    """Refuse bfloat16 where a child process that tries it does not survive."""
    if precision != "bf16" or device.type != "cpu":
        return
    # an unsupported instruction kills the process outright, which no except can catch
    code = probe_bf16()
    if code:
        why = f"dies with {signal.Signals(-code).name}" if code < 0 else "fails"
        raise InputError(
            f"precision='bf16' {why} on this processor: use precision='float32', or try again with "
            "ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 set before Python starts"
        )


@lru_cache(maxsize=1)
def probe_bf16() -> int:
    """The exit code of a child process that computes in bfloat16; an illegal instruction kills only the child."""
    return subprocess.run([sys.executable, "-c", _PROBE], capture_output=True, check=False).returncode


@contextmanager
def seeded(seed: int, number: int, device: torch.device) -> Iterator[None]:
    """Set PyTorch's random numbers by seed and number inside the block, and restore them afterwards."""
    import torch

    state = np.random.SeedSequence([seed, number]).generate_state(1, np.uint64)[0]
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        # PyTorch takes seeds of 63 bits
        torch.manual_seed(int(state >> np.uint64(1)))
        yield


@contextmanager
def on_threads(number: int) -> Iterator[None]:
    """Run PyTorch on this many CPU threads inside the block, and on as many as before afterwards."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)

"""Files that are either whole or not there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file beside `path`, then rename it to `path` in one step."""
    # in the same folder, since a file can be put in another's place only within one file
    # system; with the process's number, because two may write the same file at once
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        write(partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)

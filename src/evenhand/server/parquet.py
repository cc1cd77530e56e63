"""Parquet files from outside are first read in a separate process, which may crash without harm.

A file of a few kilobytes can unpack to terabytes, and what it says about its own size need not be true. So it is
unpacked once, a little at a time, in a process with limited memory; the server reads only files that pass.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from evenhand.errors import InputError
from evenhand.server.problems import Problem

if TYPE_CHECKING:
    from evenhand.tables.dialect import Format
    from evenhand.tables.frame import Frame

__all__ = ["DELIVERY", "POOL", "Limits", "read_table", "rehearse"]


class Limits(NamedTuple):
    """The most that a table may unpack to: cells, which are rows times columns, and bytes."""

    cells: int
    bytes: int


POOL = Limits(50_000_000, 2**30)
DELIVERY = Limits(2_500_000, 2**27)  # its rows become objects one by one
_SECONDS = 120.0
_SPARE_BYTES = 2**28
_ROWS = 256
_TOO_LARGE, _UNUSABLE = 3, 4


def read_table(data: Path | bytes, limits: Limits, form: Format | None = None, name: str | None = None) -> Frame:
    """The table in a file or in its bytes, refused if it unpacks to more than these limits; `name` is that of bytes."""
    from evenhand.tables.reading import read

    frame = read(data, form, name=name, largest=limits.bytes)
    if (cells := len(frame) * len(frame.schema.names)) > limits.cells:
        raise Problem(413, f"the table has {cells:,} cells, and {limits.cells:,} are the most: send it in parts")
    return frame


def rehearse(path: Path, limits: Limits) -> None:
    """Refuse a Parquet file that cannot be read, or that would unpack to more than these limits."""
    command = [sys.executable, "-P", "-m", "evenhand.server.parquet", str(path), *map(str, limits)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, errors="replace")
    except subprocess.TimeoutExpired:
        raise Problem(413, f"reading the table took more than {_SECONDS:g} seconds: send it in parts") from None
    if done.returncode == _UNUSABLE:
        raise InputError(f"the body cannot be read as Parquet: {done.stderr.strip()[:300]}")
    if done.returncode == _TOO_LARGE:
        raise Problem(413, f"{done.stderr.strip()[:300]}: send it in parts")
    if done.returncode != 0:
        raise Problem(413, "the table cannot be read within the memory there is for it: send it in parts")


def _main(path: str, limits: Limits) -> int:
    """Unpack a file with limited memory; the exit code tells the outcome."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pa.set_memory_pool(pa.system_memory_pool())
    pa.set_cpu_count(1)
    _limit_memory(2 * limits.bytes + _SPARE_BYTES)
    try:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            about, schema = file.metadata, file.schema_arrow
            nested = next((field.name for field in schema if pa.types.is_nested(field.type)), None)
            if nested is not None:
                return _say(_UNUSABLE, f"the column {nested!r} has values within values")
            if about.num_rows * max(1, about.num_columns) > limits.cells:
                return _say(_TOO_LARGE, f"the table has {about.num_rows} rows of {about.num_columns} columns")
            rows = size = 0
            for batch in file.iter_batches(_ROWS, use_threads=False):
                rows, size = rows + batch.num_rows, size + sum(_plain(column).nbytes for column in batch.columns)
                if rows * max(1, about.num_columns) > limits.cells or size > limits.bytes:
                    return _say(_TOO_LARGE, f"the table has more than {limits.bytes} bytes")
    except (pa.ArrowMemoryError, MemoryError):
        return _say(_TOO_LARGE, "the table does not fit in memory")
    except (pa.ArrowException, OSError, ValueError) as error:
        return _say(_UNUSABLE, str(error))
    return 0


def _plain(column: Any) -> Any:
    """A column with every value written out: in a dictionary, one long text may stand for as many copies as rows."""
    return column.dictionary_decode() if hasattr(column, "dictionary_decode") else column


def _say(code: int, text: str) -> int:
    print(text, file=sys.stderr)
    return code


def _limit_memory(count: int) -> None:
    try:
        import resource
    except ImportError:  # Windows: the time and the counts still hold
        return
    pages = Path("/proc/self/statm")
    used = int(pages.read_text().split()[0]) * resource.getpagesize() if pages.exists() else 0
    resource.setrlimit(resource.RLIMIT_AS, (used + count, used + count))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1], Limits(*map(int, sys.argv[2:]))))

"""How a text file is written: packing, encoding, separator. Told in one place, from its first bytes, and shown."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from evenhand.tables.problems import TableError

__all__ = ["PACKED", "Dialect", "Format", "Text", "tell"]

SEPARATORS = (",", ";", "\t", "|")
SAMPLE = 1 << 20
LARGEST_UNPACKED = 8 << 30
"""No more than this is unpacked: a few bytes may stand for a terabyte."""
PACKED = (".gz", ".bz2", ".zst", ".lz4", ".zip")
"""The endings of packed files."""
_PACKED = (
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"BZh", "bz2"),
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"PK\x03\x04", "zip"),
)
_EXCEL = "sep="
# not `splitlines`, which also parts at signs that may stand within a cell
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


@dataclass(frozen=True)
class Format:
    """What a user says of a text file; the rest is told from the file.

    Attributes:
        separator: what separates the cells.
        decimal: the decimal mark of numbers.
        encoding: how the text is encoded.
    """

    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None

    def given(self) -> list[str]:
        """The names of what was said."""
        return [name for name in ("separator", "decimal", "encoding") if getattr(self, name) is not None]


@dataclass(frozen=True)
class Text:
    """Where the bytes of a text file are: a path, or bytes at hand that have a name."""

    name: str
    at: Path | bytes
    largest: int = LARGEST_UNPACKED

    @property
    def size(self) -> int:
        """The number of bytes, as they are stored."""
        return len(self.at) if isinstance(self.at, bytes) else self.at.stat().st_size

    @property
    def packed(self) -> str | None:
        """How the file is packed, by its first bytes; None where it is not."""
        with self._raw() as file:
            start = file.read(4)
        return next((kind for mark, kind in _PACKED if start.startswith(mark)), None)

    @contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        """The text's bytes, unpacked; a zip archive must hold one file."""
        kind, ending = self.packed, Path(self.name).suffix.lower()
        if kind is None and ending in PACKED:
            raise TableError(f"{self.name} cannot be unpacked: it is no {ending} file.")
        try:
            with self._raw() as file:
                if kind is None:
                    yield file
                elif kind == "zip":
                    with zipfile.ZipFile(file) as archive, archive.open(self._one(archive)) as inside:
                        yield _Limited(inside, self)  # type: ignore[misc]
                else:
                    with pa.CompressedInputStream(pa.PythonFile(file, mode="r"), kind) as inside:
                        yield _Limited(inside, self)  # type: ignore[misc]
        # RuntimeError: it needs a password
        except (zipfile.BadZipFile, EOFError, OSError, RuntimeError, NotImplementedError) as error:
            what = "read" if kind is None else "unpacked"
            raise TableError(f"{self.name} cannot be {what}: {error}") from None

    def _raw(self) -> IO[bytes]:
        return io.BytesIO(self.at) if isinstance(self.at, bytes) else self.at.open("rb")

    def _one(self, archive: zipfile.ZipFile) -> zipfile.ZipInfo:
        inside = [each for each in archive.infolist() if not each.is_dir() and not each.filename.startswith("__MACOSX")]
        if len(inside) != 1:
            raise TableError(f"{self.name} holds {len(inside)} files; one table is one file.")
        return inside[0]


class _Limited(io.RawIOBase):
    """A stream that refuses to unpack without end."""

    def __init__(self, stream: Any, text: Text) -> None:
        self._stream, self._text, self._left = stream, text, text.largest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        found = self.read(len(buffer))
        buffer[: len(found)] = found
        return len(found)

    def read(self, size: int = -1) -> bytes:
        found: bytes = self._stream.read(self._left + 1 if size < 0 else size)
        self._left -= len(found)
        if self._left < 0:
            raise TableError(
                f"{self._text.name} unpacks to more than {self._text.largest >> 20:,} MiB: unpack it first."
            )
        return found


@dataclass(frozen=True)
class Dialect:
    """How a text file is written.

    Attributes:
        names: its columns.
        separator, encoding, packed: how it is written.
        skipped: the lines before the header, such as Excel's `sep=;`.
    """

    names: tuple[str, ...]
    separator: str
    encoding: str
    packed: str | None
    skipped: int

    def __str__(self) -> str:
        """What a user is shown: the separator, and what is unusual.

        >>> str(Dialect(("a", "b"), ";", "utf-8", None, 0))
        'separator ;'
        """
        marks = {"\t": "tab"}
        said = [f"separator {marks.get(self.separator, self.separator)}"]
        said += [f"encoding {self.encoding}"] if self.encoding not in ("utf-8", "utf-8-sig") else []
        return ", ".join(said + ([self.packed] if self.packed else []))


def tell(text: Text, form: Format) -> Dialect:
    """The dialect of a text file, from its beginning; what the user says of it stands."""
    with text.opened() as file:
        start = _some(file)
    if not start.strip(b"\xef\xbb\xbf\xff\xfe\0 \t\r\n"):
        raise TableError(f"{text.name} is empty.")
    encoding = form.encoding or _encoding(start)
    lines = _LINE.findall(_decoded(text.name, start, encoding))
    skipped = next((i for i, line in enumerate(lines) if line.strip()), None)
    if skipped is None:
        raise TableError(f"{text.name} is empty.")
    said = None
    if lines[skipped].lower().startswith(_EXCEL) and len(lines[skipped].strip()) == len(_EXCEL) + 1:
        said, skipped = lines[skipped].strip("\r\n")[len(_EXCEL)], skipped + 1
    body = lines[skipped:]
    _refuse_comment(text.name, body)
    usual = said or _separator(text, body)
    separator = form.separator or usual
    if len(separator) != 1:
        raise TableError(f"the separator must be one character, got {separator!r}.")
    if form.decimal not in (None, ".", ",") or separator == form.decimal:
        raise TableError(f"separator {separator!r} and decimal {form.decimal!r} do not make a CSV file.")
    names = _header(text.name, body, separator)
    if len(names) == 1 and separator != usual and len(_header(text.name, body, usual)) > 1:
        raise TableError(f"{text.name} looks separated by {usual!r}: say separator={usual!r} (--separator).")
    return Dialect(tuple(names), separator, encoding, text.packed, skipped)


def _some(file: IO[bytes]) -> bytes:
    parts, wanted = [], SAMPLE
    while wanted > 0 and (part := file.read(wanted)):
        parts.append(part)
        wanted -= len(part)
    return b"".join(parts)


def _encoding(start: bytes) -> str:
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"  # what Excel calls "Unicode text"
    return "utf-8-sig" if start[:3] == b"\xef\xbb\xbf" else "utf-8"


def _decoded(name: str, start: bytes, encoding: str) -> str:
    try:
        return io.IncrementalNewlineDecoder(_decoder(encoding), translate=False).decode(start)
    except UnicodeDecodeError as error:
        raise wrong_encoding(name, encoding, error.reason) from None


def _decoder(encoding: str) -> Any:
    import codecs

    try:
        return codecs.getincrementaldecoder(encoding)()
    except (LookupError, ValueError, TypeError):
        raise TableError(f"unknown encoding {encoding!r}; try 'utf-8', 'latin-1' or 'utf-16'.") from None


def wrong_encoding(name: str, encoding: str, reason: str) -> TableError:
    """The error for a file that is not text in an encoding; latin-1 reads any bytes, so it is offered."""
    shown = "utf-8" if encoding == "utf-8-sig" else encoding
    return TableError(
        f"{name} is not written in {shown} ({reason}); say its encoding, e.g. encoding='latin-1' (--encoding latin-1)."
    )


def _refuse_comment(name: str, lines: list[str]) -> None:
    """Refuse a line of comment before the header: its separators are not those of the table."""
    first, second = (*lines, "")[:2]
    if first.lstrip().startswith("#") and max(map(second.count, SEPARATORS)) > max(map(first.count, SEPARATORS)):
        raise TableError(
            f"{name} begins with a comment ({first.strip()[:60]!r}): remove it, the first line names the columns."
        )


def _separator(text: Text, lines: list[str]) -> str:
    """By the header, whose names seldom hold separators; cells often do."""
    if Path(text.name).suffixes[:1] == [".tsv"]:
        return "\t"
    return max(SEPARATORS, key=lambda mark: len(_header(text.name, lines, mark)))


def _header(name: str, lines: list[str], separator: str) -> list[str]:
    csv.field_size_limit(SAMPLE)
    try:
        return next(csv.reader(lines, delimiter=separator), [])
    except csv.Error as error:
        raise TableError(f"{name} cannot be read as CSV: its first line: {error}.") from None

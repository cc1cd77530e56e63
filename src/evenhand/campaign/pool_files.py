"""The Parquet files of a pool, which stay where they are: how a change of one is noticed."""

from __future__ import annotations

import hashlib
from pathlib import Path

from evenhand.notation import JsonObject

__all__ = ["digest_of_files", "file_facts", "stamp"]


def file_facts(path: Path) -> JsonObject:
    """What the ledger keeps of a pool's file: where it is, its stamp and its digest."""
    path = path.absolute()
    return {"path": str(path), **stamp(path), "digest": digest_of_files(path)}


def _files(path: Path) -> list[Path]:
    return sorted(path.rglob("*.parquet")) if path.is_dir() else [path]


def stamp(path: Path) -> JsonObject:
    """The size and time of the files, which show whether one has changed."""
    stats = [file.stat() for file in _files(path)]
    return {"size": sum(s.st_size for s in stats), "mtime": max((s.st_mtime_ns for s in stats), default=0)}


def digest_of_files(path: Path) -> str:
    """A fingerprint of the files' names and content."""
    found = hashlib.blake2b(digest_size=16)
    for file in _files(path):
        if path.is_dir():
            # names and sizes too: else rows moved from one file to the next would go unnoticed
            found.update(f"{file.relative_to(path).as_posix()}\0{file.stat().st_size}\0".encode())
        with file.open("rb") as opened:
            while block := opened.read(1 << 22):
                found.update(block)
    return found.hexdigest()

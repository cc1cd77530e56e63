"""Data files by name: from a user's folder, or downloaded once from their official address and checked."""

from __future__ import annotations

import hashlib
import os
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from evenhand.errors import InputError
from evenhand.files import write_atomically

_CHUNK = 1 << 20


@dataclass(frozen=True)
class Remote:
    """A file of a data set: its name, its address, its published SHA-256 or MD5."""

    name: str
    url: str
    digest: str

    def check(self, path: Path) -> None:
        """Refuse a file that is not the original."""
        kind = "sha256" if len(self.digest) == 64 else "md5"
        with path.open("rb") as file:
            found = hashlib.file_digest(file, kind).hexdigest()
        if found != self.digest:
            raise InputError(f"{path.name} is not the original: its {kind} is {found}, not {self.digest}; get it again")


def data_folder(data_dir: str | Path | None) -> Path:
    """The folder for data sets: the one given, that of `EVENHAND_DATA`, or a cache in the home folder."""
    named = data_dir or os.environ.get("EVENHAND_DATA")
    return Path(named) if named else Path.home() / ".cache" / "evenhand"


def find(files: tuple[Remote, ...], folder: str, data_dir: str | Path | None) -> list[Path]:
    """The paths of these files in `folder` of the data folder; those that are missing are downloaded there."""
    home = data_folder(data_dir)
    paths = []
    for file in files:
        path = next((p for p in (home / folder / file.name, home / file.name) if p.exists()), home / folder / file.name)
        if not path.exists():
            download(file, path)
        file.check(path)
        paths.append(path)
    return paths


def download(file: Remote, path: Path) -> None:
    """Fetch a file with a progress bar, check it, and only then put it in its place."""
    from evenhand.progress import bar

    path.parent.mkdir(parents=True, exist_ok=True)

    def fetch(partial: Path) -> None:
        with urllib.request.urlopen(file.url, timeout=60) as response, partial.open("wb") as out:
            show = bar(file.name, int(response.headers.get("Content-Length") or 0))
            while chunk := response.read(_CHUNK):
                out.write(chunk)
                show(len(chunk))
            show(0)
        # before it is put in its place: half a file would be taken for the whole next time
        file.check(partial)

    try:
        write_atomically(path, fetch)
    except (urllib.error.URLError, TimeoutError) as error:
        raise InputError(
            f"{file.name} is not in {path.parent} and could not be had from {file.url} ({error}): put the file into a "
            "folder and name it with EVENHAND_DATA or data_dir (--data-dir)"
        ) from error

"""Campaigns as files: saves one, and backs up and restores all those of a database."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from evenhand.errors import InputError, LedgerError
from evenhand.files import write_atomically
from evenhand.ledger import Ledger, copy, open_ledger

__all__ = ["backup", "open_backup", "restore", "save"]


def save(ledger: Ledger, name: str, path: str | PathLike[str]) -> None:
    """Write one campaign to a ledger file; a file that holds an earlier stage of the same campaign is replaced."""
    target = Path(path)
    if target.exists():
        _check_earlier_stage(ledger, name, target)
    _write(ledger, target, [name])


def backup(ledger: Ledger, path: str | PathLike[str]) -> list[str]:
    """Write all campaigns to a new ledger file, each as it is at one moment, while they run; gives their names."""
    target = Path(path)
    if target.exists():
        raise InputError(f"{target} is there already: name a new file for the backup")
    return _write(ledger, target, None)


def open_backup(path: str | PathLike[str]) -> Ledger:
    """The ledger of a backup file."""
    source = Path(path)
    if not source.exists():
        raise InputError(f"there is no backup {str(source)!r}")
    try:
        return open_ledger(_url(source), read_only=True)
    except LedgerError as error:
        raise InputError(f"{source} is no backup: {error}") from None


def restore(kept: Ledger, ledger: Ledger, names: list[str] | None = None) -> list[str]:
    """Put campaigns of a backup into a database that does not have them; gives their names."""
    wanted = list(kept.campaigns()) if names is None else names
    there = sorted(set(wanted) & ledger.campaigns().keys())
    if there:
        raise InputError(f"there is a campaign {there[0]!r} already: restore into a new database")
    return copy(kept, ledger, wanted)


def _write(ledger: Ledger, target: Path, names: list[str] | None) -> list[str]:
    found: list[str] = []

    def write(part: Path) -> None:
        # a file that is not in its place yet need not survive a crash event by event
        with open_ledger(_url(part) + "?synchronous=normal", create=True) as file:
            found.extend(copy(ledger, file, names))
            file.checkpoint()

    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(target, write)
    # SQLite would read the log of the file that stood here before into the new one
    for end in ("-wal", "-shm"):
        target.with_name(f"{target.name}{end}").unlink(missing_ok=True)
    return found


def _check_earlier_stage(ledger: Ledger, name: str, target: Path) -> None:
    """Refuse to replace anything but an earlier stage of the same campaign."""
    refused = InputError(f"{target} is there already and is not an earlier save of {name!r}: name a new file")
    try:
        with open_ledger(_url(target), read_only=True) as kept:
            # saving a campaign over the database it lives in would cut it off from its other processes
            if list(kept.campaigns()) != [name] or kept.name == ledger.name:
                raise refused
            with kept.reading(kept.find(name)) as old, ledger.reading(ledger.find(name)) as new:
                events = old.events()
                if events != new.events(limit=len(events)):
                    raise refused
    except (InputError, LedgerError):
        raise refused from None


def _url(path: Path) -> str:
    return f"sqlite:///{path.absolute()}"

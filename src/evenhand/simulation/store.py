"""Finished trials on disk: a folder for each setting, a file for each block of trials."""

from __future__ import annotations

import hashlib
import json
import shutil
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from evenhand.engine.run import Record
from evenhand.errors import InputError
from evenhand.files import write_atomically
from evenhand.notation import JsonObject

__all__ = ["Store", "key_of", "read_record"]

_Kind = TypeVar("_Kind", bound=np.generic)
_LONGEST, _SCATTERED = 150, "scattered-"
_BY_ROUND = ("labels", "chosen", "kind", "counts", "validation_loss", "accuracy", "risk")
_AT_END = ("final_accuracy", "final_risk", "chosen_accuracy", "chosen_risk")
# half the size on disk; all values fit, and `read_record` gives them back as they were
_SMALL = {"labels": np.int32, "chosen": np.int16, "kind": np.int8, "counts": np.int32}


def key_of(settings: Mapping[str, object]) -> str:
    """A short name that depends on the settings alone."""
    # sorted, because the order in which settings were put together says nothing about them
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]


class Store:
    """Trials that are done, found again by their settings and number.

    Other settings go to another folder, so old and new results are never mixed. Files appear whole or not at all.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def missing(self, settings: Mapping[str, object], trials: Iterable[int]) -> list[int]:
        """The trials that are not in the store yet."""
        kept = {trial for path in self._files(settings) for trial in _numbers(path)}
        return [trial for trial in trials if trial not in kept]

    def refuse_others(self, wanted: Sequence[Mapping[str, object]]) -> None:
        """Refuse a store whose trials all have other settings; the message says which setting differs."""
        kept = [json.loads(path.read_text(encoding="utf-8")) for path in self.folder.glob("*/settings.json")]
        # some of the wanted ones are there: others beside them are of an earlier comparison, and do no harm
        if not kept or any(self._files(settings) for settings in wanted):
            return
        # the nearest pair: the message then names what was changed, not everything
        was, now = min(product(kept, wanted), key=lambda pair: len(_differing(*pair)))
        differ = ", ".join(f"{key} was {was.get(key)!r}, is {now.get(key)!r}" for key in _differing(was, now))
        raise InputError(f"cannot go on from the trials in {self.folder}, their settings differ: {differ}")

    def clear(self) -> None:
        """Forget all trials; files that are not the store's own stay."""
        for path in self.folder.glob("*/settings.json"):
            # only folders with our own file in them: --out may be a folder that has other things too
            shutil.rmtree(path.parent)

    def put(self, settings: Mapping[str, object], record: Record) -> None:
        """Keep the trials of a record."""
        folder = self.folder / key_of(settings)
        folder.mkdir(parents=True, exist_ok=True)
        # nothing reads it but people, and `refuse_others`, which says what differs
        about = json.dumps(dict(settings), indent=2) + "\n"
        write_atomically(folder / "settings.json", lambda path: path.write_text(about, encoding="utf-8"))
        measured = {name: getattr(record, name) for name in (*_BY_ROUND, *_AT_END)}
        arrays = {
            name: array.astype(_SMALL.get(name, np.float64)) for name, array in measured.items() if array is not None
        }
        arrays |= {"trials": record.trials, "groups": np.array(record.groups), "seconds": np.array(record.seconds)}
        name = "+".join(f"{run[0]}-{run[-1]}" for run in _runs(record.trials.tolist()))
        if len(name) > _LONGEST:  # no file system takes it: such a file is opened to know its trials
            name = f"{_SCATTERED}{hashlib.sha256(name.encode()).hexdigest()[:16]}"
        write_atomically(folder / f"{name}.npz", lambda path: _write(path, arrays))

    def get(self, settings: Mapping[str, object], trials: Sequence[int]) -> Record | None:
        """One record of those of these trials that are stored, in this order; None if there are none."""
        records = []
        wanted = set(trials)
        for path in self._files(settings):
            if wanted & set(_numbers(path)):
                records.append(read_record(path))
                wanted -= set(_numbers(path))
        return _joined(records, trials) if records else None

    def _files(self, settings: Mapping[str, object]) -> list[Path]:
        return sorted((self.folder / key_of(settings)).glob("*.npz"))


def _differing(a: Mapping[str, object], b: Mapping[str, object]) -> list[str]:
    return [key for key in {**a, **b} if json.dumps(a.get(key)) != json.dumps(b.get(key))]


def _write(path: Path, arrays: JsonObject) -> None:
    with path.open("wb") as file:
        np.savez_compressed(file, **arrays)


def read_record(path: Path) -> Record:
    """The record a file holds."""
    try:
        with path.open("rb") as file, np.load(file) as kept:
            found = {name: kept[name] for name in kept.files}
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise InputError(f"{path} cannot be read ({error}): delete it and its trials are run again") from None
    found["groups"] = tuple(found["groups"].tolist())
    found["seconds"] = float(found["seconds"])
    for name in _SMALL:
        found[name] = found[name].astype(np.int64)
    return Record(**found)


def _joined(records: list[Record], trials: Sequence[int]) -> Record:
    """The records as one; trials that ended earlier repeat their last round with nothing chosen."""
    rounds = max(len(record.labels) for record in records)
    numbers = np.concatenate([record.trials for record in records])
    # the first one counts where two runs at once have kept the same trial
    place = {int(trial): i for i, trial in reversed(list(enumerate(numbers)))}
    order = np.array([place[trial] for trial in trials if trial in place])
    arrays: JsonObject = {}
    for name in _BY_ROUND:
        if getattr(records[0], name) is not None:
            parts = [_padded(getattr(record, name), rounds, name) for record in records]
            arrays[name] = np.concatenate(parts, axis=1)[:, order]
    for name in _AT_END:
        if getattr(records[0], name) is not None:
            arrays[name] = np.concatenate([getattr(record, name) for record in records])[order]
    return Record(
        groups=records[0].groups,
        trials=numbers[order],
        seconds=sum(record.seconds for record in records),
        **arrays,
    )


def _padded(values: NDArray[_Kind], rounds: int, name: str) -> NDArray[_Kind]:
    short = rounds - len(values)
    if not short:
        return values
    # as within a block: a trial that is over stays as it was, with nothing chosen
    last = np.repeat(values[-1:], short, axis=0)
    return np.concatenate([values, np.full_like(last, -1) if name in ("chosen", "kind") else last])


def _runs(numbers: list[int]) -> list[list[int]]:
    """Consecutive numbers together: [1, 2, 5] → [[1, 2], [5]]."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs


def _numbers(path: Path) -> list[int]:
    """The numbers of the trials in a file, from its name where they fit into one."""
    if path.stem.startswith(_SCATTERED):
        return [int(trial) for trial in read_record(path).trials]
    ends = [part.split("-") for part in path.stem.split("+")]
    return [trial for first, last in ends for trial in range(int(first), int(last) + 1)]

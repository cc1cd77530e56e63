"""What a stopped curation needs to resume, in its own file: the report is output only and may be changed or deleted."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from evenhand.curation.files import write_text
from evenhand.curation.rounds import Curation, Rounds
from evenhand.errors import InputError
from evenhand.notation import JsonObject

_SCHEMA = 2


def checkpoint_path(rows: Path) -> Path:
    """The checkpoint beside the chosen rows.

    >>> checkpoint_path(Path("train.parquet")).name
    'train.checkpoint.json'
    """
    return rows.with_suffix(".checkpoint.json")


@dataclass(frozen=True)
class Checkpoint:
    """The rounds of a run so far.

    Attributes:
        settings: what was run, as plain values.
        rounds: what happened in each round.
        rows: the row numbers chosen.
        digest: a fingerprint of these rows, by which the pool is recognised.
    """

    settings: JsonObject
    rounds: Rounds
    rows: list[int]
    digest: str

    @classmethod
    def of(cls, run: Curation, settings: dict[str, object]) -> Checkpoint:
        """The checkpoint of a run as it stands."""
        return cls(settings, run.rounds, run.rows.tolist(), run.table.digest_of_rows(run.rows))

    @classmethod
    def read(cls, path: Path) -> Checkpoint:
        """Read a checkpoint that `write` wrote."""
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            if found["schema"] != _SCHEMA:
                raise InputError(f"{path.name} was written by another version of Evenhand: run again without resuming.")
            return cls(found["settings"], Rounds(**found["rounds"]), found["rows"], found["digest"])
        except FileNotFoundError:
            raise InputError(f"there is nothing to resume from: {path.name} is not there.") from None
        except (json.JSONDecodeError, KeyError, TypeError, UnicodeDecodeError):
            raise InputError(f"{path.name} is not a checkpoint of curate: run again without resuming.") from None

    def write(self, path: Path) -> None:
        """Write the checkpoint whole or not at all."""
        text = json.dumps({"schema": _SCHEMA} | asdict(self), allow_nan=False)
        write_text(path, text)

    def check(self, settings: dict[str, object]) -> None:
        """Refuse settings other than those of the run, apart from the budget, which may grow."""
        # through JSON, since the earlier ones were: tuples are lists there
        now = json.loads(json.dumps(settings))
        differ = [key for key in now.keys() | self.settings.keys() if now.get(key) != self.settings.get(key)]
        if self.settings["budget"] <= now["budget"]:
            differ = [key for key in differ if key != "budget"]
        if differ:
            was = ", ".join(f"{key} was {self.settings.get(key)!r}, is {now.get(key)!r}" for key in sorted(differ))
            raise InputError(f"cannot resume, the settings differ: {was}. Only the budget may change, and only grow.")

"""What tests of several folders use: a clock, a shell, a pool, a schema of one's own."""

from __future__ import annotations

import json
import uuid
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from evenhand.cli.campaign import app


class Clock:
    """Time that goes on when told to."""

    def __init__(self, now: float = 1e9) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class Shell:
    """Runs `evenhand campaign` on one database."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "c.db"
        self.db = f"sqlite:///{self.file}"

    def __call__(self, *words: object, code: int = 0, stdin: str | bytes | None = None) -> str:
        # the options come before the arguments, one of which may follow `--`
        done = CliRunner().invoke(app, [str(words[0]), "--db", self.db, *map(str, words[1:])], input=stdin)
        assert done.exit_code == code, f"{done.exit_code}: {done.output}\n{done.exception!r}"
        assert "Traceback" not in done.output
        return done.output

    def json(self, *words: object, code: int = 0, **given: Any) -> Any:
        text = self(words[0], "--json", *words[1:], code=code, **given)
        return json.JSONDecoder().raw_decode(text[text.index("{") :])[0]


def pool_frame(n: int = 40, first: int = 0) -> pd.DataFrame:
    """Examples of two groups in turn, not labelled, with two features."""
    k = np.arange(first, first + n)
    return pd.DataFrame(
        {"id": [f"e{i}" for i in k], "group": np.where(k % 2, "v", "u"), "x": np.sin(k * 1.7), "w": np.cos(k * 0.3)}
    )


def label_of(name: str) -> str:
    """The label of an example, always the same."""
    return "yes" if zlib.crc32(name.encode()) % 2 else "no"


def new_schema(server: str) -> str:
    """The URL of a schema of its own, which is quicker to make than a database."""
    import psycopg

    name = f"t{uuid.uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    return f"{server}&options=-c%20search_path%3D{name}"

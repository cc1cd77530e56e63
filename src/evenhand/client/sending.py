"""Labelled rows, tables and settings in the form a server takes, checked here as a campaign would check them."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import orjson

from evenhand.arrays import Features, is_frame, is_missing
from evenhand.campaign.deliveries import Delivery
from evenhand.campaign.features import Rows
from evenhand.campaign.labels import plain_list, read_id, read_label
from evenhand.campaign.settings import make_settings
from evenhand.campaign.state import State
from evenhand.errors import InputError
from evenhand.notation import JsonObject

__all__ = ["change_body", "ids_of", "labels_body", "rows_body", "settings_body", "table_body"]

_PARQUET, _LINES = "application/vnd.apache.parquet", "application/x-ndjson"
_FILES = {".parquet": _PARQUET, ".pq": _PARQUET, ".jsonl": _LINES, ".ndjson": _LINES, ".json": _LINES}


def rows_body(X: Features, y: Any, ids: Any = None, groups: Any = None) -> JsonObject:
    """Labelled rows for `tell` and `add`; problems of single rows are sent too, so that the others can be stored."""
    delivery = Delivery.of(X, y, ids, groups)
    problems: dict[int, str] = {}
    if is_frame(X):
        body = _columns(X)
    else:
        # an empty state: a row's own faults are found here, and those that depend on earlier rows by the server
        rows = delivery.rows(State())
        body, problems = _numbers(rows), dict(rows.problems)
    if delivery.ids is not None:
        body["ids"] = _read_all(delivery.ids, read_id, problems)
    if delivery.groups is not None:
        body["groups"] = delivery.groups
    return {**body, "y": _read_all(delivery.labels, read_label, problems), "problems": problems and _keyed(problems)}


def _numbers(rows: Rows) -> JsonObject:
    if rows.columns["kind"] != "dense":
        raise InputError(
            "sparse rows and arrays of more than two dimensions cannot be sent: tell dense rows or a data frame, or "
            "open the campaign's database"
        )
    # the stored text as it is: parsed and written again, numbers might change in the last digit
    return {"X": [orjson.Fragment(str(row)) for row in rows.stored]}


def _columns(X: Any) -> JsonObject:
    """A frame as JSON has it; what only types tell is said beside it."""
    import pyarrow as pa

    from evenhand.tables.kinds import read_as
    from evenhand.tables.reading import read
    from evenhand.tables.writing import time_text

    frame = read(X)
    if frame.broken:
        raise InputError(next(iter(frame.broken.values())))
    table = frame.read()
    columns: dict[str, list[Any]] = {}
    for name in table.column_names:
        column = table.column(name)
        if pa.types.is_duration(column.type):
            column = read_as(column, "number")
        values = column.to_pylist()
        if pa.types.is_timestamp(column.type):
            values = [None if value is None else time_text(value) for value in values]
        columns[name] = [None if value != value else value for value in values]
    categories = [field.name for field in table.schema if pa.types.is_dictionary(field.type)]
    return {"columns": columns, "categories": categories}


def _read_all(values: Sequence[Any], read: Callable[[Any], Any], problems: dict[int, str]) -> list[Any]:
    """Values as JSON has them; one that cannot be an id or label is a problem of its row, as in a campaign."""
    found = []
    for row, value in enumerate(values):
        try:
            found.append(read(value))
        except InputError as error:
            problems.setdefault(row, str(error))
            found.append(None)
    return found


def _keyed(problems: Mapping[int, str]) -> dict[str, str]:
    return {str(row): why for row, why in problems.items()}


def labels_body(labels: Mapping[str, Any]) -> JsonObject:
    """Labels by id."""
    if not isinstance(labels, Mapping):
        raise InputError(f"give labels by id, {{id: label}}, not {type(labels).__name__}")
    if not labels:
        raise InputError("no labels given: tell at least one")
    return {"labels": {read_id(name): _label(name, value) for name, value in labels.items()}}


def _label(name: Any, value: Any) -> Any:
    """A label that JSON can hold; the server checks whether the campaign can take it."""
    try:
        return read_label(value)
    except InputError as error:
        if isinstance(value, str):
            return value
        if is_missing(value):
            return None
        raise InputError(f"{name}: {error}; nothing was stored") from None


def table_body(data: Any, ignore: Sequence[str] = ()) -> tuple[str, bytes]:
    """A table of a pool as a file: its content type and its bytes."""
    if isinstance(data, str | PathLike):
        return _file(Path(data))
    import pyarrow.parquet as pq

    from evenhand.tables.reading import read

    frame = read(data)
    for name, why in frame.broken.items():
        if name not in ignore:
            raise InputError(why)
    file = io.BytesIO()
    pq.write_table(frame.read(), file)
    return _PARQUET, file.getvalue()


def _file(path: Path) -> tuple[str, bytes]:
    if path.is_dir():
        raise InputError(f"{str(path)!r} is a folder: over HTTP send its files one by one")
    if not path.exists():
        raise InputError(f"there is no file {str(path)!r}")
    return _FILES.get(path.suffix.lower(), "text/csv"), path.read_bytes()


def settings_body(name: str, groups: Any, strategy: Any, learner: Any, **given: Any) -> JsonObject:
    """A new campaign's settings as plain values; objects are described by the texts that make them again."""
    defaults = {
        "batch": 1, "warmup": None, "validation": 0.5, "classes": None, "population": None, "seed": None, "stop": None,
        "refit": "background", "lease": "1d",
    }  # fmt: skip
    try:
        settings, _ = make_settings(groups, strategy, learner, **{**defaults, **given})
    except TypeError as error:
        raise InputError(f"cannot create the campaign: {error}") from None
    for setting in ("strategy", "learner", "risk", "stop"):
        _refuse_own(setting, settings[setting])
    # over HTTP the seed is one number
    if settings["trial"]:
        raise InputError("over HTTP a seed is one number: a trial of a simulation runs on this machine")
    stop, share = settings["stop"], settings["population"]
    kept = (
        "strategy", "learner", "budget", "batch", "warmup", "validation", "classes", "risk", "positive", "test_labels",
        "refit", "lease", "distinct", "label", "group", "id", "features", "limits",
    )  # fmt: skip
    return {
        **{key: settings[key] for key in kept},
        "name": name,
        "groups": None if groups is None else settings["groups"],
        "population": None if share is None else dict(zip(settings["groups"], share, strict=True)),
        "seed": None if given.get("seed") is None else int(settings["seed"]),
        "stop": None if stop is None else [stop],
    }


def change_body(changes: Mapping[str, Any]) -> JsonObject:
    """Changed settings as plain values; a setting to remove has a word for that, since null leaves it alone."""
    # null means "as it is" over HTTP, None in Python "no lease, no learner, no rule"
    nothing = {"lease": "never", "learner": "none", "stop": []}
    found = {name: nothing.get(name) if value is None else value for name, value in changes.items()}
    if (learner := found.get("learner")) is not None and not isinstance(learner, str):
        from evenhand.learners import as_learner
        from evenhand.learners.parsing import describe_learner

        found["learner"] = describe_learner(as_learner(learner)) or "own:"
        _refuse_own("learner", found["learner"])
    if (stop := found.get("stop")) and not isinstance(stop, list):
        from evenhand.claims.stopping import parse_stop

        found["stop"] = [str(parse_stop(stop))]
    return found


def _refuse_own(setting: str, text: Any) -> None:
    if str(text).startswith("own:"):
        raise InputError(
            f"the {setting} is your own object, and over HTTP nothing that names code can be chosen: give it by name"
        )


def ids_of(id: str | Sequence[str]) -> list[str]:
    """One id or several."""
    names = [id] if isinstance(id, str) else plain_list(id)
    if not names:
        raise InputError("no ids given: name at least one example")
    return [read_id(name) for name in names]

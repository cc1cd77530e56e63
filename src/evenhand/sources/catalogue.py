"""Sources by name, what the command line calls SOURCE, and the learner that goes with one."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from evenhand import extending
from evenhand.errors import InputError
from evenhand.learners.base import Learner
from evenhand.notation import parse_settings
from evenhand.sources.base import HasLearner, Source

__all__ = ["learner_for", "open_source", "parse_test"]

_FILES = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".json", ".parquet", ".pq", ".zip", ".gz", ".zst")
_TABLES = ("adult", "german")
_IMAGE_SETTINGS = {"data_dir", "split", "replace", "validation", "network", "test"}


def open_source(
    text: str, *, label: str | None = None, groups: Sequence[str] = (), test: str | None = None, **settings: Any
) -> Source:
    """`synthetic1:I`, `synthetic1:II`, `synthetic2`, a data set's name, the path of a CSV or Parquet table, or a factory.

    `factory:package.module.function:key=value` is the source your function returns. `test` is a share to hold out, the
    path of a test file, or `none`. A setting that has no effect on the source is refused.

    >>> open_source("synthetic1:II").groups
    ('u', 'v')
    """
    named = {"label": label, "groups": groups, "test": test, **settings}
    if extending.is_factory(text):
        return _made(text, named)
    name, _, variant = text.partition(":")
    path = Path(text)
    if name.startswith("synthetic"):
        _refuse(named, f"the source {text!r}: it is drawn from a formula")
        return _synthetic(name, variant, text)
    from evenhand.datasets import DATASETS, load

    # a user's own file named adult takes precedence
    if text in DATASETS and not path.is_file():
        _refuse({"label": label}, f"{text!r}, which knows its label")
        return _data_set(text, load, test, settings | ({"groups": list(groups)} if groups else {}))
    # a path that is not there is taken for a table by its ending: the message is then about the file, not about sources
    if path.suffix.lower() in _FILES or path.exists():
        _refuse({"data_dir": settings.pop("data_dir", None)}, "a table: its path says where it is")
        return _table(path, label, groups, test, settings)
    known = ["synthetic1:I", "synthetic1:II", "synthetic2", *DATASETS]
    near = difflib.get_close_matches(text, known, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise InputError(
        f"unknown source {text!r}: {hint}known are {', '.join(known)}, the path of a CSV or Parquet file, "
        "or factory:package.module.function"
    )


def _refuse(named: dict[str, Any], what: str) -> None:
    """Refuse settings that have no effect on a source."""
    given = [key for key, value in named.items() if value is not None and value != () and value != []]
    if given:
        raise InputError(f"{given[0]} has no effect on {what}")


def _data_set(name: str, load: Callable[..., Source], test: str | None, settings: dict[str, Any]) -> Source:
    if name in _TABLES:
        _refuse({"data_dir": settings.pop("data_dir", None)}, f"{name!r}, which is bundled")
        if test is not None:
            settings["test"] = parse_test(test)
    else:
        strange = {key: value for key, value in settings.items() if key not in _IMAGE_SETTINGS}
        _refuse({"test": test} | strange, f"the images of {name!r}")
    found: Source = load(name, **settings)
    return found


def parse_test(text: str) -> float | str | None:
    """A share to hold out, the path of a test file, or nothing at all.

    >>> parse_test("0.3"), parse_test("none"), parse_test("holdout.csv")
    (0.3, None, 'holdout.csv')
    """
    if text == "none":
        return None
    try:
        return float(text)
    except ValueError:
        return text


def learner_for(source: Source, text: str | None) -> Learner | None:
    """The learner a text describes; `network:update=epoch,…` is the source's own network with other settings."""
    from evenhand.learners.parsing import parse_learner

    if text is None:
        return None
    name, _, tail = text.partition(":")
    if name != "network":
        found: Learner = parse_learner(text)
        return found
    if not isinstance(source, HasLearner):
        raise InputError(f"the source {source.name} has no network of its own: name another learner")
    try:
        return source.default_learner(**parse_settings(tail, where="learner 'network'"))
    # an unknown keyword of the learner, which the user typed
    except TypeError as error:
        raise InputError(f"learner {text!r}: {error}") from error


def _made(text: str, settings: dict[str, Any]) -> Source:
    given = [key for key, value in settings.items() if value is not None and value != () and value != []]
    if given:
        raise InputError(
            f"{given[0]!r} has no effect on the source {text!r}: write the settings of a factory after a second colon, "
            "factory:package.module.function:key=value"
        )
    found: Source = extending.make(text, "source", _why_no_source)
    return found


def _why_no_source(found: Any) -> str | None:
    # by name, since an isinstance of a protocol does not say what is missing
    lacking = [name for name in ("name", "groups", "classes", "population", "open") if not hasattr(found, name)]
    if lacking:
        return f"it has no {', '.join(lacking)} (see evenhand.sources.base.Source)"
    if not isinstance(found.groups, tuple) or not all(isinstance(group, str) for group in found.groups):
        return f"its groups must be a tuple of names, not {found.groups!r}"
    return None


def _synthetic(name: str, variant: str, text: str) -> Source:
    from evenhand.sources.synthetic import model1 as synthetic
    from evenhand.sources.synthetic import model2 as synthetic2

    if name == "synthetic1":
        return synthetic.SyntheticModel1.instance(variant or "I")
    if text == "synthetic2":
        return synthetic2.SyntheticModel2()
    raise InputError(f"unknown source {text!r}: known synthetic ones are synthetic1:I, synthetic1:II, synthetic2")


def _table(path: Path, label: str | None, groups: Sequence[str], test: str | None, settings: dict[str, Any]) -> Source:
    from evenhand.sources.images.files import is_manifest
    from evenhand.sources.images.images import Images
    from evenhand.sources.table.table import Table

    if not path.exists():
        raise InputError(f"there is no file {str(path)!r}")
    if label is None or not groups:
        raise InputError("a table needs its label and groups: give --label COLUMN and --group COLUMN (one or more)")
    if test is not None:
        settings["test"] = parse_test(test)
    # before Table, to which a column of file names is text like any other
    if is_manifest(path):
        _refuse({k: v for k, v in settings.items() if k not in _IMAGE_SETTINGS}, "a table of image files")
        return Images.manifest(path, label=label, groups=list(groups), **settings)
    return Table(path, label=label, groups=list(groups), **settings)

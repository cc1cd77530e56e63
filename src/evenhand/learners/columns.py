"""Whether a learner takes a table's columns unencoded, by name, and which ones it names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evenhand.errors import InputError


def needs_columns(learner: object) -> bool:
    """Whether a learner gets a table's columns as they are, in a frame, instead of encoded as numbers.

    A custom learner says so with `needs_columns = True`. A scikit-learn Pipeline gets them if a ColumnTransformer in it
    selects columns by name or by type.
    """
    own = getattr(learner, "needs_columns", None)
    if own is not None:
        return bool(own)
    return hasattr(learner, "get_params") and selects_columns(learner)


def selects_columns(estimator: object) -> bool:
    """Whether a ColumnTransformer somewhere in a scikit-learn estimator selects columns by name, or by a function.

    >>> from sklearn.compose import make_column_transformer
    >>> from sklearn.preprocessing import OneHotEncoder
    >>> selects_columns(make_column_transformer((OneHotEncoder(), ["city"])))
    True
    >>> selects_columns(make_column_transformer((OneHotEncoder(), [0])))
    False
    """
    from sklearn.compose import ColumnTransformer

    parts = [estimator, *(estimator.get_params() if hasattr(estimator, "get_params") else {}).values()]
    return any(
        _by_name(columns)
        for part in parts
        if isinstance(part, ColumnTransformer)
        for _, _, columns in part.transformers
    )


def check_columns(learner: object, there: Sequence[str], left_out: Mapping[str, str]) -> None:
    """Refuse a learner that names a column it will not get; `left_out` says why a column is not a feature."""
    estimator = getattr(learner, "estimator", learner)
    for name in dict.fromkeys(_wanted(estimator)):
        if name in there:
            continue
        if name in left_out:
            raise InputError(f"the learner names the column {name!r}, which is {left_out[name]}")
        raise InputError(
            f"the learner names the column {name!r}; the columns it gets are {', '.join(map(repr, there))}"
        )


def _by_name(columns: Any) -> bool:
    if callable(columns) or isinstance(columns, str):
        return True
    if isinstance(columns, slice):
        return isinstance(columns.start, str) or isinstance(columns.stop, str)
    try:
        return any(isinstance(column, str) for column in columns)
    except TypeError:  # the number of one column
        return False


def _wanted(estimator: object) -> Iterator[str]:
    """The names that an estimator selects from its input; those of later steps are names that earlier steps gave."""
    from sklearn.compose import ColumnTransformer

    if isinstance(estimator, ColumnTransformer):
        for _, _, columns in estimator.transformers:
            if isinstance(columns, str):
                yield columns
            elif not callable(columns) and not isinstance(columns, slice) and _by_name(columns):
                yield from (column for column in columns if isinstance(column, str))
    elif steps := getattr(estimator, "steps", None):
        yield from _wanted(steps[0][1])
    else:
        # searches, calibration, Minimax; votes, unions
        inner = [getattr(estimator, name, None) for name in ("estimator", "learner")]
        for name in ("estimators", "transformer_list"):
            listed = getattr(estimator, name, None)
            inner += [part for _, part in listed] if isinstance(listed, list) else []
        for part in inner:
            if part is not None:
                yield from _wanted(part)

"""Data sets ready to draw from: `load("adult")` and `load("german")` come with the package (CC BY 4.0)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evenhand.datasets.adult import adult, adult_frame
from evenhand.datasets.german import german, german_frame
from evenhand.sources.table import Table

__all__ = ["DATASETS", "adult", "adult_frame", "german", "german_frame", "load"]

DATASETS: dict[str, Callable[..., Table]] = {"adult": adult, "german": german}


def load(name: str, **settings: Any) -> Table:
    """A data set as a source, by name.

    Args:
        name: `adult` or `german`.
        settings: as for `Table`, e.g. `use_group_as_feature=True` or `validation=0.3`.

    >>> load("german").groups
    ('men', 'women')
    """
    if name not in DATASETS:
        raise ValueError(f"there is no data set {name!r}; choose one of {', '.join(sorted(DATASETS))}.")
    return DATASETS[name](**settings)

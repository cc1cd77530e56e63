"""Data sets ready to draw from.

`load("adult")` and `load("german")` are bundled with the package (CC BY 4.0). `load("fashion-mnist")` and
`load("cifar10")` are downloaded once; `load("utkface")` must be requested from its owners.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evenhand.datasets.adult import adult, adult_frame
from evenhand.datasets.cifar10 import cifar10
from evenhand.datasets.fashion_mnist import fashion_mnist
from evenhand.datasets.german import german, german_frame
from evenhand.datasets.utkface import utkface
from evenhand.errors import InputError

__all__ = [
    "DATASETS",
    "adult",
    "adult_frame",
    "cifar10",
    "fashion_mnist",
    "german",
    "german_frame",
    "load",
    "utkface",
]

DATASETS: dict[str, Callable[..., Any]] = {
    "adult": adult,
    "german": german,
    "fashion-mnist": fashion_mnist,
    "cifar10": cifar10,
    "utkface": utkface,
}


def load(name: str, **settings: object) -> Any:
    """A data set as a source, by name.

    Args:
        name: `adult`, `german`, `fashion-mnist`, `cifar10` or `utkface`.
        settings: as for `Table` (`use_group_as_feature=True`) or `Images` (`data_dir=...`, `replace="never"`).

    >>> load("german").groups
    ('men', 'women')
    """
    if name not in DATASETS:
        raise InputError(f"there is no data set {name!r}; choose one of {', '.join(sorted(DATASETS))}.")
    return DATASETS[name](**settings)

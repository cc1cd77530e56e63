"""UTKFace at 50 × 50: men and women of five ethnicities. Non-commercial research only; its owners hand it out."""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from evenhand.arrays import Ints, Mask, Values
from evenhand.datasets.download import data_folder
from evenhand.errors import InputError
from evenhand.sources.images.images import Images
from evenhand.sources.images.store import LazyStore

RACES = ("White", "Black", "Asian", "Indian", "Other")
SPLITS = ("random", "crop_part1", "paper")
_SEXES = np.array(["male", "female"])
_PACKED = "utkface_50x50_q95_444.parquet"
_SIZE = (50, 50)


class LeakingSplit(UserWarning):
    """The test images are among the training images."""


def utkface(data_dir: str | Path | None = None, *, split: str = "random", **settings: Any) -> Images:
    """UTKFace as a source.

    Args:
        data_dir: a folder with the owners' folders `UTKFace` and `crop_part1`, or with the packed Parquet file.
        split: `"random"` tests on 30 % of each group and sex, drawn again for each trial; of exact twins it keeps one,
            or none if their labels contradict each other; `"crop_part1"` trains on faces outside `crop_part1`
            that have no exact twin in it, and tests on those in it; `"paper"` trains on all of them, test faces
            included, as the paper does.
        settings: as for `Images`.
    """
    if split not in SPLITS:
        raise InputError(f"split must be {', '.join(map(repr, SPLITS[:-1]))} or {SPLITS[-1]!r}, not {split!r}")
    faces = _faces(data_folder(data_dir))
    known = (faces.sex >= 0) & (faces.race >= 0)
    test = faces.cropped & known
    if split == "random":
        training = _one_of_twins(faces, known)
    elif split == "crop_part1":
        digests = _digests(faces)
        # twins under other names: leaving out equal names alone would test on training faces
        training = known & ~np.isin(digests, digests[faces.cropped])
    else:
        training = known
        warnings.warn(
            f"split='paper': all {test.sum():,} test faces are also in the pool, so test accuracy is measured on "
            "training examples; split='random' keeps them apart",
            LeakingSplit,
            stacklevel=2,
        )
    held = 0.3 if split == "random" else _part(faces, test)
    defaults = {"test": held, "order": RACES, "network": "cnn2", "transform": {"flip": 0.5}, "name": "utkface"}
    return Images(*_part(faces, training), **(defaults | settings))


@dataclass(frozen=True)
class _Faces:
    encoded: list[bytes] | list[Path]
    sex: Ints
    race: Ints
    cropped: Mask


def _faces(home: Path) -> _Faces:
    for folder in (home / "utkface", home):
        if (folder / _PACKED).exists():
            table = pq.read_table(folder / _PACKED, columns=["gender", "race", "in_crop_part1", "jpeg"])
            sex, race, cropped = (table.column(i).to_numpy() for i in range(3))
            return _Faces(table.column("jpeg").to_pylist(), sex.astype(np.int64), race.astype(np.int64), cropped)
        if (folder / "UTKFace").is_dir() and (folder / "crop_part1").is_dir():
            return _listed(folder)
    raise InputError(
        f"UTKFace is not in {home}: its owners hand it out at https://susanqq.github.io/UTKFace/ (non-commercial "
        "research only); put the folders UTKFace and crop_part1 into a folder and name it with EVENHAND_DATA or "
        "data_dir (--data-dir)"
    )


def _listed(folder: Path) -> _Faces:
    """The owners' files, `age_sex_race_date.jpg.chip.jpg`; −1 where a name lacks a part."""
    paths = sorted((folder / "UTKFace").glob("*.jpg"))
    cropped = {path.name for path in (folder / "crop_part1").glob("*.jpg")}
    parts = [path.name.split("_") for path in paths]
    numbers = [
        [int(p) if p in "01234" and p else -1 for p in part[1:3]] if len(part) == 4 else [-1, -1] for part in parts
    ]
    sex, race = np.array(numbers, dtype=np.int64).reshape(-1, 2).T
    # a sex of 2 to 4 is a slip in the file's name
    sex = np.where(sex > 1, -1, sex)
    return _Faces(paths, sex, race, np.array([path.name in cropped for path in paths]))


def _digests(faces: _Faces) -> NDArray[np.str_]:
    contents = (item if isinstance(item, bytes) else item.read_bytes() for item in faces.encoded)
    return np.array([hashlib.sha256(content).hexdigest() for content in contents])


def _one_of_twins(faces: _Faces, known: Mask) -> Mask:
    """Of faces with identical bytes, keep the first, or none if sex or race differ."""
    rows = np.flatnonzero(known)
    _, first, twins = np.unique(_digests(faces)[rows], return_index=True, return_inverse=True)
    said = faces.sex[rows] + 2 * faces.race[rows]
    agree = np.ones(len(first), dtype=bool)
    # the same face labelled as two sexes or races: nobody knows which is right
    agree[twins[said != said[first][twins]]] = False
    kept = np.zeros(len(known), dtype=bool)
    kept[rows[first[agree]]] = True
    return kept


def _part(faces: _Faces, chosen: Mask) -> tuple[LazyStore, Values, Values]:
    rows = np.flatnonzero(chosen)
    store = LazyStore([faces.encoded[row] for row in rows], channels=3, size=_SIZE)
    return store, _SEXES[faces.sex[rows]], np.array(RACES)[faces.race[rows]]

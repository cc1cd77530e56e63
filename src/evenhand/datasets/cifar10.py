"""CIFAR-10 as five pairs of classes: the task is to tell the two of a pair apart."""

from __future__ import annotations

import tarfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.arrays import Bytes
from evenhand.datasets.download import Remote, data_folder, find
from evenhand.datasets.fashion_mnist import as_pairs
from evenhand.errors import InputError
from evenhand.files import write_atomically
from evenhand.sources.images.images import Images

CIFAR_PAIRS = {
    "airplane/ship": (0, 8),
    "automobile/truck": (1, 9),
    "bird/cat": (2, 3),
    "deer/dog": (4, 5),
    "frog/horse": (6, 7),
}
ARCHIVE = Remote(
    "cifar-10-binary.tar.gz",
    "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    "c32a1d4ab5d03f1284b67883e8d87530",
)
BATCHES = tuple(
    Remote(f"{name}.bin", ARCHIVE.url, digest)
    for name, digest in (
        ("data_batch_1", "5dd7e06a14cb22eb9f671a540d1b7c25"),
        ("data_batch_2", "5ea93a67294ea407fff1d09f752e9692"),
        ("data_batch_3", "942cd6a4bcdd0dd3c604fbe906cb4421"),
        ("data_batch_4", "ae636b3ba5c66a11e91e8cb52e771fcb"),
        ("data_batch_5", "53f37980c15c3d472c316c40844f3f0d"),
        ("test_batch", "803d5f7f4d78ea53de84dbe85f74fb6d"),
    )
)
_FOLDER = "cifar-10-batches-bin"


def cifar10(data_dir: str | Path | None = None, **settings: Any) -> Images:
    """CIFAR-10 as a source: the first of each pair has label 0, the second label 1; settings as for `Images`."""
    folder = data_folder(data_dir) / _FOLDER
    if not all((folder / batch.name).exists() for batch in BATCHES):
        _unpack(find((ARCHIVE,), "cifar10", data_dir)[0], folder)
    parts = [_batch(path) for path in find(BATCHES, _FOLDER, data_dir)]
    images, labels = (np.concatenate(column) for column in zip(*parts[:5], strict=True))
    test = (parts[5][0], *as_pairs(parts[5][1], CIFAR_PAIRS))
    transform = {
        # of the training images, by channel
        "mean": (0.4914, 0.4822, 0.4465),
        "std": (0.2470, 0.2435, 0.2616),
        "crop": 28,
        "padding": 1,
        "flip": 0.5,
    }
    defaults = {"test": test, "order": tuple(CIFAR_PAIRS), "network": "cnn2", "transform": transform}
    return Images(images, *as_pairs(labels, CIFAR_PAIRS), **(defaults | {"name": "cifar10"} | settings))


def _batch(path: Path) -> tuple[Bytes, Bytes]:
    """Rows of one label byte and 3,072 bytes of an image."""
    rows = np.frombuffer(path.read_bytes(), np.uint8).reshape(-1, 3073)
    return rows[:, 1:].reshape(-1, 3, 32, 32), rows[:, 0]


def _unpack(archive: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive) as packed:
        for batch in BATCHES:
            member = packed.extractfile(f"{_FOLDER}/{batch.name}")
            if member is None:
                raise InputError(f"{archive.name} has no {batch.name}")
            write_atomically(folder / batch.name, partial(_write, content=member.read()))


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)

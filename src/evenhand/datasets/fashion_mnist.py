"""FashionMNIST as five pairs of garments: the task is to tell the two of a pair apart."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.arrays import Bytes, Ints, Values
from evenhand.datasets.download import Remote, find
from evenhand.sources.images.images import Images

FASHION_PAIRS = {
    "T-shirt/Shirt": (0, 6),
    "Trouser/Dress": (1, 3),
    "Pullover/Coat": (2, 4),
    "Sandal/Bag": (5, 8),
    "Sneaker/Ankle boot": (7, 9),
}
_PLACE = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
FILES = tuple(
    Remote(f"{name}-ubyte.gz", f"{_PLACE}{name}-ubyte.gz", digest)
    for name, digest in (
        ("train-images-idx3", "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"),
        ("train-labels-idx1", "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"),
        ("t10k-images-idx3", "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"),
        ("t10k-labels-idx1", "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"),
    )
)


def fashion_mnist(data_dir: str | Path | None = None, **settings: Any) -> Images:
    """FashionMNIST as a source: the first of each pair has label 0, the second label 1; settings as for `Images`."""
    images, labels, test_images, test_labels = (read_images(path) for path in find(FILES, "fashion_mnist", data_dir))
    test = (test_images, *as_pairs(test_labels, FASHION_PAIRS))
    transform = {"mean": (0.2860,), "std": (0.3530,)}
    defaults = {"test": test, "order": tuple(FASHION_PAIRS), "network": "cnn1", "transform": transform}
    return Images(images, *as_pairs(labels, FASHION_PAIRS), **(defaults | {"name": "fashion-mnist"} | settings))


def as_pairs(label: Values, pairs: dict[str, tuple[int, int]]) -> tuple[Ints, NDArray[np.str_]]:
    """For every image, which of its pair it shows (0 or 1), and the pair."""
    y, group = np.zeros(10, dtype=np.int64), np.empty(10, dtype=object)
    for name, (first, second) in pairs.items():
        y[second] = 1
        group[[first, second]] = name
    return y[label], group[label].astype(str)


def read_images(path: Path) -> Bytes:
    """The images or labels of an IDX file.

    The file has two zero bytes, the type, the number of dimensions, each of these as a big-endian number, and the data.
    """
    content = gzip.decompress(path.read_bytes())
    dimensions = content[3]
    shape = np.frombuffer(content, ">u4", count=dimensions, offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions).reshape(shape)

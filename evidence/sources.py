"""Thirteen sources of nine data sets, small and large, with the budgets they are run at; labelled rows of them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import vstack
from sklearn import datasets as bundled
from sklearn.decomposition import PCA

import evenhand as eh
from evenhand.arrays import Floats, Values
from evenhand.datasets.download import find
from evenhand.datasets.fashion_mnist import FASHION_PAIRS, FILES, as_pairs, read_images
from evidence.common import gain

DIGIT_PAIRS = {f"{a}/{b}": (a, b) for a, b in ((3, 8), (1, 7), (4, 9), (0, 6), (2, 5))}
COMPONENTS = 60
UNEVEN = {"T-shirt/Shirt": 0.1, "Pullover/Coat": 0.2}


@dataclass(frozen=True)
class Case:
    """A source by name, three budgets, and how many trials of a rule tell small differences on it."""

    make: Callable[[], Any]
    budgets: tuple[int, int, int]
    trials: int = 100


def digits() -> eh.Table:
    """scikit-learn's digits in five pairs: which of its pair is it?"""
    found = bundled.load_digits()
    return eh.Table(_with_pairs(found.data, found.target, DIGIT_PAIRS), label="second", groups="pair", name="digits")


def fashion() -> eh.Table:
    """FashionMNIST in five pairs on its first 60 principal components, with its own test file."""
    rows, test = _fashion_rows()
    return eh.Table(rows, label="second", groups="pair", test=test, scale="standard", name="fashion")


@cache
def _fashion_rows() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Training and test images as rows."""
    images, labels, test_images, test_labels = (read_images(path) for path in find(FILES, "fashion_mnist", None))
    flat, test_flat = (part.reshape(len(part), -1) / 255.0 for part in (images, test_images))
    components = PCA(COMPONENTS, svd_solver="covariance_eigh").fit(flat)
    rows, test = (
        _with_pairs(components.transform(part), label, FASHION_PAIRS)
        for part, label in ((flat, labels), (test_flat, test_labels))
    )
    return rows, test


def uneven_fashion() -> eh.Table:
    """The same, with few rows of the two pairs that are hard to tell apart."""
    rows, test = _fashion_rows()
    kept = [part.head(int(len(part) * UNEVEN.get(str(pair), 1.0))) for pair, part in rows.groupby("pair")]
    return eh.Table(pd.concat(kept), label="second", groups="pair", test=test, name="fashion, uneven")


def _with_pairs(X: Floats, label: Values, pairs: dict[str, tuple[int, int]]) -> pd.DataFrame:
    """Features as columns, the pair, and which of it a row is."""
    second, pair = as_pairs(label, pairs)
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
    return frame.assign(pair=pair, second=second)


def breast_cancer() -> eh.Table:
    """Malignant or benign, for three sizes of tumour."""
    frame = bundled.load_breast_cancer(as_frame=True).frame
    return eh.Table(frame, label="target", groups="mean radius:12.5,15", name="breast cancer")


def wine() -> eh.Table:
    """Three cultivars, for light and dark wines."""
    frame = bundled.load_wine(as_frame=True).frame
    return eh.Table(frame, label="target", groups="color_intensity:4.7", name="wine")


def diabetes() -> eh.Table:
    """Whether the disease progresses faster than in the median patient, by sex and age."""
    frame = bundled.load_diabetes(as_frame=True, scaled=False).frame
    frame["fast"] = frame["target"] > frame.pop("target").median()
    frame["sex"] = np.where(frame["sex"] == 1, "one", "other")
    return eh.Table(frame, label="fast", groups=["sex", "age:50"], name="diabetes")


def adult_by_age() -> eh.Table:
    """Income above 50K, by age and sex."""
    return _regrouped("adult", eh.datasets.adult_frame(), "income", ["age:30,50", "sex"], ["race and sex", "race"])


def german_by_age() -> eh.Table:
    """Good or bad credit, by age."""
    return _regrouped("german", eh.datasets.german_frame(), "credit", ["age:28,40"], ["sex", "personal-status"])


def _regrouped(name: str, frame: pd.DataFrame, label: str, groups: list[str], ignore: list[str]) -> eh.Table:
    return eh.Table(frame, label=label, groups=groups, ignore=ignore, name=f"{name} by age")


SOURCES: dict[str, Case] = {
    "synthetic1:I": Case(partial(eh.SyntheticModel1.instance, "I"), (100, 300, 1000)),
    "synthetic1:II": Case(partial(eh.SyntheticModel1.instance, "II"), (100, 300, 1000)),
    "synthetic2": Case(eh.SyntheticModel2, (100, 300, 1000)),
    "adult": Case(partial(eh.datasets.load, "adult"), (300, 1000, 3000), 40),
    "adult by age": Case(adult_by_age, (300, 1000, 3000), 40),
    "german": Case(partial(eh.datasets.load, "german", stratify=True), (100, 200, 400)),
    "german by age": Case(german_by_age, (100, 200, 400)),
    "digits": Case(digits, (200, 400, 800)),
    "fashion": Case(fashion, (500, 1000, 2000), 30),
    "fashion, uneven": Case(uneven_fashion, (500, 1000, 2000), 30),
    "breast cancer": Case(breast_cancer, (60, 120, 240)),
    "wine": Case(wine, (30, 60, 100)),
    "diabetes": Case(diabetes, (60, 120, 240)),
}

DATA_SETS = {
    "SyntheticModel1": ("synthetic1:I", "synthetic1:II"),
    "SyntheticModel2": ("synthetic2",),
    "Adult": ("adult", "adult by age"),
    "German": ("german", "german by age"),
    "FashionMNIST": ("fashion", "fashion, uneven"),
    **{name: (name,) for name in ("digits", "breast cancer", "wine", "diabetes")},
}
OF_SOURCE = {source: name for name, sources in DATA_SETS.items() for source in sources}


@cache
def source_of(name: str) -> Any:
    """The source of this name, made once."""
    return SOURCES[name].make()


def over_data_sets(cells: Iterable[tuple[str, float]], *, real: bool = False) -> dict[str, float]:
    """Mean and 95 % interval over data sets: cells of a source are averaged first, then the sources of a data set.

    Other groups of the same rows are no independent evidence, and neither are other budgets.

    Args:
        cells: source and value of every cell.
        real: without the synthetic models.
    """
    frame = pd.DataFrame(cells, columns=["source", "value"]).groupby("source")["value"].mean()
    means = frame.groupby(frame.index.map(OF_SOURCE)).mean()
    return gain(means[~means.index.str.startswith("Synthetic")] if real else means)


@dataclass(frozen=True)
class Sample:
    """Rows with labels and groups, and the trial's stream, which tests."""

    X: Any
    y: Values
    groups: Values
    stream: Any

    def errors(self, model: Any) -> Floats:
        """Every group's test error."""
        return np.asarray(1.0 - self.stream.accuracies([model])[0])


def sample(source: Any, budget: int, seed: int, trial: int, *, even: bool) -> Sample:
    """As many labels as Uniform (or Uncurated, with `even=False`) would have at the end; fewer of a group that runs out."""
    stream, m = source.open(seed, [trial]), len(source.groups)
    counts = np.maximum(np.round((np.full(m, 1 / m) if even else source.population) * budget).astype(np.int64), 2)
    parts = [stream.draw(np.array([z]), np.array([n])) for z, n in enumerate(counts)]
    X = [part.X for part in parts]
    rows = vstack(X).tocsr() if hasattr(X[0], "tocsr") else np.vstack(X)
    y = np.asarray(source.classes)[np.concatenate([part.y for part in parts])]
    return Sample(rows, y, np.repeat(np.asarray(source.groups), [len(part.y) for part in parts]), stream)


def is_even(source: Any) -> bool:
    """Whether drawing by the population's shares is nearly drawing by equal ones."""
    return bool(np.max(source.population) < 1.5 * np.min(source.population))

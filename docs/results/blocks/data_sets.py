"""Which sources of `benchmarks/model_runs` belong to one data set, and intervals over data sets."""

from collections.abc import Iterable

import numpy as np

from evenhand.claims.paired import paired

DATA_SETS = {
    "SyntheticModel1": ("synthetic1:I", "synthetic1:II"),
    "SyntheticModel2": ("synthetic2",),
    "Adult": ("adult", "adult by age"),
    "German": ("german", "german by age"),
    "FashionMNIST": ("fashion", "fashion, uneven"),
    "digits": ("digits",),
    "breast cancer": ("breast cancer",),
    "wine": ("wine",),
    "diabetes": ("diabetes",),
}
SYNTHETIC = ("SyntheticModel1", "SyntheticModel2")
"""Models made up by the paper: each counts as a data set, and is left out where real data are asked for."""
OF_SOURCE = {source: name for name, sources in DATA_SETS.items() for source in sources}


def over_data_sets(cells: Iterable[tuple[str, float]], *, real: bool = False) -> dict[str, float]:
    """Mean, low and high over data sets: cells of a source are averaged first, then the sources of a data set.

    Other groups of the same rows are no independent evidence, and neither are other budgets.

    Args:
        cells: source and value of every cell.
        real: without the synthetic models.
    """
    by_source: dict[str, list[float]] = {}
    for source, value in cells:
        by_source.setdefault(source, []).append(value)
    by_data_set: dict[str, list[float]] = {}
    for source, values in by_source.items():
        by_data_set.setdefault(OF_SOURCE[source], []).append(float(np.mean(values)))
    means = np.array([np.mean(v) for name, v in by_data_set.items() if not (real and name in SYNTHETIC)])
    return dict(zip(("mean", "low", "high"), paired(means, np.zeros(len(means))), strict=True))


def counted(sources: Iterable[str]) -> str:
    """How many sources these are, and of how many data sets."""
    names = set(sources)
    return f"{len(names)} sources of {len({OF_SOURCE[name] for name in names})} data sets"


def listed() -> str:
    """The data sets, each with its sources where it has several."""
    return ", ".join(
        f"{name} ({' and '.join(f'`{one}`' for one in sources)})" if len(sources) > 1 else name
        for name, sources in DATA_SETS.items()
    )

"""UCI Adult: income above 50K, for white and non-white men and women, with the split it comes with."""

from __future__ import annotations

from typing import Any

import pandas as pd

from evenhand.datasets.packaged import original
from evenhand.errors import InputError
from evenhand.notation import JsonObject
from evenhand.sources.table.table import Table

COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
)
GROUPS = ("white men", "white women", "non-white men", "non-white women")


def adult_frame(part: str = "train") -> pd.DataFrame:
    """Adult's `train` or `test` rows as they are, with the column `race and sex` added. '?' is left as a category."""
    if part not in {"train", "test"}:
        raise InputError(f"part must be 'train' or 'test', got {part!r}.")
    text = original("adult.data" if part == "train" else "adult.test").decode("ascii")
    # labels of the test file end in a full stop, those of the training file do not
    lines = [line.rstrip(".").split(", ") for line in text.splitlines() if line and not line.startswith("|")]
    frame = pd.DataFrame(lines, columns=list(COLUMNS))
    for name in ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"):
        frame[name] = frame[name].astype("int64")
    race = (frame["race"] == "White").map({True: "white", False: "non-white"})
    sex = frame["sex"].map({"Male": "men", "Female": "women"})
    frame["race and sex"] = pd.Categorical(race + " " + sex, categories=GROUPS, ordered=True)
    return frame


def adult(**settings: Any) -> Table:
    """Adult as a source, by race and sex or by other `groups=`, like `["age:35,55", "sex"]`; settings as for `Table`.

    Race and sex are features only with `use_group_as_feature=True`.
    """
    settings.pop("data_dir", None)  # no data folder is needed: the files are in the package
    use = settings.get("use_group_as_feature", False)
    groups = settings.pop("groups", "race and sex")
    features = [name for name in COLUMNS[:-1] if use or name not in {"race", "sex"}]
    defaults: JsonObject = {"features": features, "test": adult_frame("test"), "name": "adult"}
    defaults |= {"scale": "minmax", "scale_by": "pool"}
    return Table(adult_frame("train"), label="income", groups=groups, **(defaults | settings))

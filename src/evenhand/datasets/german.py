"""UCI Statlog German credit: good or bad credit, for men and women, with a new random split in every trial."""

from __future__ import annotations

from typing import Any

import pandas as pd

from evenhand.datasets.packaged import original
from evenhand.notation import JsonObject
from evenhand.sources.table.table import Table

COLUMNS = (
    "checking-account",
    "duration",
    "credit-history",
    "purpose",
    "credit-amount",
    "savings",
    "employment-since",
    "installment-rate",
    "personal-status",
    "other-debtors",
    "residence-since",
    "property",
    "age",
    "other-installments",
    "housing",
    "existing-credits",
    "job",
    "dependants",
    "telephone",
    "foreign-worker",
    "credit",
)
SEX = {"A91": "men", "A92": "women", "A93": "men", "A94": "men", "A95": "women"}


def german_frame() -> pd.DataFrame:
    """The 1,000 rows as they are, with `credit` as good or bad and the column `sex` added."""
    lines = [line.split() for line in original("german.data").decode("ascii").splitlines() if line]
    frame = pd.DataFrame(lines, columns=list(COLUMNS))
    for name in COLUMNS[:-1]:
        if not frame[name].str.startswith("A").all():
            frame[name] = frame[name].astype("int64")
    frame["credit"] = frame["credit"].map({"1": "good", "2": "bad"})
    frame["sex"] = frame["personal-status"].map(SEX)
    return frame


def german(**settings: Any) -> Table:
    """German credit as a source, by sex or by other `groups=`, like `"age:28,40"`; settings as for `Table`.

    Every trial has a new random 70/30 split of all rows, as in the paper; `stratify=True` holds 30 % out of each group.
    Personal status, which tells the sex, is a feature only with `use_group_as_feature=True`.
    """
    settings.pop("data_dir", None)  # no data folder is needed: the files are in the package
    use = settings.get("use_group_as_feature", False)
    groups = settings.pop("groups", "sex")
    features = [name for name in COLUMNS[:-1] if use or name != "personal-status"]
    defaults: JsonObject = {"features": features, "test": 0.3, "name": "german"}
    if "split_by" not in settings and isinstance(settings.get("test", 0.3), float):
        defaults["stratify"] = False
    defaults |= {"scale": "minmax", "scale_by": "pool"}
    return Table(german_frame(), label="credit", groups=groups, **(defaults | settings))

"""The report, shared by rows chosen at once and rows that are being labelled."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod

import pandas as pd

from evenhand.curation.page import render
from evenhand.curation.summary import frame_of
from evenhand.notation import JsonObject


class Reported(ABC):
    """The figures and the page made from a summary."""

    @property
    @abstractmethod
    def summary(self) -> JsonObject:
        """Everything the report shows, as plain values."""

    @property
    def by_group(self) -> pd.DataFrame:
        """Figures of every group, as fairlearn's `MetricFrame.by_group`; index: the group's name.

        The columns are `accuracy` with `low` and `high`, which hold for all groups at once with 95 % confidence;
        `count`, the test rows behind it; how many rows train and validate; further measures.
        """
        return frame_of(self.summary["by_group"])

    @property
    def overall(self) -> pd.Series:
        """The same figures for all test rows together, as fairlearn's `MetricFrame.overall`."""
        return pd.Series(self.summary["overall"], dtype=float)

    def report(self) -> str:
        """The report as a self-contained HTML page."""
        return render(self.summary)

    def texts(self) -> dict[str, str]:
        """The report as texts, by the ending that each file adds to the name of the rows."""
        return {".report.html": self.report(), ".report.json": json.dumps(self.summary, allow_nan=False)}

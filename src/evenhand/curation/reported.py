"""What a report gives, of rows chosen at once and of rows that are being labelled alike."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod

import pandas as pd

from evenhand.curation.page import render
from evenhand.curation.summary import frame_of
from evenhand.notation import JsonObject

__all__ = ["Reported"]


class Reported(ABC):
    """Figures and page of a summary."""

    @property
    @abstractmethod
    def summary(self) -> JsonObject:
        """Everything the report shows, as plain values."""

    @property
    def by_group(self) -> pd.DataFrame:
        """Figures of every group, as fairlearn's `MetricFrame.by_group`; index: the group's name.

        `accuracy` with `low` and `high`, which hold for all groups at once with 95 % confidence; `count`, the test rows
        behind it; how many rows train and validate; further measures.
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
        """The report as text, by what follows the name of the rows in the name of its file."""
        return {".report.html": self.report(), ".report.json": json.dumps(self.summary, allow_nan=False)}

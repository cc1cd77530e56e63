"""Numbers about numbers: the Mann–Kendall trend, intervals, and confidence sequences that hold at every look."""

from evenhand.stats.intervals import Difference, paired_difference, wilson
from evenhand.stats.trend import RunningTrend, mann_kendall, trend

__all__ = ["Difference", "RunningTrend", "mann_kendall", "paired_difference", "trend", "wilson"]

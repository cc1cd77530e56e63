"""Numbers about numbers: the Mann–Kendall trend, intervals, and confidence sequences that hold at every look."""

from evenhand.stats.intervals import Difference, paired_difference, wilson
from evenhand.stats.sequences import EmpiricalBernstein, error_rate, log_evidence, running_half_width
from evenhand.stats.trend import RunningTrend, mann_kendall, trend

__all__ = [
    "Difference",
    "EmpiricalBernstein",
    "RunningTrend",
    "error_rate",
    "log_evidence",
    "mann_kendall",
    "running_half_width",
    "paired_difference",
    "trend",
    "wilson",
]

"""What the scripts share: paired differences with their interval."""

from typing import Any

import numpy as np
from scipy.stats import t as student


def gain(ours: Any, theirs: Any = 0.0) -> dict[str, float]:
    """The mean of paired differences with Student's 95 % interval; of a single pair the mean alone."""
    values = np.asarray(ours, dtype=float) - np.asarray(theirs, dtype=float)
    if len(values) < 2:
        return {"mean": float(values.mean())}
    half = float(student.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))
    return {"mean": float(values.mean()), "low": float(values.mean()) - half, "high": float(values.mean()) + half}


def spread(values: Any) -> dict[str, float]:
    """Mean and standard deviation."""
    return {"mean": float(np.mean(values)), "sd": float(np.std(values, ddof=1))}

"""Names for the arrays that everything is computed with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bytes", "Floats", "Ints", "Mask", "Positions", "Words"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Positions = NDArray[np.intp]
Mask = NDArray[np.bool_]
Words = NDArray[np.uint64]
Bytes = NDArray[np.uint8]

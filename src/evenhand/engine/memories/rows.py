"""Feature rows of any kind users hold, taken by a mask and put one below the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

__all__ = ["stack", "take"]


def take(X: Any, mask: NDArray[np.bool_]) -> Any:
    """The rows where the mask is true, in the kind X has."""
    if _is_frame(X):
        return nw.from_native(X, eager_only=True)[np.flatnonzero(mask).tolist()].to_native()
    return X[np.flatnonzero(mask)] if hasattr(X, "tocsr") else X[mask]


def stack(parts: Sequence[Any]) -> Any:
    """Rows one below the other."""
    if len(parts) == 1:
        return parts[0]
    if _is_frame(parts[0]):
        return nw.concat([nw.from_native(part, eager_only=True) for part in parts]).to_native()
    return sp.csr_array(sp.vstack(parts)) if sp.issparse(parts[0]) else np.concatenate(parts)


def _is_frame(X: Any) -> bool:
    if isinstance(X, np.ndarray) or sp.issparse(X):
        return False
    try:
        nw.from_native(X, eager_only=True)
    except TypeError:
        return False
    return True

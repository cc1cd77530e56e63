"""Feature rows of any kind users hold, taken by a mask and put one below the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import scipy.sparse as sp

from evenhand.arrays import Mask, is_frame, take_rows

if TYPE_CHECKING:
    from evenhand.arrays import Features


def take(X: Features, mask: Mask) -> Any:
    """The rows where the mask is true, in the kind X has."""
    return take_rows(X, np.flatnonzero(mask))


def stack(parts: Sequence[Any]) -> Any:
    """Rows one below the other."""
    if len(parts) == 1:
        return parts[0]
    if is_frame(parts[0]):
        return nw.concat([nw.from_native(part, eager_only=True) for part in parts]).to_native()
    return sp.csr_array(sp.vstack(parts)) if sp.issparse(parts[0]) else np.concatenate(parts)

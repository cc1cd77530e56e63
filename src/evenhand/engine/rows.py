"""Feature rows of any kind users hold: NumPy, SciPy sparse, pandas, polars, pyarrow."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from numpy.typing import NDArray

__all__ = ["as_rows", "as_table", "check_finite", "column_names", "digest", "from_table", "like", "stack", "take"]


def as_rows(X: Any) -> Any:
    """X as a two-dimensional float array, a CSR array, or the frame it is."""
    if not isinstance(X, np.ndarray):
        if _is_sparse(X):
            return sp.csr_array(X, dtype=float)
        if _is_frame(X):
            return X
    try:
        array = np.asarray(X, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"X must be numbers or a data frame: {error}") from error
    if array.ndim != 2:
        raise ValueError(f"X must have two dimensions, rows and features, not shape {array.shape}")
    return array


def _is_sparse(X: Any) -> bool:
    return not isinstance(X, np.ndarray) and bool(sp.issparse(X))


def _is_frame(X: Any) -> bool:
    if isinstance(X, np.ndarray) or _is_sparse(X):
        return False
    try:
        nw.from_native(X, eager_only=True)
    except TypeError:
        return False
    return True


def column_names(X: Any) -> list[str] | int:
    """The columns of a frame by name, of an array by number."""
    return list(nw.from_native(X, eager_only=True).columns) if _is_frame(X) else int(X.shape[1])


def check_finite(X: Any) -> None:
    """Refuse NaN and infinite features in arrays; a frame's missing values are its learner's business."""
    if _is_frame(X):
        return
    finite = np.isfinite(X.data if _is_sparse(X) else X)
    if not finite.all():
        where = np.argwhere(~finite)[0]
        first = int(where[0])
        row = int(np.count_nonzero(X.indptr <= first)) - 1 if _is_sparse(X) else first
        raise ValueError(f"X has a NaN or infinite feature in row {row}: remove or impute it before telling")


def like(X: Any, kept: Any) -> Any:
    """X in the kind of the rows kept so far, so that all deliveries stack."""
    if _is_frame(X) != _is_frame(kept):
        raise ValueError(f"earlier rows were {type(kept).__name__}, these are {type(X).__name__}: deliver one kind")
    if not _is_frame(X):
        if _is_sparse(kept) == _is_sparse(X):
            return X
        return sp.csr_array(X) if _is_sparse(kept) else X.toarray()
    frame, example = (nw.from_native(x, eager_only=True) for x in (X, kept))
    if sorted(frame.columns) != sorted(example.columns):
        missing = sorted(set(example.columns) - set(frame.columns))
        extra = sorted(set(frame.columns) - set(example.columns))
        raise ValueError(f"columns differ from earlier rows: missing {missing}, not known {extra}")
    frame = frame.select(example.columns)
    if frame.implementation == example.implementation:
        return frame.to_native()
    return nw.from_arrow(frame.to_arrow(), backend=example.implementation).to_native()


def take(X: Any, mask: NDArray[np.bool_]) -> Any:
    """The rows where the mask is true, in the kind X has."""
    if not _is_frame(X):
        return X[mask] if not _is_sparse(X) else X[np.flatnonzero(mask)]
    return nw.from_native(X, eager_only=True)[np.flatnonzero(mask).tolist()].to_native()


def stack(parts: Sequence[Any]) -> Any:
    """Rows one below the other."""
    if len(parts) == 1:
        return parts[0]
    if _is_frame(parts[0]):
        return nw.concat([nw.from_native(part, eager_only=True) for part in parts]).to_native()
    return sp.csr_array(sp.vstack(parts)) if _is_sparse(parts[0]) else np.concatenate(parts)


def as_table(X: Any) -> pa.Table:
    """Rows as an Arrow table; dense columns are numbered, sparse rows become lists."""
    if _is_frame(X):
        return nw.from_native(X, eager_only=True).to_arrow()
    if not _is_sparse(X):
        return pa.table({str(j): X[:, j] for j in range(X.shape[1])})
    offsets = pa.array(X.indptr, type=pa.int32())
    return pa.table(
        {
            "indices": pa.ListArray.from_arrays(offsets, pa.array(X.indices, type=pa.int32())),
            "values": pa.ListArray.from_arrays(offsets, pa.array(X.data, type=pa.float64())),
        }
    )


def from_table(table: pa.Table, kind: Any, width: int) -> Any:
    """What `as_table` wrote, in its kind: `dense`, `sparse`, or the name of a frame library."""
    if kind == "dense":
        return np.column_stack([table.column(j).to_numpy() for j in range(table.num_columns)])
    if kind == "sparse":
        indices, values = (table.column(name).combine_chunks() for name in ("indices", "values"))
        parts = (values.flatten().to_numpy(), indices.flatten().to_numpy(), indices.offsets.to_numpy())
        return sp.csr_array(parts, shape=(table.num_rows, width))
    return nw.from_arrow(table, backend=kind).to_native()


def kind_of(X: Any) -> str:
    """`dense`, `sparse`, or the name of the frame's library."""
    if _is_frame(X):
        return str(nw.from_native(X, eager_only=True).implementation.value)
    return "sparse" if _is_sparse(X) else "dense"


def digest(X: Any, y: Sequence[Any]) -> str:
    """A fingerprint of a delivery's content."""
    found = hashlib.sha256(repr([getattr(v, "item", lambda v=v: v)() for v in y]).encode())
    if X is not None:
        for name, column in zip((table := as_table(X)).column_names, table.columns, strict=True):
            found.update(name.encode())
            found.update(repr(column.to_pylist()).encode())
    return found.hexdigest()

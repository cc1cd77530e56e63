"""Quick ways of packing deliveries and giving roles come to the same as the general ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from evenhand.decision import KINDS, Decision
from evenhand.engine.engine import Engine
from evenhand.live.delivery import plain
from evenhand.live.dense import DenseParcel, pack
from evenhand.live.parcel import Parcel
from evenhand.strategies import Uniform

FEATURES = hnp.arrays(float, st.tuples(st.integers(1, 9), st.integers(1, 6)))
LABELS = st.one_of(st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False))


@given(X=FEATURES, data=st.data())
def test_plain_numbers_are_packed_as_arrow_does(X: Any, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from([int, float]))
    labels = LABELS.filter(lambda label: isinstance(label, kind))
    X, y = plain(X, data.draw(st.lists(labels, min_size=len(X), max_size=len(X))))
    quick, general = pack(X, y), Parcel.of(X, y)
    assert type(quick) is DenseParcel
    assert quick.to_bytes() == general.to_bytes()
    assert quick.digest == general.digest == Parcel.from_bytes(quick.to_bytes()).digest
    assert quick.matches(general.first_digest)
    assert general.matches(quick.digest)
    assert quick.table.schema == general.table.schema
    about = [[p.kind, p.features, p.width, p.label, p.group, p.groups, len(p), p.y] for p in (quick, general)]
    assert about[0] == about[1]
    np.testing.assert_array_equal(quick.X, general.X)


@pytest.mark.parametrize("y", [["a", "b"], [True, False], [1, 2.5]])
def test_other_labels_go_through_arrow(y: list[Any]) -> None:
    assert type(pack(np.eye(2), y)) is Parcel


@given(X=FEATURES, data=st.data())
def test_a_fingerprint_is_of_the_content(X: Any, data: st.DataObject) -> None:
    y = list(range(len(X)))
    row, column = data.draw(st.integers(0, X.shape[0] - 1)), data.draw(st.integers(0, X.shape[1] - 1))
    other = X.copy()
    other[row, column] = data.draw(st.floats(allow_nan=False).filter(lambda value: value != X[row, column]))
    known = pack(X, y)
    assert not known.matches(pack(other, y).digest)
    assert not known.matches(pack(X, [*y[:-1], -1]).digest)
    assert not known.matches(pack(X, [float(label) for label in y]).digest)


def test_a_fingerprint_does_not_depend_on_the_library_of_a_frame() -> None:
    columns = {"a": [1.5, 2.5], "b": ["x", None], "c": [1, 2], "d": [True, False]}
    frames = [pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)]
    found = {Parcel.of(frame, ["no", "yes"], ["u", "v"]).first_digest for frame in frames}
    assert len(found) == 1
    parcels = [Parcel.of(frame, [0, 1]) for frame in frames]
    assert all(parcel.matches(other.digest) for parcel in parcels for other in parcels)


def test_rows_in_any_order_of_memory() -> None:
    X = np.asfortranarray(np.arange(12.0).reshape(4, 3))[::2]
    assert pack(X, [1, 2]).to_bytes() == Parcel.of(X, [1, 2]).to_bytes()


@pytest.mark.parametrize("y", [[2**70, 1], [1, 2**63], [-(2**63) - 1, 1], [1, "a"], [1.5, 2**70]])
def test_labels_that_no_column_holds(y: list[Any]) -> None:
    with pytest.raises(ValueError, match="these labels cannot be stored, use text or 64-bit numbers, not both"):
        pack(np.eye(2), y)


@pytest.mark.parametrize("y", [[2**63 - 1, -(2**63)], [1e300, -0.0]])
def test_labels_as_large_as_they_may_be(y: list[Any]) -> None:
    assert Parcel.from_bytes(pack(np.eye(2), y).to_bytes()).y == y


def test_rows_without_features() -> None:
    with pytest.raises(ValueError, match="X has no features"):
        plain(np.empty((2, 0)), [0, 1])


def test_a_label_missing_in_pandas_own_way() -> None:
    with pytest.raises(ValueError, match="the label of row 1 is missing"):
        plain(np.eye(2), pd.Series(["a", pd.NA], dtype="string"))


@given(
    seed=st.integers(0, 2**40),
    group=st.integers(0, 2),
    share=st.floats(0.01, 0.99),
    steps=st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300), st.integers(1, 200)), min_size=1, max_size=5),
)
def test_roles_of_one_group(seed: int, group: int, share: float, steps: list[tuple[int, int, int]]) -> None:
    engine = Engine(["u", "v", "w"], Uniform(), None, seed=seed, validation=share)
    for training, held, rows in steps:
        engine.counts[0, group], engine.held[0, group] = training, held
        expected = engine.roles(np.zeros(rows, dtype=np.int64), np.full(rows, group))
        assert engine.roles_of(group, rows, training=training, held=held) == expected.tolist()


@given(
    values=hnp.arrays(float, (2, 3)),
    index=st.integers(0, 2),
    code=st.integers(0, len(KINDS) - 1),
    drawn=st.booleans(),
)
def test_decisions_are_read_as_they_were_written(values: Any, index: int, code: int, drawn: bool) -> None:
    groups, terms = ('a "b"', "ä", "c"), {'l"oss': values[0], "count": values[1]}
    decision = Decision(groups, np.array(index), np.array(code), terms, values[1] if drawn else None)
    assert orjson.loads(orjson.dumps(decision.as_dict())) == decision.as_dict()


def test_huge_features_are_fine_and_infinite_ones_are_seen() -> None:
    assert DenseParcel(np.full((2, 3), 1e308), [0, 1]).finite
    assert not DenseParcel(np.array([[1.0, np.inf], [0.0, 1.0]]), [0, 1]).finite
    assert not DenseParcel(np.array([[np.inf, -np.inf]]), [0]).finite

"""Rows on their way into a campaign: whatever they come as, they are stored, known again and given back as they were."""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import evenhand as eh
from evenhand.campaign.settings import make_settings
from evenhand.ledger import MemoryLedger
from evenhand.strategies.decision import KINDS, Decision
from evenhand.uniforms import Roles

FINITE = st.floats(-1e99, 1e99)
FEATURES = hnp.arrays(float, st.tuples(st.integers(1, 9), st.integers(1, 6)), elements=FINITE)


def asked(size: int, **more: Any) -> tuple[eh.Campaign, Any]:
    """A campaign without a learner, which takes rows of any kind, and a request that waits for so many."""
    c = eh.Campaign(["u", "v"], "uniform", None, budget=10**6, batch=max(1, -(-size // 2)), **more)
    return c, c.ask()


def stored(c: eh.Campaign) -> tuple[list[Any], list[Any]]:
    """Features and labels in the order they were told."""
    X: dict[str, Any] = {}
    y: dict[str, Any] = {}
    for part in (c.training_set, c.validation_set):
        try:
            found = part()
        except ValueError:  # there are none of this role
            continue
        X |= zip(found.ids.tolist(), np.asarray(found.X).tolist(), strict=True)
        y |= zip(found.ids.tolist(), found.y.tolist(), strict=True)
    order = sorted(X, key=lambda name: int(name.rpartition("-")[2]))
    return [X[name] for name in order], [y[name] for name in order]


@settings(max_examples=25)
@given(X=FEATURES, data=st.data())
def test_numbers_come_back_exactly(X: Any, data: st.DataObject) -> None:
    y = data.draw(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=len(X), max_size=len(X)))
    c, request = asked(len(X))
    assert c.tell(request, X, y).rows == len(X)
    found = stored(c)
    assert np.array_equal(np.array(found[0]), X)
    assert np.array_equal(np.signbit(np.array(found[0])), np.signbit(X))
    assert found[1] == y
    assert c.tell(request, X.copy(), list(y)).repeated
    assert c.labels_used == len(X)


@settings(max_examples=25)
@given(X=FEATURES, data=st.data())
def test_a_repeat_is_one_of_the_whole_content(X: Any, data: st.DataObject) -> None:
    y = list(range(len(X)))
    row, column = data.draw(st.integers(0, X.shape[0] - 1)), data.draw(st.integers(0, X.shape[1] - 1))
    other = X.copy()
    other[row, column] = data.draw(FINITE.filter(lambda value: value != X[row, column]))
    c = eh.Campaign(["u", "v"], "uniform", None, budget=10**6, batch=4 * len(X))  # there is room for more parts
    request = c.ask()
    for k, (features, labels) in enumerate([(X, y), (other, y), (X, [*y[:-1], -1])], start=1):
        assert c.tell(request, features, labels).rows == len(X)
        assert c.tell(request, features, [float(label) for label in labels]).repeated  # 1.0 is 1
        assert c.labels_used == k * len(X)


def test_a_repeat_does_not_depend_on_the_library_of_a_frame() -> None:
    columns = {"a": [1.5, 2.5], "b": ["x", None], "c": [1, 2], "d": [True, False]}
    frames = [pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)]
    for first in frames:
        c, request = asked(2)
        assert c.tell(request, first, ["no", "yes"]).rows == 2
        for again in frames:
            assert c.tell(request, again, np.array(["no", "yes"])).repeated
        assert c.labels_used == 2


@pytest.mark.parametrize("order", ["C", "F", "strided"])
def test_rows_in_any_order_of_memory(order: str) -> None:
    X = np.arange(12.0).reshape(4, 3)
    given = {"C": X, "F": np.asfortranarray(X), "strided": np.repeat(X, 2, axis=0)[::2]}[order]
    c, request = asked(4)
    c.tell(request, given, [0, 1, 0, 1])
    assert stored(c)[0] == X.tolist()
    assert c.tell(request, X, [0, 1, 0, 1]).repeated


@pytest.mark.parametrize("y", [["a", "b"], [True, False], [1, 2], [2**63 - 1, -(2**63)], ["0", "1"], ["ä", "b c"]])
def test_labels_of_every_kind_come_back(y: list[Any]) -> None:
    c, request = asked(2)
    c.tell(request, np.eye(2), y)
    found = stored(c)[1]
    assert found == y
    assert [type(label) for label in found] == [type(label) for label in y]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([2**70, 1], "beyond 64 bits"),
        ([1, 2**63], "beyond 64 bits"),
        ([-(2**63) - 1, 1], "beyond 64 bits"),
        ([1, "a"], "not like the classes so far"),
        ([True, 1], "not like the classes so far"),
        ([1.5, 1], "neither text nor a whole number"),
        ([1, float("inf")], "neither text nor a whole number"),
        ([1, float("nan")], "no label"),
        ([1, None], "no label"),
        (["a", " "], "no label"),
        (["a", "A"], "only by case or blanks"),
        ([["a"], ["b"]], "neither text, a whole number nor true or false"),
    ],
)
def test_labels_that_can_be_none(y: list[Any], message: str) -> None:
    c, request = asked(2)
    with pytest.raises(ValueError, match=message):
        c.tell(request, np.eye(2), y)
    assert c.labels_used == 0
    assert c.tell(request, np.eye(2), [0, 1]).rows == 2


def test_a_label_missing_in_pandas_own_way() -> None:
    c, request = asked(2)
    with pytest.raises(ValueError, match=r"row 1: no label"):
        c.tell(request, np.eye(2), pd.Series(["a", pd.NA], dtype="string"))


def test_rows_without_features() -> None:
    c, request = asked(2)
    with pytest.raises(ValueError, match="no features"):
        c.tell(request, np.empty((2, 0)), [0, 1])


def test_frames_come_back_as_they_were() -> None:
    frame = pd.DataFrame({"label": [1.5, None] * 4, "city": ["Bern", "Genf", "a", "b"] * 2, "n": range(8)})
    c, request = asked(8)
    y = ["no", "yes"] * 4
    c.tell(request, frame, y)
    parts = [c.training_set(), c.validation_set()]
    found = pd.concat([part.X for part in parts]).sort_values("n", ignore_index=True)
    pd.testing.assert_frame_equal(found, frame, check_dtype=False)  # text has two types in pandas
    labels = {name: label for part in parts for name, label in zip(part.ids.tolist(), part.y.tolist(), strict=True)}
    assert [labels[f"r1-{k}"] for k in range(1, 9)] == y


@pytest.mark.parametrize("learner", [None, "logistic"])
@pytest.mark.parametrize("bad", [np.inf, -np.inf, 1e308])
def test_features_that_nobody_can_learn_from(learner: str | None, bad: float) -> None:
    c = eh.Campaign(["u", "v"], "uniform", learner, budget=100)
    request = c.ask()
    with pytest.raises(ValueError, match="row 0: feature 1 is"):
        c.tell(request, [[1.0, bad], [0.0, bad]], [0, 1])
    assert c.labels_used == 0
    assert c.tell(request, np.full((2, 2), 1e99), [0, 1]).rows == 2


# -------------------------------------------------------------------- parts, ids, retries


def test_a_request_told_in_parts_with_and_without_ids() -> None:
    c, request = asked(6)
    X, y = np.arange(12.0).reshape(6, 2), [0, 1, 0, 1, 0, 1]
    parts = [(slice(0, 1), ["a"]), (slice(1, 3), None), (slice(3, 5), ["d", "e"]), (slice(5, 6), None)]
    left = 6
    for rows, ids in parts:
        for again in (False, True, True):
            receipt = c.tell(request, X[rows], y[rows], ids=ids)
            left -= 0 if again else receipt.rows
            assert (receipt.repeated, receipt.outstanding) == (again, left)
    assert left == 0
    assert (c.labels_used, c.open_requests, c.unspent) == (6, [], 10**6 - 6)
    names = {*c.training_set().ids.tolist(), *c.validation_set().ids.tolist()}
    assert names == {"a", "d", "e", f"r{request.id}-1", f"r{request.id}-2", f"r{request.id}-3"}


def test_an_id_of_another_request_is_known_there_too() -> None:
    c, request = asked(2)
    other = c.ask()
    c.tell(request, [[0.0]], [1], ids=["a"])
    assert c.tell(other, [[0.0]], [1], ids=["a"]).repeated
    assert [r.outstanding for r in c.open_requests] == [1, 2]
    with pytest.raises(ValueError, match="has the label '1', not 0: use correct"):
        c.tell(other, [[0.0]], [0], ids=["a"])
    with pytest.raises(ValueError, match="with other features"):
        c.tell(other, [[5.0]], [1], ids=["a"])


def test_an_id_that_looks_like_one_of_ours_is_left_alone() -> None:
    c, request = asked(4)
    c.tell(request, [[0.0], [1.0]], [0, 1], ids=["r1-1", "r1-3"])
    c.tell(request, [[2.0], [3.0]], [0, 1])
    assert {*c.training_set().ids.tolist(), *c.validation_set().ids.tolist()} == {"r1-1", "r1-3", "r1-2", "r1-4"}


def test_more_than_outstanding_is_refused_unless_extra() -> None:
    c = eh.Campaign(["u", "v"], "uniform", None, budget=6)
    request = c.ask()
    c.tell(request, [[0.0]], [0])
    X = np.arange(1.0, 5.0)[:, None]
    with pytest.raises(
        ValueError, match="4 rows for request 1, which waits for 1: tell 1, or take them all with extra"
    ):
        c.tell(request, X, [0, 1, 0, 1])
    receipt = c.tell(request, X, [0, 1, 0, 1], extra=True)
    assert (receipt.rows, receipt.surplus, receipt.outstanding, c.labels_used) == (4, 3, 0, 5)
    with pytest.raises(ValueError, match="budget has only 1 more"):
        c.tell(request, X + 9, [0, 1, 0, 1], extra=True)
    assert c.labels_used == 5


def test_all_or_nothing_and_partial_and_dry_run() -> None:
    c, request = asked(4)
    X, y, ids = np.eye(4), ["no", "yes", "", "no"], ["a", "b", "c", "b"]
    with pytest.raises(ValueError, match="2 of 4 rows cannot be stored, so nothing was") as refused:
        c.tell(request, X, y, ids=ids)
    assert [(r.row, r.id) for r in refused.value.refused] == [(2, "c"), (3, "b")]
    assert c.labels_used == 0
    dry = c.tell(request, X, y, ids=ids, partial=True, dry_run=True)
    assert (dry.rows, dry.dry_run, c.labels_used, len(c.events())) == (2, True, 0, 2)
    receipt = c.tell(request, X, y, ids=ids, partial=True)
    assert (receipt.rows, receipt.outstanding, len(receipt.refused)) == (2, 2, 2)
    assert receipt.new_classes == ("no", "yes")


def test_counts_close_a_request() -> None:
    c = eh.Campaign(["u", "v"], "uniform", None, budget=8, batch=2)
    request = c.ask()
    assert c.tell(request, n=3).rows == 3
    assert (c.labels_used, c.unspent, c.open_requests) == (3, 5, [])
    assert c.tell(request, n=3).repeated
    with pytest.raises(ValueError, match="has all its labels"):
        c.tell(request, n=2)
    other = c.ask()
    with pytest.raises(ValueError, match="5 rows for request 2, which waits for 4"):
        c.tell(other, n=5)
    for n in (0, -1, 2.5, True):
        with pytest.raises(ValueError, match="n must be a number of rows"):
            c.tell(other, n=n)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: c.tell(1, np.eye(2)), "tell either rows"),
        (lambda c: c.tell(1, np.eye(2), [0, 1], n=2), "tell either rows"),
        (lambda c: c.tell(1, np.eye(3), [0, 1]), "X has 3 rows and y 2 labels"),
        (lambda c: c.tell(1, np.eye(2), [0, 1], ids=["a"]), "2 labels but 1 ids"),
        (lambda c: c.tell(1, np.eye(2), [0, 1], ids=["a", 1.5]), "is no id"),
        (lambda c: c.tell(1, np.eye(2), [0, 1], ids=["a", " "]), "is blank"),
        (lambda c: c.tell(1, np.eye(2), [0, 1], ids=["a", "a"]), "comes twice with different content"),
        (lambda c: c.tell(1, [], []), "an empty delivery"),
        (lambda c: c.tell(7, np.eye(2), [0, 1]), "request 7 was never made; open requests: 1"),
        (lambda c: c.tell(1, np.eye(2), [0, 1], collector="\n"), "collector"),
        (lambda c: c.add(np.eye(2), [0, 1], ["u", "w"]), "unknown group 'w'"),
        (lambda c: c.add(np.eye(2), [0, 1], ["u"]), "2 labels but 1 groups"),
    ],
)
def test_deliveries_that_cannot_be(call: Any, message: str) -> None:
    c, _ = asked(2)
    with pytest.raises(ValueError, match=message):
        call(c)
    assert len(c.events()) == 2


def test_data_that_were_there_before_are_known_again() -> None:
    c, request = asked(2)
    X, y, groups = np.arange(6.0)[:, None], [0, 1] * 3, ["u", "v"] * 3
    assert c.add(X, y, groups).rows == 6
    assert c.add(X, y, groups).repeated
    assert c.add(X, y, ["v", "u"] * 3).rows == 6  # of other groups: other examples
    assert c.add(X + 9, y, groups, ids=list("abcdef"), charge=True).rows == 6
    assert c.add(X + 9, y, groups, ids=list("abcdef"), charge=True).repeated
    assert c.labels_used == 6
    assert c.tell(request, X[:2], y[:2]).rows == 2  # they are no answer to a request


# -------------------------------------------------------------------- roles and decisions


@given(
    seed=st.integers(0, 2**40),
    group=st.integers(0, 2),
    share=st.floats(0.01, 0.99),
    sizes=st.lists(st.integers(1, 200), min_size=1, max_size=5),
)
def test_roles_do_not_depend_on_how_deliveries_are_cut(seed: int, group: int, share: float, sizes: list[int]) -> None:
    parts = make_settings(
        ["u", "v", "w"], "uniform", None, budget=10, batch=1, warmup=None, validation=share, classes=None,
        population=None, seed=seed, stop=None, refit="always", lease=None,
    )[1]  # fmt: skip
    found, dealt = list[bool](), 0
    for size in sizes:
        found += parts.roles(group, dealt, size).tolist()
        dealt += size
    assert found == Roles(seed, [0], [group], share).of(0, 0, np.arange(dealt)).tolist()


def test_roles_are_those_of_the_deliveries_together() -> None:
    X, y = np.arange(40.0)[:, None], [0, 1] * 20
    found = []
    for cuts in ([40], [1, 2, 3, 34], [20, 20]):
        c = eh.Campaign.create(MemoryLedger(), "survey", ["u"], "uniform", None, budget=40, batch=20, seed=5)
        request, first = c.ask(), 0
        for n in cuts:
            c.tell(request, X[first : first + n], y[first : first + n])
            first += n
        found.append(sorted(np.asarray(c.validation_set().X).ravel().tolist()))
    assert found[0] == found[1] == found[2]
    assert 10 < len(found[0]) < 30


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
    again = Decision.from_dict(groups, orjson.loads(orjson.dumps(decision.as_dict())))
    assert again.as_dict() == decision.as_dict()
    assert (again.group, again.kind) == (decision.group, decision.kind)

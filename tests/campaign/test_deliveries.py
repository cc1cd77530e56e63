"""Ids, deliveries and labels: every example is a row with an id, and whatever is told comes back as it was told."""

from __future__ import annotations

import datetime as dt
import getpass
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from tests.helpers import Clock

import evenhand as eh
from evenhand.ledger import Ledger, MemoryLedger
from evenhand.ledger.database import DatabaseLedger

Make = Create = Callable[..., eh.Campaign]


@pytest.fixture(scope="module")
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="module", params=["memory", "sqlite", "server"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, clock: Clock) -> Create:
    """Where campaigns are: in this process, in a file, on a server."""
    if request.param == "server":
        found: Create = request.getfixturevalue("create_remote")
        return found
    file = tmp_path_factory.mktemp("deliveries") / "l.db"
    ledger: Ledger = MemoryLedger(clock=clock)
    if request.param == "sqlite":
        ledger = DatabaseLedger(f"sqlite:///{file}?synchronous=normal", create=True, clock=clock)
    return lambda **settings: eh.Campaign.create(ledger, f"survey {len(ledger.campaigns())}", **settings)


@pytest.fixture
def make(place: Create) -> Make:
    def made(**settings: Any) -> eh.Campaign:
        given = {"budget": 40, "batch": 2, "learner": None, "lease": "60s", **settings}
        return place(groups=["u", "v"], strategy="uniform", **given)

    return made


def rows(size: int, first: int = 0) -> Any:
    return np.arange(first, first + 2.0 * size).reshape(size, 2)


def labels(size: int) -> list[str]:
    return ["no" if k % 2 else "yes" for k in range(size)]


def everything(c: eh.Campaign) -> dict[str, str]:
    """The label of every id."""
    found: dict[str, str] = {}
    for part in (c.training_set, c.validation_set):
        try:
            examples = part()
        except eh.errors.InputError:
            continue
        found |= dict(zip(examples.ids.tolist(), examples.y.tolist(), strict=True))
    return found


def nothing_changes(c: eh.Campaign) -> Callable[[], None]:
    """To be called later: nothing was stored since."""
    before = (c.events(), c.labels_used, c.counts, [r.as_dict() for r in c.open_requests])

    def check() -> None:
        assert (c.events(), c.labels_used, c.counts, [r.as_dict() for r in c.open_requests]) == before

    return check


# -------------------------------------------------------------------- ids


def test_ids_are_made_from_request_and_position(make: Make) -> None:
    c = make()
    for _ in range(2):
        c.ask()
    c.tell(2, rows(3), labels(3))
    c.tell(2, rows(1, 50), ["yes"])
    assert set(everything(c)) == {"r2-1", "r2-2", "r2-3", "r2-4"}
    assert [event["facts"]["ids"] for event in c.events() if event["kind"] == "told"] == [
        ["r2-1", "r2-2", "r2-3"],
        ["r2-4"],
    ]


def test_given_ids_are_text_and_come_back(make: Make) -> None:
    c = make()
    names = ["007", "two\nlines", 'it\'s "quoted"; DROP TABLE examples;--', "שלום עולם"]
    c.tell(c.ask(), rows(4), labels(4), ids=names)
    assert everything(c) == dict(zip(names, labels(4), strict=True))
    again = c.tell(1, rows(4), labels(4), ids=names)
    assert (again.rows, again.known, again.repeated) == (0, 4, True)
    c.tell(c.ask(), rows(2, 30), labels(2), ids=[7, np.int64(8)])
    assert {"7", "8", "007"} <= everything(c).keys()


@pytest.mark.parametrize("bad", [None, "", "  ", 1.5, True, "x" * 501, "a\0b", "\ud800", ["a"], float("nan")])
def test_what_cannot_be_an_id_is_refused(make: Make, bad: Any) -> None:
    c = make()
    c.ask()
    same = nothing_changes(c)
    with pytest.raises(eh.errors.InputError, match=r"1 of 2 rows cannot be stored.*row 1"):
        c.tell(1, rows(2), labels(2), ids=["good", bad])
    same()
    receipt = c.tell(1, rows(2), labels(2), ids=["good", bad], partial=True)
    assert (receipt.rows, [r.row for r in receipt.refused]) == (1, [1])
    assert set(everything(c)) == {"good"}


def test_as_many_ids_as_rows(make: Make) -> None:
    c = make()
    c.ask()
    same = nothing_changes(c)
    with pytest.raises(eh.errors.InputError, match="2 labels but 1 ids"):
        c.tell(1, rows(2), labels(2), ids=["a"])
    same()


def test_a_label_told_differently_is_refused_until_corrected(make: Make) -> None:
    c = make()
    c.tell(c.ask(), rows(2), ["yes", "no"], ids=["a", "b"])
    same = nothing_changes(c)
    with pytest.raises(eh.errors.InputError, match=r"'b' has the label 'no', not 'yes': use correct"):
        c.tell(1, rows(2), ["yes", "yes"], ids=["a", "b"])
    with pytest.raises(eh.errors.InputError, match="'a' was told before with other features"):
        c.tell(1, rows(1) + 1, ["yes"], ids=["a"])
    same()
    assert everything(c) == {"a": "yes", "b": "no"}


def test_an_id_is_unique_in_the_campaign_not_in_the_request(make: Make) -> None:
    c = make()
    c.tell(c.ask(), rows(2), ["yes", "no"], ids=["a", "b"])
    c.ask()
    again = c.tell(2, rows(2), ["yes", "no"], ids=["a", "b"])
    assert (again.rows, again.known, again.outstanding) == (0, 2, 4)
    with pytest.raises(eh.errors.InputError, match="has the label"):
        c.tell(2, rows(1), ["no"], ids=["a"])
    assert c.labels_used == 2


def test_an_id_twice_in_one_delivery(make: Make) -> None:
    c = make()
    c.ask()
    same = nothing_changes(c)
    with pytest.raises(eh.errors.InputError, match="'a' comes twice with different content"):
        c.tell(1, rows(2), ["yes", "no"], ids=["a", "a"])
    same()
    receipt = c.tell(1, np.vstack([rows(1), rows(1)]), ["yes", "yes"], ids=["a", "a"])
    assert (receipt.rows, receipt.known, receipt.outstanding) == (1, 1, 3)


def test_a_given_id_that_looks_like_a_made_one(make: Make) -> None:
    c = make()
    c.ask()
    c.tell(1, rows(1), ["yes"], ids=["r1-1"])
    c.tell(1, rows(2, 10), ["yes", "no"])
    assert set(everything(c)) == {"r1-1", "r1-2", "r1-3"}
    same = nothing_changes(c)
    with pytest.raises(eh.errors.InputError, match="'r1-2' has the label 'yes', not 'no'"):
        c.tell(1, rows(1, 90), ["no"], ids=["r1-2"])
    same()
    c.tell(1, rows(1, 20), ["yes"])
    assert set(everything(c)) == {"r1-1", "r1-2", "r1-3", "r1-4"}
    assert c.verify().ok


def test_ids_of_data_that_was_there_before(make: Make) -> None:
    c = make()
    first = c.add(rows(2), labels(2), ["u", "v"])
    assert (first.request, first.rows) == (0, 2)
    c.add(rows(2, 10), labels(2), ["u", "v"])
    assert set(everything(c)) == {"a1-1", "a1-2", "a2-1", "a2-2"}
    assert c.add(rows(2), labels(2), ["u", "v"]).repeated
    assert not c.add(rows(2), labels(2), ["v", "u"]).repeated
    c.add(rows(2, 40), labels(2), ["u", "u"], ids=["p", "q"])
    c.ask()
    assert c.tell(1, rows(2, 40), labels(2), ids=["p", "q"]).known == 2
    assert c.labels_used == 0


# -------------------------------------------------------------------- deliveries


def test_a_request_filled_in_parts(make: Make) -> None:
    c = make()
    request = c.ask()
    assert (request.size, request.outstanding) == (4, 4)
    first = c.tell(request, rows(1), ["yes"], collector="ann")
    assert (first.rows, first.outstanding, first.training + first.validation) == (1, 3, 1)
    assert [r.outstanding for r in c.open_requests] == [3]
    assert (c.labels_used, c.status()["promised"]) == (1, 3)
    second = c.tell(request, rows(3, 20), labels(3), collector="bob")
    assert (second.rows, second.outstanding) == (3, 0)
    assert c.open_requests == []
    status = c.status()
    assert (status["used"], status["promised"], status["answered"]) == (4, 0, 1)
    assert {who: each["labels"] for who, each in status["collectors"].items()} == {
        "ann": 1,
        "bob": 3,
        getpass.getuser(): 0,
    }
    assert status["groups"][request.group]["classes"] == {"no": 1, "yes": 3}


def test_parts_have_the_roles_of_the_whole(make: Make) -> None:
    whole = eh.Campaign(["u", "v"], "uniform", budget=40, batch=2)
    c = make()
    for each in (whole, c):
        each.ask()
    whole.tell(1, rows(4), labels(4), ids=list("abcd"))
    for k in range(4):
        c.tell(1, rows(4)[k : k + 1], labels(4)[k : k + 1], ids=["abcd"[k]])
    assert c.training_set().ids.tolist() == whole.training_set().ids.tolist()
    assert c.counts == whole.counts


def test_a_repeat_with_ids_in_other_parts_changes_nothing(make: Make) -> None:
    c = make()
    c.ask()
    c.tell(1, rows(4)[:3], labels(3), ids=["a", "b", "c"])
    mixed = c.tell(1, rows(4)[2:], labels(4)[2:], ids=["c", "d"])
    assert (mixed.rows, mixed.known, mixed.outstanding) == (1, 1, 0)
    same = nothing_changes(c)
    for part in (slice(0, 2), slice(1, 4), slice(0, 4)):
        receipt = c.tell(1, rows(4)[part], labels(4)[part], ids=list("abcd")[part])
        assert (receipt.rows, receipt.known, receipt.event) == (0, part.stop - part.start, 0)
    same()


def test_a_repeat_without_ids_changes_nothing(make: Make) -> None:
    c = make()
    c.ask()
    first = c.tell(1, rows(2), labels(2))
    second = c.tell(1, rows(1, 30), ["yes"])
    same = nothing_changes(c)
    for again, X, y in ((first, rows(2), labels(2)), (second, rows(1, 30), ["yes"])):
        receipt = c.tell(1, X.copy(), list(y))
        assert (receipt.rows, receipt.known, receipt.event, receipt.repeated) == (0, again.rows, again.event, True)
    same()
    c.tell(1, rows(1, 60), ["yes"])
    c.close()
    assert c.tell(1, rows(2), labels(2)).repeated


def test_equal_parts_need_ids(make: Make) -> None:
    c = make()
    c.ask()
    c.tell(1, rows(1), ["yes"])
    assert c.tell(1, rows(1), ["yes"]).repeated
    assert c.tell(1, rows(1), ["yes"], ids=["another"]).rows == 1
    assert c.labels_used == 2


def test_the_same_rows_for_another_request_are_other_examples(make: Make) -> None:
    c = make()
    c.ask_many(2)
    c.tell(1, rows(2), labels(2))
    assert c.tell(2, rows(2), labels(2)).rows == 2
    assert c.labels_used == 4


def test_more_than_outstanding_is_refused_with_the_numbers(make: Make) -> None:
    c = make(budget=10)
    c.ask()
    c.tell(1, rows(1), ["yes"])
    same = nothing_changes(c)
    with pytest.raises(
        eh.errors.InputError, match=r"5 rows for request 1, which waits for 3: tell 3, or .* extra=True"
    ):
        c.tell(1, rows(5, 10), labels(5))
    same()
    receipt = c.tell(1, rows(5, 10), labels(5), extra=True)
    assert (receipt.rows, receipt.surplus, receipt.outstanding, c.labels_used) == (5, 2, 0, 6)
    c.ask()
    same = nothing_changes(c)
    with pytest.raises(
        eh.errors.InputError, match="5 rows for request 2, which waits for 4, but the budget has only 0 more"
    ):
        c.tell(2, rows(5, 30), labels(5), extra=True)
    same()
    assert c.tell(2, rows(4, 30), labels(4), extra=True).surplus == 0
    assert c.labels_used == 10


def test_extra_rows_for_a_request_that_is_full(make: Make) -> None:
    c = make(budget=8)
    c.ask()
    c.tell(1, rows(4), labels(4))
    same = nothing_changes(c)
    with pytest.raises(eh.errors.InputError, match=r"request 1 has all its labels: .* extra=True"):
        c.tell(1, rows(1, 50), ["yes"])
    same()
    receipt = c.tell(1, rows(1, 50), ["yes"], extra=True)
    assert (receipt.rows, receipt.surplus, c.labels_used) == (1, 1, 5)
    c.ask()
    with pytest.raises(eh.errors.InputError, match="only 0 more"):
        c.tell(1, rows(1, 70), ["yes"], extra=True)
    assert c.labels_used + c.status()["promised"] == 8


def test_partial_takes_the_good_rows(make: Make) -> None:
    c = make()
    c.ask()
    bad = ["yes", None, "no", ["x"]]
    same = nothing_changes(c)
    with pytest.raises(
        eh.errors.InputError, match=r"2 of 4 rows cannot be stored, so nothing was: row 1.*row 3"
    ) as error:
        c.tell(1, rows(4), bad, ids=list("abcd"))
    assert [(r.row, r.id) for r in error.value.refused] == [(1, "b"), (3, "d")]
    same()
    receipt = c.tell(1, rows(4), bad, ids=list("abcd"), partial=True)
    assert (receipt.rows, receipt.outstanding, [r.id for r in receipt.refused]) == (2, 2, ["b", "d"])
    assert everything(c) == {"a": "yes", "c": "no"}


def test_partial_takes_what_fits(make: Make) -> None:
    c = make()
    c.ask()
    receipt = c.tell(1, rows(6), [*labels(5), "never seen"], ids=list("abcdef"), partial=True)
    assert (receipt.rows, [r.id for r in receipt.refused], receipt.outstanding) == (4, ["e", "f"], 0)
    assert "waits for 4 labels only" in receipt.refused[0].reason
    assert set(receipt.new_classes) == {"yes", "no"}, "a class of a row that was refused is none"


def test_a_partial_delivery_without_ids_told_again_changes_nothing(make: Make) -> None:
    c = make()
    c.ask()
    given = (rows(3), ["yes", None, "no"])
    assert c.tell(1, *given, partial=True).rows == 2
    same = nothing_changes(c)
    assert c.tell(1, *given, partial=True).rows == 0
    same()


def test_a_partial_delivery_that_filled_its_request_told_again(make: Make) -> None:
    c = make()
    c.ask()
    given = (rows(5), ["yes", "no", "yes", "no", None])
    assert c.tell(1, *given, ids=list("abcde"), partial=True).outstanding == 0
    same = nothing_changes(c)
    again = c.tell(1, *given, ids=list("abcde"), partial=True)
    assert (again.rows, again.known, [r.id for r in again.refused]) == (0, 4, ["e"])
    same()


def test_another_label_for_a_full_request_names_the_row(make: Make) -> None:
    c = make(batch=1)
    c.ask()
    c.tell(1, rows(2), ["yes", "no"], ids=["a", "b"])
    with pytest.raises(eh.errors.InputError, match="'b' has the label 'no', not 'yes': use correct"):
        c.tell(1, rows(2), ["yes", "yes"], ids=["a", "b"])


def test_dry_run_stores_nothing_and_says_what_would_be(make: Make) -> None:
    c = make()
    c.ask()
    same = nothing_changes(c)
    would = c.tell(1, rows(3), labels(3), dry_run=True)
    assert (would.rows, would.outstanding, would.dry_run, would.event) == (3, 1, True, 0)
    assert set(would.new_classes) == {"yes", "no"}
    with pytest.raises(eh.errors.InputError, match="rows cannot be stored"):
        c.tell(1, rows(2), ["yes", None], dry_run=True)
    assert len(c.tell(1, rows(2), ["yes", None], dry_run=True, partial=True).refused) == 1
    assert c.tell(1, n=2, dry_run=True).rows == 2
    same()
    did = c.tell(1, rows(3), labels(3))
    assert (did.training, did.validation) == (would.training, would.validation)


def test_a_number_of_rows_is_the_whole_answer(make: Make) -> None:
    c = make(budget=12)
    c.ask_many(2)
    receipt = c.tell(1, n=3)
    assert (receipt.rows, receipt.training + receipt.validation) == (3, 3)
    assert [r.id for r in c.open_requests] == [2]
    assert (c.labels_used, c.status()["promised"], c.unspent) == (3, 4, 5)
    again = c.tell(1, n=3)
    assert (again.rows, again.known) == (0, 3)
    with pytest.raises(eh.errors.InputError, match="request 1 has all its labels"):
        c.tell(1, n=2)
    with pytest.raises(eh.errors.InputError, match="5 rows for request 2, which waits for 4"):
        c.tell(2, n=5)
    assert c.tell(2, n=5, extra=True).surplus == 1


@pytest.mark.parametrize("n", [0, -1, 1.5, True, float("nan"), float("inf"), "x", None])
def test_what_is_no_number_of_rows(make: Make, n: Any) -> None:
    c = make()
    c.ask()
    same = nothing_changes(c)
    with pytest.raises(eh.errors.InputError):
        c.tell(1, n=n)
    same()


def test_a_learner_needs_the_rows(make: Make) -> None:
    c = make(learner="logistic")
    c.ask()
    with pytest.raises(eh.errors.InputError, match="has a learner, which needs the rows"):
        c.tell(1, n=4)
    with pytest.raises(eh.errors.InputError, match="tell either rows"):
        c.tell(1, rows(2), labels(2), n=2)
    with pytest.raises(eh.errors.InputError, match="tell either rows"):
        c.tell(1, rows(2))


def test_after_its_lease_a_request_is_asked_again_and_late_labels_are_taken(make: Make, clock: Clock) -> None:
    c = make(budget=8)
    c.ask_many(2)
    c.tell(1, rows(1), ["yes"], ids=["a"])
    clock.now += 61
    assert [r["request"] for r in c.status()["expired"]] == [1, 2]
    assert c.ask().size == 4
    assert [(r["request"], r["outstanding"]) for r in c.status()["expired"]] == [(1, 3), (2, 4)]
    late = c.tell(1, rows(3, 10), labels(3), ids=["b", "c", "d"])
    assert (late.rows, late.late, late.outstanding) == (3, True, 0)
    assert c.labels_used + c.status()["promised"] == 8
    same = nothing_changes(c)
    with pytest.raises(eh.errors.InputError, match=r"request 2 has expired and .* the budget, which has 0 left"):
        c.tell(2, rows(1, 40), ["yes"])
    same()
    receipt = c.tell(2, rows(2, 40), labels(2), partial=True)
    assert (receipt.rows, len(receipt.refused)) == (0, 2)
    c.change(budget=9)
    assert c.tell(2, rows(2, 50), labels(2), partial=True, ids=["x", "y"]).rows == 1
    assert c.labels_used + c.status()["promised"] == 9


def test_a_late_label_of_an_id_that_has_one(make: Make, clock: Clock) -> None:
    c = make()
    c.ask()
    clock.now += 61
    c.ask()
    c.tell(2, rows(1), ["yes"], ids=["a"])
    receipt = c.tell(1, rows(1), ["yes"], ids=["a"])
    assert (receipt.rows, receipt.known, receipt.outstanding) == (0, 1, 4)
    with pytest.raises(eh.errors.InputError, match="has the label 'yes', not 'no'"):
        c.tell(1, rows(1), ["no"], ids=["a"])


def test_a_receipt_after_the_lease_says_so(make: Make, clock: Clock) -> None:
    c = make()
    c.ask()
    clock.now += 61
    assert c.tell(1, rows(4), labels(4)).late


def test_extended_requests_wait_longer(make: Make, clock: Clock) -> None:
    c = make()
    c.ask_many(2)
    clock.now += 50
    assert c.extend(1, "2h") == clock.now + 7200
    assert c.open_requests[0].until == clock.now + 7200
    clock.now += 20
    c.ask()
    assert [r.id for r in c.open_requests] == [1, 3]
    assert c.extend(1, None) is None
    with pytest.raises(eh.errors.InputError, match="request 2 has expired"):
        c.extend(2, "1h")
    with pytest.raises(eh.errors.InputError, match="request 9 was never made; open requests: 1, 3"):
        c.extend(9, "1h")
    with pytest.raises(eh.errors.InputError, match="cannot use the lease 'soon'"):
        c.extend(1, "soon")
    clock.now += 1e7
    c.ask()
    assert [r.id for r in c.open_requests] == [1, 4]


def test_abandoned_requests_keep_what_was_told(make: Make) -> None:
    c = make(budget=8)
    c.ask_many(2)
    c.tell(1, rows(1), ["yes"], ids=["a"])
    c.abandon(1)
    assert (c.labels_used, c.unspent, c.status()["promised"]) == (1, 3, 4)
    for extra in (False, True):
        with pytest.raises(eh.errors.InputError, match="request 1 was abandoned; open requests: 2"):
            c.tell(1, rows(1, 10), ["yes"], extra=extra)
    assert c.tell(1, rows(1), ["yes"], ids=["a"]).known == 1
    assert everything(c) == {"a": "yes"}


# -------------------------------------------------------------------- labels


@pytest.mark.parametrize(
    ("before", "label", "why"),
    [
        (None, None, "no label"),
        (None, float("nan"), "no label"),
        (None, np.nan, "no label"),
        (None, pd.NA, "no label"),
        (None, pd.NaT, "no label"),
        (None, "", "no label"),
        (None, "  ", "no label"),
        (None, ["x"], "neither text"),
        (None, ("x",), "neither text"),
        (None, {"x": 1}, "neither text"),
        (None, b"x", "neither text"),
        (None, dt.date(2026, 1, 1), "neither text"),
        (None, float("inf"), "neither text nor a whole number"),
        (None, 0.5, "neither text nor a whole number"),
        (None, 2**70, "beyond 64 bits"),
        (None, 1e30, "beyond 64 bits"),
        (None, "a\0b", "has the character"),
        (None, "a\nb", "has the character"),
        (None, "x" * 501, "at most 500 are allowed"),
        ("x", " x", "blanks around it"),
        ("x", "x ", "blanks around it"),
        ("x", "X", "only by case or blanks"),
        ("x", 0, "not like the classes so far, 'x'"),
        ("x", True, "not like the classes so far"),
        (0, "0", "not like the classes so far, 0"),
        (1, True, "not like the classes so far"),
        (True, 1, "not like the classes so far"),
        (True, "true", "not like the classes so far"),
    ],
)
def test_what_can_be_no_label(make: Make, before: Any, label: Any, why: str) -> None:
    c = make()
    c.ask_many(2)
    if before is not None:
        c.tell(1, rows(1), [before])
    same = nothing_changes(c)
    with pytest.raises(eh.errors.InputError, match=why):
        c.tell(2, rows(1, 10), [label])
    with pytest.raises(eh.errors.InputError, match=why):
        c.add(rows(1, 10), [label], ["u"])
    same()


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ([0, 1], [0, 1]),
        ([1.0, 0.0], [1, 0]),
        (np.array([1.0, 2.0]), [1, 2]),
        (np.array([1, 2], dtype=np.int8), [1, 2]),
        ([True, False], [True, False]),
        (np.array([True, False]), [True, False]),
        (["yes", "no"], ["yes", "no"]),
        (np.array(["yes", "no"]), ["yes", "no"]),
        ([np.str_("yes"), np.str_("no")], ["yes", "no"]),
        (pd.Series(["b", "a"], dtype="category"), ["b", "a"]),
        (pl.Series(["b", "a"]), ["b", "a"]),
        (pa.array([3, 4]), [3, 4]),
        ([-(2**63), 2**63 - 1], [-(2**63), 2**63 - 1]),
        (["=cmd()", "’quote’"], ["=cmd()", "’quote’"]),
        (["ja", "nein – niemals"], ["ja", "nein – niemals"]),
    ],
)
def test_labels_come_back(make: Make, told: Any, kept: list[Any]) -> None:
    c = make(batch=1)
    c.tell(c.ask(), rows(2), told, ids=["a", "b"])
    found = everything(c)
    assert [found["a"], found["b"]] == kept
    assert [type(found[name]) for name in "ab"] == [type(label) for label in kept]


@pytest.mark.parametrize("labels", [{"a": 1, "b": 2}, {"a", "b"}, "ab", 3, pd.DataFrame({"a": [1, 2], "b": [1, 2]})])
def test_labels_come_in_a_list(make: Make, labels: Any) -> None:
    c = make()
    c.ask()
    same = nothing_changes(c)
    with pytest.raises(eh.errors.InputError):
        c.tell(1, rows(2), labels)
    same()


def test_a_whole_float_is_that_number(make: Make) -> None:
    c = make()
    c.tell(c.ask(), rows(2), [0, 1], ids=["a", "b"])
    again = c.tell(1, rows(2), [0.0, 1.0], ids=["a", "b"])
    assert (again.known, again.new_classes) == (2, ())


def test_a_new_class_is_named_in_the_receipt(make: Make) -> None:
    c = make()
    assert set(c.tell(c.ask(), rows(2), ["yes", "no"]).new_classes) == {"yes", "no"}
    assert c.tell(1, rows(2, 20), ["yes", "no"]).new_classes == ()
    assert c.tell(c.ask(), rows(2, 40), ["yes", "perhaps"]).new_classes == ("perhaps",)


def test_given_classes_are_all_there_are(make: Make) -> None:
    c = make(classes=["yes", "no"])
    c.ask()
    same = nothing_changes(c)
    for label in ("maybe", "Yes", 1, True):
        with pytest.raises(eh.errors.InputError, match=r"'no', 'yes'"):
            c.tell(1, rows(1), [label])
    same()
    assert c.tell(1, rows(2), ["yes", "no"]).new_classes == ()


@pytest.mark.parametrize("classes", [[0, "a"], [0, 0], [0, None], [0.5, 1], [[0], [1]]])
def test_classes_that_cannot_be(make: Make, classes: Any) -> None:
    with pytest.raises(eh.errors.InputError):
        make(classes=classes)


@pytest.mark.here
def test_a_file_writes_numbers_as_text(make: Make, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    c = make(classes=[0, 1])
    c.ask()
    file.write_text("id,a,label\n01,1,0\n02,2,1.0\n")
    c.tell_delivery(1, c.read(file, 1)[1])
    assert everything(c) == {"01": 0, "02": 1}
    file.write_text("id,a,label\n03,1,yes\n")
    with pytest.raises(eh.errors.InputError, match="'yes' is not like the classes"):
        c.tell_delivery(1, c.read(file, 1)[1])


# -------------------------------------------------------------------- features come back exactly

NUMBERS = {"one": [0.1, -1e-300, 1e100, 123456789.123456789], "two": [1.5, 2.5, -0.0, 5e-324]}


def told(make: Make, X: Any, **settings: Any) -> tuple[Any, list[int]]:
    """The training rows as they come back, and where they were among those told."""
    c = make(**settings)
    c.tell(c.ask(), X, labels(4), ids=list("abcd"))
    found = c.training_set()
    assert c.verify().ok
    assert c.tell(1, X, labels(4), ids=list("abcd")).known == 4
    return found.X, ["abcd".index(name) for name in found.ids.tolist()]


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint8", "bool"])
def test_arrays_come_back(make: Make, dtype: str) -> None:
    X = np.array(list(NUMBERS.values())).T if dtype == "float64" else np.arange(8).reshape(4, 2).astype(dtype)
    found, at = told(make, X)
    assert isinstance(found, np.ndarray)
    assert np.array_equal(found, X[at])
    assert np.array_equal(np.signbit(found), np.signbit(X[at].astype(float)))


@pytest.mark.here
def test_sparse_rows_come_back(make: Make) -> None:
    X = sp.csr_array(np.array([[0.1, 0, 0], [0, 0, 1e-300], [0, 0, 0], [3, 2, 1]]))
    found, at = told(make, X)
    assert isinstance(found, sp.csr_array)
    assert found.shape == (len(at), 3)
    assert np.array_equal(found.toarray(), X.toarray()[at])


@pytest.mark.here
@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", "int16", "bool"])
def test_images_come_back(make: Make, dtype: str) -> None:
    X = (np.random.default_rng(0).normal(size=(4, 3, 2, 2)) * 20).astype(dtype)
    found, at = told(make, X)
    assert found.dtype == X.dtype
    assert np.array_equal(found, X[at])


FRAME = {
    "number": [0.1, None, 1e100, -0.5],
    "whole": [1, 2, 3, 2**62 + 1],
    "flag": [True, False, False, True],
    "word": ["a", 'it\'s\n"b"', None, "ش"],
    "day": [dt.date(2026, 1, 1), dt.date(1969, 12, 31), None, dt.date(2026, 1, 2)],
    "time": [dt.datetime(2026, 1, 1, 12, 30, 15, 123456), None, dt.datetime(1, 1, 1), dt.datetime(2026, 1, 2)],
}


def test_pandas_frames_come_back(make: Make) -> None:
    X = pd.DataFrame(
        {
            "number": [0.1, np.nan, 1e100, -0.5],
            "whole": FRAME["whole"],
            "flag": FRAME["flag"],
            "word": pd.Series([np.nan if word is None else word for word in FRAME["word"]], dtype=object),
            "kind": pd.Series(["x", "y", "x", "y"], dtype="category"),
            "time": pd.to_datetime(
                ["2026-01-01 12:30:15.123456", "1969-12-31", "2000-02-29", "2026-01-02"], format="ISO8601"
            ),
        }
    )
    found, at = told(make, X)
    expected = X.iloc[at].reset_index(drop=True)
    expected["word"] = expected["word"].where(
        expected["word"].notna(), np.nan
    )  # a gap comes back as NaN, also from None
    pd.testing.assert_frame_equal(found, expected, check_dtype=False, check_categorical=False)
    assert [found[name].dtype.kind for name in ("number", "whole", "flag", "time")] == ["f", "i", "b", "M"]


def test_pandas_missing_values_come_back(make: Make) -> None:
    X = pd.DataFrame(
        {
            "whole": pd.array([1, None, 3, 4], dtype="Int64"),
            "flag": pd.array([True, None, False, True], dtype="boolean"),
            "kind": pd.Series(["x", None, "x", "y"], dtype="category"),
            "time": pd.to_datetime(["2026-01-01", None, "2000-02-29", "2026-01-02"]),
        }
    )
    found, at = told(make, X)
    for name in X.columns:
        was, now = X[name].iloc[at].tolist(), found[name].tolist()
        assert [pd.isna(v) for v in now] == [pd.isna(v) for v in was]
        assert [v for v in now if not pd.isna(v)] == [v for v in was if not pd.isna(v)]


def test_times_come_back_in_utc_without_a_zone_and_to_the_microsecond(make: Make) -> None:
    X = pd.DataFrame(
        {
            "zoned": pd.to_datetime(["2026-01-01 12:00+02:00", "2026-03-29 00:59+00:00"] * 2, utc=True),
            "fine": pd.to_datetime(["2026-01-01 00:00:00.123456789"] * 4),
        }
    )
    found, at = told(make, X)
    assert found["zoned"].tolist() == X["zoned"].dt.tz_localize(None).iloc[at].tolist()
    assert found["fine"].tolist() == X["fine"].dt.floor("us").iloc[at].tolist()


@pytest.mark.here
@pytest.mark.parametrize("library", ["polars", "arrow"])
def test_frames_of_other_libraries_come_back_as_those_of_pandas(make: Make, library: str) -> None:
    kinds = ["x", "y", "x", None]
    X = (
        pl.DataFrame(FRAME, strict=False).with_columns(kind=pl.Series(kinds, dtype=pl.Categorical))
        if library == "polars"
        else pa.table({**FRAME, "kind": pa.array(kinds).dictionary_encode()})
    )
    found, at = told(make, X)
    assert isinstance(found, pd.DataFrame)
    given = {**FRAME, "kind": kinds}
    assert list(found.columns) == list(given)
    for name, values in given.items():
        came = [None if pd.isna(value) else value for value in found[name].tolist()]
        # dates are times at midnight
        assert [pd.Timestamp(v) if name == "day" and v else v for v in (values[k] for k in at)] == came


@pytest.mark.parametrize("none", [[None] * 4, [""] * 4, [float("nan")] * 4], ids=["null", "empty", "nan"])
def test_a_column_without_values_is_not_left_out_of_a_first_delivery(make: Make, none: list[Any]) -> None:
    found, _ = told(make, pd.DataFrame({"a": [1.0, 2, 3, 4], "none": none}))
    assert found["none"].isna().all()


def test_many_different_values_do_not_leave_a_column_out_of_a_first_delivery(make: Make) -> None:
    c = make()
    c.ask_many(30)
    frame = pd.DataFrame({"a": np.arange(60.0), "name": [f"n{k}" for k in range(60)]})
    c.add(frame, labels(60), ["u"] * 60)
    assert list(c.training_set().X.columns) == ["a", "name"]


def test_columns_may_come_in_another_order_and_from_another_library(make: Make) -> None:
    c = make()
    c.ask()
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]})
    c.tell(1, frame, labels(2), ids=["p", "q"])
    for again in (frame[["b", "a"]], pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        assert c.tell(1, again, labels(2), ids=["p", "q"]).known == 2
    with pytest.raises(eh.errors.InputError, match=r"there is no column 'b' \(a feature\); the columns are 'a', 'c'"):
        c.tell(1, frame.rename(columns={"b": "c"}), labels(2))
    # text that looks like numbers is numbers, as in a file
    assert c.tell(1, frame.astype({"a": str}), labels(2), ids=["p", "q"]).known == 2
    with pytest.raises(eh.errors.InputError, match="row 1: a: 'many' is not a number"):
        c.tell(1, pd.DataFrame({"a": ["1", "many"], "b": ["x", "y"]}), labels(2))
    with pytest.raises(eh.errors.InputError, match="earlier rows were a data frame, these are dense"):
        c.tell(1, rows(2), labels(2))


def test_whole_numbers_told_again_as_floats_are_the_same(make: Make) -> None:
    c = make()
    c.ask()
    c.tell(1, pd.DataFrame({"a": [1, 2]}), labels(2), ids=["p", "q"])
    with_a_gap = pd.DataFrame({"a": [1, 2, None]})  # pandas makes floats of them
    receipt = c.tell(1, with_a_gap, labels(3), ids=["p", "q", "s"])
    assert (receipt.rows, receipt.known) == (1, 2)


@pytest.mark.here
def test_sparse_and_dense_rows_are_the_same(make: Make) -> None:
    c = make(learner="logistic")
    c.ask_many(2)
    c.tell(1, sp.csr_array(rows(4)), labels(4), ids=list("abcd"))
    assert c.tell(1, rows(4), labels(4), ids=list("abcd")).known == 4
    c.tell(2, rows(2, 20), labels(2))
    assert c.model() is not None


def test_what_a_learner_cannot_use_does_not_get_in(make: Make) -> None:
    c = make(learner="logistic")
    c.ask()
    same = nothing_changes(c)
    for X, why in [
        (pd.DataFrame({"a": [1.0, None]}), "a is missing, which the learner cannot use"),
        (pd.DataFrame({"a": ["x", "y"]}), "column 'a' is text, which the learner cannot use"),
        (np.array([[0.0, 1.0], [np.nan, 1.0]]), "row 1: feature 0 is NaN"),
        (np.array([[0.0, 1.0], [np.inf, 1.0]]), "row 1: feature 0 is inf"),
        (np.array([[0.0, 1.0], [1e160, 1.0]]), "row 1: feature 0 is 1e.160: only numbers up to"),
        (sp.csr_array(np.array([[0.0, 1.0], [np.nan, 1.0]])), "row 1: feature 0 is NaN|cannot be sent"),
        (np.array(["x", "y"]), "rows and features"),
        (np.zeros((2, 0)), "no features"),
        ([[1.0], [1.0, 2.0]], "one length"),
        ([["x"], ["y"]], "must be numbers"),
    ]:
        with pytest.raises(eh.errors.InputError, match=why):
            c.tell(1, X, labels(2))
    same()


def test_a_part_that_filled_its_request_may_be_told_again() -> None:
    c = eh.Campaign(["u", "v"], "uniform", "logistic", budget=20)
    request = c.ask()
    X = [[float(k)] for k in range(3)]
    for stored in (2, 0):
        receipt = c.tell(request, X, ["a", "b", "a"], ids=["p", "q", "r"], partial=True)
        assert (receipt.rows, receipt.known, [row.id for row in receipt.refused]) == (stored, 2 - stored, ["r"])
    assert c.labels_used == 2

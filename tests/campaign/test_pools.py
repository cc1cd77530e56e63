"""Pools: a campaign that names the very examples, from Python, on all three ledgers."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from tests.helpers import Clock, label_of, new_schema, pool_frame

import evenhand as eh
from evenhand.campaign.pools import fetch_ahead
from evenhand.campaign.state import State
from evenhand.errors import InputError, NothingToAsk
from evenhand.ledger import Ledger, MemoryLedger
from evenhand.ledger.database import DatabaseLedger
from evenhand.uniforms import places

Make = Callable[..., eh.Campaign]
GROUPS = ("u", "v")
ON_SERVER = {
    "test_a_pool_names_the_examples", "test_the_columns_are_those_of_the_row", "test_groups_come_from_the_pool",
    "test_the_group_can_be_a_feature",
    "test_labels_fill_whichever_requests_they_belong_to",
    "test_the_same_label_again_changes_nothing", "test_all_or_nothing_partial_and_dry_run",
    "test_a_request_of_a_pool_is_answered_by_id_only", "test_abandoned_examples_go_back",
    "test_what_cannot_be_skipped", "test_labelled_pool_rows_are_corrected_withdrawn_and_erased",
}  # fmt: skip
"""What runs on a server too: uploading a table takes half a second, and the rest is the same code."""


@pytest.fixture(scope="module")
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="module", params=["memory", "sqlite", "postgresql", "server"])
def ledger(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, clock: Clock) -> Iterator[Any]:
    """Where campaigns are kept; with a server, what makes them there."""
    if request.param == "server":
        yield request.getfixturevalue("create_remote")
        return
    if request.param == "memory":
        yield MemoryLedger(clock=clock)
        return
    with DatabaseLedger(url_of(request, tmp_path_factory), create=True, clock=clock) as found:
        yield found


def url_of(request: pytest.FixtureRequest, folders: pytest.TempPathFactory) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{folders.mktemp('pools') / 'l.db'}?synchronous=normal"
    return f"{new_schema(request.getfixturevalue('postgres_server'))}&synchronous=normal"


def made(
    ledger: Any, groups: Any = GROUPS, strategy: str = "uniform", learner: Any = None, **given: Any
) -> eh.Campaign:
    asked = {"budget": 40, "batch": 1, "lease": "1h", "seed": 1, **given}
    named = None if groups is None else list(groups)
    if not isinstance(ledger, Ledger):
        return ledger(named, strategy, learner, **asked)
    return eh.Campaign.create(ledger, f"c{len(ledger.campaigns())}", named, strategy, learner, **asked)


@pytest.fixture
def make(ledger: Ledger) -> Make:
    def made_here(*given: Any, **more: Any) -> eh.Campaign:
        return made(ledger, *given, **more)

    return made_here


def tell(c: eh.Campaign, request: eh.campaign.Request) -> Any:
    return c.tell_labels({name: label_of(name) for name in request.examples})


def run(c: eh.Campaign) -> list[tuple[int, str, tuple[str, ...]]]:
    """Ask and tell to the end: what was asked."""
    found = []
    while True:
        try:
            request = c.ask()
        except NothingToAsk:
            return found
        found.append((request.id, request.group, request.examples))
        tell(c, request)


def everything(c: eh.Campaign) -> dict[str, str]:
    """The label of every id."""
    found: dict[str, str] = {}
    for part in (c.training_set, c.validation_set):
        try:
            examples = part()
        except InputError:
            continue
        found |= dict(zip(examples.ids.tolist(), examples.y.tolist(), strict=True))
    return found


def standing(c: eh.Campaign) -> Any:
    """All of a campaign that must be the same after it is opened again; times go on meanwhile."""
    found = c.status()
    found["scores"].pop("age_seconds")
    return found, [r.as_dict() for r in c.open_requests], c.events(), everything(c)


def in_pools(c: eh.Campaign) -> dict[str, int]:
    """How many examples of every group the ledger would hand out: the state has to agree."""
    if not isinstance(c, eh.Campaign):
        return {group: about["left"] for group, about in c.status()["groups"].items()}
    with c.store.moment() as (reader, _):
        state = State().fold(reader.events())
        found = {group: len(reader.next_in_pool(group, 10**6)) for group in state.groups}
        assert state.pool == list(found.values())
        return found


def sound(c: eh.Campaign) -> None:
    """What must hold after everything: replay, reopening and verifying come to the same; ids in one request at most."""
    if not isinstance(c, eh.Campaign):  # on a server: the ledger itself is not at hand
        assert c.verify().problems == []
        return
    with c.store.moment() as (reader, state):
        replayed = State()
        for event in reader.events():
            replayed.fold([event])
            assert replayed.labels_used + replayed.outstanding <= replayed.settings["budget"]
            assert min(replayed.pool or [0]) >= 0
            held = [name for request in replayed.open.values() for name in request.get("left", ())]
            assert len(held) == len(set(held))
            assert all(r["size"] - r["told"] == len(r["left"]) for r in replayed.open.values() if "left" in r)
        assert state == replayed.copy().expire(reader.now)  # a look sees leases that ended, though no event says so yet
        state = replayed
        held = [name for request in state.open.values() for name in request.get("left", ())]
        rows = reader.find(held)
        assert all(rows[name].held and rows[name].label is None and rows[name].fate is None for name in held)
    if state.pool is not None:
        in_pools(c)
    again = eh.Campaign.open(c.store.ledger, c.name)
    assert standing(again) == standing(c)
    assert c.verify().problems == []


def unchanged(c: eh.Campaign) -> Callable[[], None]:
    """To be called later: nothing was stored since."""
    before = standing(c)

    def check() -> None:
        assert standing(c) == before

    return check


# -------------------------------------------------------------------- registering


def test_a_pool_names_the_examples(make: Make) -> None:
    c = make(learner="table", batch=2)
    found = c.pool(pool_frame())
    assert (found.groups, found.known, found.labelled) == ({"u": 20, "v": 20}, 0, 0)
    request = c.ask()
    assert (len(request.examples), request.size, request.outstanding) == (4, 4, 4)
    assert set(request.examples) <= set(pool_frame().query("group == @request.group")["id"])
    assert request.as_dict()["examples"] == list(request.examples)
    assert c.open_requests[0].examples == request.examples
    receipt = tell(c, request)
    assert (receipt.request, receipt.rows, receipt.outstanding) == (request.id, 4, 0)
    assert not c.open_requests
    run(c)
    assert c.labels_used == 40
    assert c.done
    assert {name: label_of(name) for name in everything(c)} == everything(c)
    sound(c)


def test_the_columns_are_those_of_the_row(make: Make) -> None:
    c = make()
    c.pool(pool_frame())
    run(c)
    rows = pool_frame().set_index("id")
    examples = c.training_set()
    assert list(examples.X.columns) == ["x", "w"]
    assert examples.X.to_numpy().tolist() == rows.loc[examples.ids, ["x", "w"]].to_numpy().tolist()
    assert examples.groups.tolist() == rows.loc[examples.ids, "group"].tolist()


@pytest.mark.parametrize(
    "kind",
    [
        pl.from_pandas,
        lambda f: pl.from_pandas(f).lazy(),
        lambda f: pa.Table.from_pandas(f, preserve_index=False),
        lambda f: f.set_index(np.arange(len(f))[::-1]),
        lambda f: f.astype({"group": "category"}),
        lambda f: f.convert_dtypes(),
    ],
    ids=["polars", "lazy", "arrow", "index", "category", "nullable"],
)
def test_all_frames_are_one_pool(kind: Any) -> None:
    plain, other = made(MemoryLedger(), None, learner="table"), made(MemoryLedger(), None, learner="table")
    plain.pool(pool_frame())
    other.pool(kind(pool_frame()))
    assert run(plain) == run(other)
    assert (plain.training_set().X.to_numpy() == other.training_set().X.to_numpy()).all()
    sound(other)


def test_a_table_in_pieces_is_one_table(make: Make) -> None:
    """Arrow and polars keep what was put together in chunks."""
    parts = [pool_frame(10), pool_frame(25, 10), pool_frame(5, 35)]
    arrow = [pa.Table.from_pandas(part, preserve_index=False) for part in parts]
    for whole in (pa.concat_tables(arrow), pl.concat([pl.from_arrow(part) for part in arrow], rechunk=False)):
        c = make()
        c.pool(whole)
        run(c)
        examples, rows = c.training_set(), pool_frame().set_index("id")
        assert examples.X.to_numpy().tolist() == rows.loc[examples.ids, ["x", "w"]].to_numpy().tolist()


def test_the_order_of_the_rows_does_not_matter(make: Make) -> None:
    asked = []
    for k in range(3):
        c = make(learner="table", strategy="optimistic", batch=2)
        c.pool(pool_frame().sample(frac=1, random_state=k), _salt="a secret")
        asked.append(run(c))
    assert asked[0] == asked[1] == asked[2]


def test_the_ledgers_agree(ledger: Ledger) -> None:
    c, memory = made(ledger, learner="table"), made(MemoryLedger(), learner="table")
    for each in (c, memory):
        each.pool(pool_frame(), _salt="a secret")
    assert run(c) == run(memory)


def test_a_seed_decides_the_rows_in_memory_only(ledger: Ledger) -> None:
    asked = []
    for seed in (1, 2, 1):
        c = made(ledger, seed=seed)
        c.pool(pool_frame())
        asked.append([names for _, _, names in run(c)])
    assert asked[0] != asked[1]
    assert (asked[0] == asked[2]) == isinstance(ledger, MemoryLedger)


@pytest.mark.here
def test_without_a_seed_every_campaign_has_its_own(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    asked, seeds = [], set()
    for _ in range(3):
        c = make(seed=None)
        c.pool(pool_frame())
        asked.append([names for _, _, names in run(c)])
        seeds.add(c.settings["seed"])
    assert asked[0] != asked[1] != asked[2]
    assert len(seeds) == 3
    sound(c)


def order_of(c: eh.Campaign, group: str = "u") -> list[str]:
    with c.store.moment() as (reader, _):
        return [e.id for e in reader.next_in_pool(group, 10**6)]


def test_an_id_keeps_its_place_whatever_is_registered_later(make: Make) -> None:
    """Or whoever is not content with an order would register until another comes."""
    c = make(seed=None)
    c.pool(pool_frame(40))
    first = order_of(c)
    c.pool(pool_frame(40))
    assert order_of(c) == first
    c.pool(pool_frame(80))
    known = set(first)
    assert [name for name in order_of(c) if name in known] == first
    sound(c)


def test_every_table_draws_a_salt_of_its_own(make: Make) -> None:
    c = make(seed=None)
    c.pool(pool_frame(40))
    c.pool(pool_frame(80))
    with c.store.moment() as (reader, _):
        salts = reader.orders()
        rows = reader.find(["e0", "e79"])
    assert len(set(salts.values())) == 2
    assert salts.keys() == {rows["e0"].registered, rows["e79"].registered}
    for row in rows.values():
        assert [row.place] == places(salts[row.registered or 0], [row.id])


def test_what_is_added_later_mixes_in(make: Make) -> None:
    c = make(budget=80)
    c.pool(pool_frame(20), _salt="a secret")
    early = [name for _ in range(4) for name in c.ask().examples]
    known = c.pool(pool_frame(60), _salt="a secret")
    assert (known.known, sum(known.groups.values())) == (20, 40)
    later = [name for r in c.ask_many(12) for name in r.examples]
    assert not set(early) & set(later)
    old = [int(name[1:]) < 20 for name in later]
    assert any(old)
    assert not all(old)
    assert old != sorted(old, reverse=True), "all the old ones came first"
    sound(c)


def test_a_place_is_a_hash_of_salt_and_id() -> None:
    """BLAKE2b of the id with the salt as key, so that somebody who is given the salt can check the order."""

    def place(name: str) -> bytes:
        return hashlib.blake2b(name.encode(), digest_size=8, key=b"a secret").digest()

    c = eh.Campaign(GROUPS, "uniform", budget=40, batch=10)
    c.pool(pool_frame(40), _salt="a secret")
    for request in c.ask_many(2):
        mine = pool_frame(40).query("group == @request.group")["id"]
        assert request.examples == tuple(sorted(mine, key=place))


def test_groups_come_from_the_pool(make: Make) -> None:
    c = make(None, learner="table")
    with pytest.raises(NothingToAsk, match="no pool yet"):
        c.ask()
    assert c.status()["groups"] == {}
    c.pool(pool_frame())
    assert c.groups == GROUPS
    run(c)
    sound(c)
    with pytest.raises(InputError, match="unknown group 'z'"):
        c.pool(pool_frame(2, 100).assign(group="z"))


def test_shares_come_from_the_pool(make: Make) -> None:
    c = make(None, strategy="uncurated")
    c.pool(pool_frame().iloc[:30].assign(group=["u"] * 24 + ["v"] * 6))
    assert c.settings["population"] == pytest.approx([0.8, 0.2])


def test_bins_and_intersections_are_named_as_tables_name_them(make: Make) -> None:
    people = pool_frame().assign(age=np.arange(40) + 15, sex=np.where(np.arange(40) % 3, "f", "m"))
    c = make(None, group="who")
    c.pool(people, group=["sex", "age:30,45"])
    table = eh.Table(
        people.assign(label=np.arange(40) % 2), label="label", groups=["sex", "age:30,45"], ignore=["id", "group"]
    )
    assert set(c.groups) == set(table.groups)
    assert "sex=f, age=30 to under 45" in c.groups
    request = c.ask()
    rows = people.set_index("id").loc[list(request.examples)]
    assert {f"sex={row.sex}" for row in rows.itertuples()} == {request.group.partition(",")[0]}
    binned = make(None)
    binned.pool(people, group="age:30")
    assert binned.groups == ("under 30", "30 and over")
    run(binned)
    sound(binned)


def test_features_can_be_chosen(make: Make) -> None:
    c = make(learner="logistic")
    c.pool(pool_frame().assign(note="text"), features=["w"])
    run(c)
    assert list(c.training_set().X.columns) == ["w"]
    names, rows = c.to_label([])
    assert (names, rows) == (["label", "id", "request", "group", "x", "w", "note"], [])
    other = make(learner="logistic")
    other.pool(pool_frame().assign(note="text"), ignore=["note"])
    run(other)
    assert list(other.training_set().X.columns) == ["x", "w"]
    sound(other)


def test_the_group_can_be_a_feature(make: Make) -> None:
    c = make(learner="table")
    c.pool(pool_frame(), features=["group", "x"])
    run(c)
    assert sorted(c.training_set().X.columns) == ["group", "x"]
    sound(c)


# -------------------------------------------------------------------- half-labelled tables


@pytest.mark.parametrize("learner", ["table", "logistic"])
def test_labelled_rows_are_taken_in_as_add_does(make: Make, learner: str) -> None:
    half = pool_frame().assign(label=[label_of(f"e{k}") if k < 10 else None for k in range(40)])
    c = make(learner=learner, budget=20)
    found = c.pool(half)
    assert (found.groups, found.labelled) == ({"u": 15, "v": 15}, 10)
    assert (c.labels_used, len(everything(c))) == (0, 10)
    asked = {name for _, _, names in run(c) for name in names}
    assert len(asked) == 20
    assert not asked & {f"e{k}" for k in range(10)}
    assert len(everything(c)) == 30
    sound(c)


@pytest.mark.parametrize("learner", [None, "table", "logistic"])
def test_a_half_labelled_table_may_bring_the_groups(make: Make, learner: Any) -> None:
    c = make(None, learner=learner, budget=8)
    found = c.pool(pool_frame(20).assign(label=[label_of(f"e{k}") if k < 4 else None for k in range(20)]))
    assert (found.groups, found.labelled) == ({"u": 8, "v": 8}, 4)
    run(c)
    assert len(everything(c)) == 12
    sound(c)


def test_a_bad_label_is_named_by_its_row_in_the_table(make: Make) -> None:
    c = make(learner="table")
    with pytest.raises(InputError, match=r"row 17 \(e17\).*500 are allowed") as refused:
        c.pool(pool_frame(20).assign(label=[None] * 15 + ["yes", "no", "y" * 501, None, None]))
    assert [row.row for row in refused.value.refused] == [17]
    assert "partial" not in str(refused.value)


def test_labels_spelled_in_several_ways_are_one_only_where_that_is_said(make: Make) -> None:
    c = make(learner="table")
    table = pool_frame(20).assign(label=[None] * 14 + ["yes", "no", "Yes", "yes ", "YES", "yes"])
    same = unchanged(c)
    with pytest.raises(InputError, match=r"only by case.*'yes', 'YES', 'Yes', 'yes '.*--merge-spellings"):
        c.pool(table)
    same()
    c.pool(table, merge_spellings=True)
    assert set(everything(c).values()) == {"yes", "no"}


@pytest.mark.parametrize("values", [[0.0, 1.0], [0, 1], [True, False], ["0", "1"], ["a", "b"]])
def test_labels_of_a_half_labelled_table_keep_their_kind(make: Make, values: list[Any]) -> None:
    c = make(budget=4)
    c.pool(pool_frame(12).assign(label=[*values, *[None] * 10]))
    assert sorted(map(str, everything(c).values())) == sorted(
        str(int(v)) if type(v) is float else str(v) for v in values
    )
    # text that looks like numbers is numbers, as in a file
    kind = int if values[0] in (0.0, "0") and type(values[0]) is not bool else type(values[0])
    assert {type(label) for label in everything(c).values()} == {kind}
    sound(c)


def test_labelled_rows_are_no_evidence(make: Make) -> None:
    c = make(learner="table", budget=40, seed=None)
    c.pool(pool_frame(20))
    for _ in range(6):
        tell(c, c.ask())
    c.certify()
    c.pool(pool_frame(10, 100).assign(label=[label_of(f"e{k}") for k in range(100, 110)]))
    certificate = c.certificate()
    assert certificate is not None
    assert sum(certificate.n) == 0


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (["yes", "Yes"], "only by case"),
        (["yes", 1], "one kind|mixes"),
        ([1.5, 2.0], "whole number"),
        (["a\0", "b"], "character"),
    ],
)
def test_a_bad_label_stores_nothing(make: Make, bad: list[Any], message: str) -> None:
    c = make(learner="table")
    same = unchanged(c)
    with pytest.raises(InputError, match=message):
        c.pool(pool_frame(20).assign(label=pd.Series([*bad, *[None] * 18], dtype=object)))
    same()


def test_a_label_that_is_no_class_stores_nothing(make: Make) -> None:
    c = make(classes=["yes", "no"])
    same = unchanged(c)
    with pytest.raises(InputError, match="not among the classes"):
        c.pool(pool_frame(20).assign(label=["yes", "maybe", *[None] * 18]))
    same()


# -------------------------------------------------------------------- bad input


def without(column: str) -> Any:
    return lambda f: f.drop(columns=column)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            lambda f: f.assign(id=["e1"] * 2 + list(f["id"][2:-1]) + ["e1"]),
            r"comes again in rows 2, \d+: the first is 'e1'",
        ),
        (lambda f: f.assign(id=[None, *f["id"][1:]]), "the id 'id' is missing in row 1"),
        (lambda f: f.assign(id=["", *f["id"][1:]]), "the id 'id' is missing in row 1"),
        (lambda f: f.assign(id=["x" * 501, *f["id"][1:]]), "row 1.*501 characters"),
        (lambda f: f.assign(id=["a\0b", *f["id"][1:]]), "row 1.*character"),
        (lambda f: f.assign(id=np.arange(len(f)) + 0.5), "row 1.*no id"),
        (lambda f: f.assign(id=f["x"] > 0), "'id' holds bool: ids are text or whole numbers"),
        (
            lambda f: f.assign(group=[*f["group"][:-1], None]),
            "'group' tells the group, and is empty in row 20: leave these rows out",
        ),
        (lambda f: f.assign(group=["z", *f["group"][1:-1], "z"]), "unknown group 'z'.*rows 1, 20"),
        (without("id"), "no column 'id'"),
        (without("group"), "no column 'group'"),
        (lambda f: f[["id", "group"]], "no features"),
        (lambda f: f.assign(x=[1, "a", *f["x"][2:]]), "'x' mixes types"),
        (lambda f: f.assign(x=np.inf), "x"),
        (lambda f: f.assign(x=[*f["x"][:-1], 1e200]), "row 20.*x"),
        (lambda f: f.iloc[:0], "no rows"),
        (lambda f: "nothing.csv", "no file 'nothing.csv'"),
        (lambda f: [1, 2], "table"),
        (lambda f: None, "table"),
    ],
)
def test_a_bad_table_is_refused_and_nothing_is_stored(make: Make, spoil: Any, message: str) -> None:
    c = make(learner="table")
    same = unchanged(c)
    with pytest.raises(InputError, match=message):
        c.pool(spoil(pool_frame(20)))
    same()
    if isinstance(c, eh.Campaign):
        with c.store.moment() as (reader, _):
            assert not reader.find(list(pool_frame()["id"]))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"id": "nope"}, "no column 'nope'"),
        ({"group": "nope"}, "no column 'nope'"),
        ({"group": []}, "group"),
        ({"features": ["nope"]}, "no column 'nope'"),
        ({"features": []}, "no features"),
        ({"group": "x:3,2"}, "upwards"),
        ({"group": "group:1,2"}, "not a number"),
        ({"features": ["x", "label"]}, "label"),
        ({"features": ["x", "id"]}, "id"),
        ({"ignore": ["nope"]}, "nope"),
        ({"ignore": ["x"], "features": ["x"]}, "x"),
    ],
)
def test_bad_arguments_are_refused(make: Make, given: dict[str, Any], message: str) -> None:
    c = make(None, learner="table")
    same = unchanged(c)
    with pytest.raises(InputError, match=message):
        c.pool(pool_frame().assign(label=[None] * 40), **given)
    same()


def test_a_learner_that_needs_numbers_says_so(make: Make) -> None:
    c = make(learner="logistic")
    same = unchanged(c)
    with pytest.raises(InputError, match=r"'note' is text.*'table'"):
        c.pool(pool_frame().assign(note="a"))
    gaps = pool_frame()
    gaps.loc[3, "x"] = np.nan
    with pytest.raises(InputError, match=r"row 4.*x is missing"):
        c.pool(gaps)
    same()


def test_a_later_pool_is_like_the_first(make: Make) -> None:
    c = make(learner="table")
    c.pool(pool_frame())
    same = unchanged(c)
    more = pool_frame(10, 100)
    for bad, message in (
        (more.drop(columns="w"), "no column 'w'"),
        (more.assign(w="text"), "row 1: w: 'text' is not a number"),
        (more.assign(group="z"), "unknown group 'z'"),
    ):
        with pytest.raises(InputError, match=message):
            c.pool(bad)
    same()
    c.pool(more[["w", "x", "group", "id"]])
    c.pool(pool_frame(10, 200).assign(w=range(10)))
    run(c)
    sound(c)


def test_columns_in_another_order_are_the_same_columns(make: Make) -> None:
    c = make(budget=20)
    c.pool(pool_frame(10))
    c.pool(pool_frame(10, 10)[["w", "group", "x", "id"]])
    run(c)
    examples, rows = c.training_set(), pool_frame().set_index("id")
    assert examples.X[["x", "w"]].to_numpy().tolist() == rows.loc[examples.ids, ["x", "w"]].to_numpy().tolist()


def test_a_pool_may_come_after_the_first_requests(make: Make) -> None:
    """Requests from before wait for rows, later ones name their examples."""
    c = make(learner="table")
    early, kept = c.ask_many(2)
    assert early.examples == ()
    c.pool(pool_frame())
    rows = pool_frame(2, 100).drop(columns="id")
    c.tell(early, rows, ["yes", "no"], ids=["new1", "new2"])
    later = c.ask()
    assert len(later.examples) == 2
    tell(c, later)
    c.tell(kept, pool_frame(2, 200).drop(columns="id"), ["yes", "no"])
    run(c)
    assert c.labels_used == 40
    sound(c)


def test_a_closed_campaign_takes_no_pool(make: Make) -> None:
    c = make()
    c.pool(pool_frame())
    request = c.ask()
    c.close()
    same = unchanged(c)
    for verb in (lambda: c.pool(pool_frame(4, 100)), lambda: tell(c, request), lambda: c.skip("e1")):
        with pytest.raises(InputError, match="closed"):
            verb()
    same()


# -------------------------------------------------------------------- labels by id


def test_labels_fill_whichever_requests_they_belong_to(make: Make) -> None:
    c = make(batch=2)
    c.pool(pool_frame())
    one, two, three = c.ask_many(3)
    some = [*one.examples, two.examples[0]]
    receipt = c.tell_labels({name: label_of(name) for name in some}, collector="ann")
    assert (receipt.rows, receipt.outstanding) == (5, 3)
    assert [(r.id, r.outstanding, set(r.examples)) for r in c.open_requests] == [
        (two.id, 3, set(two.examples[1:])),
        (three.id, 4, set(three.examples)),
    ]
    assert c.status()["collectors"]["ann"]["labels"] == 5
    sound(c)


def test_a_repeat_knows_what_is_outstanding(make: Make) -> None:
    c = make(batch=2)
    c.pool(pool_frame())
    request = c.ask()
    for _ in range(2):
        receipt = c.tell_labels({request.examples[0]: "yes"})
        assert (receipt.request, receipt.outstanding) == (request.id, 3)
    with pytest.raises(InputError, match="by id"):
        c.tell_labels([("e1", "yes")])  # type: ignore[arg-type]


def test_rows_of_ones_own_need_the_features_alone(make: Make) -> None:
    c = make(learner="table")
    c.pool(pool_frame())
    c.add(pool_frame(4, 100)[["w", "x"]], ["yes", "no"] * 2, ["u", "v"] * 2, ids=["a1", "a2", "a3", "a4"])
    run(c)
    X = c.training_set().X
    c.add(X, ["yes"] * len(X), ["u"] * len(X), ids=[f"b{k}" for k in range(len(X))])
    sound(c)


def test_the_same_label_again_changes_nothing(make: Make) -> None:
    c = make()
    c.pool(pool_frame())
    request = c.ask()
    tell(c, request)
    same = unchanged(c)
    again = tell(c, request)
    assert (again.rows, again.known, again.repeated) == (0, 2, True)
    name = request.examples[0]
    other = {"yes": "no", "no": "yes"}[label_of(name)]
    with pytest.raises(InputError, match="use correct"):
        c.tell_labels({name: other})
    same()
    c.correct(name, other)
    assert everything(c)[name] == other
    sound(c)


def test_all_or_nothing_partial_and_dry_run(make: Make) -> None:
    c = make()
    c.pool(pool_frame())
    a, b = c.ask().examples
    nobody = next(name for name in pool_frame()["id"] if name not in (a, b))
    same = unchanged(c)
    given = {a: "yes", nobody: "yes", "stranger": "no", b: float("nan")}
    with pytest.raises(InputError, match="3 of 4 rows") as refused:
        c.tell_labels(given)
    assert [(row.row, row.id) for row in refused.value.refused] == [(1, nobody), (2, "stranger"), (3, b)]
    assert "nobody asked" in refused.value.refused[0].reason
    assert "no example" in refused.value.refused[1].reason
    dry = c.tell_labels({a: "yes"}, dry_run=True)
    assert (dry.dry_run, dry.rows) == (True, 1)
    with pytest.raises(InputError, match="at least one"):
        c.tell_labels({})
    same()
    receipt = c.tell_labels(given, partial=True)
    assert (receipt.rows, [row.id for row in receipt.refused]) == (1, [nobody, "stranger", b])
    extra = c.tell_labels({nobody: "no"}, extra=True)
    assert (extra.rows, extra.surplus) == (1, 1)
    assert c.labels_used == 2
    sound(c)
    run(c)
    sound(c)


def test_an_id_of_another_campaign_is_no_example_here(make: Make) -> None:
    one, other = make(), make()
    one.pool(pool_frame(10))
    other.pool(pool_frame(10, 100))
    foreign = other.ask().examples[0]
    same = unchanged(one)
    with pytest.raises(InputError, match=f"no example {foreign!r}"):
        one.tell_labels({foreign: "yes"})
    same()


def test_extra_does_not_go_beyond_the_budget(make: Make) -> None:
    c = make(budget=4)
    c.pool(pool_frame())
    request = c.ask()
    others = [name for name in pool_frame()["id"] if name not in request.examples][:3]
    with pytest.raises(InputError, match="budget is spent"):
        c.tell_labels(dict.fromkeys(others, "yes"), extra=True)
    receipt = c.tell_labels(dict.fromkeys(others, "yes"), extra=True, partial=True)
    assert (receipt.rows, len(receipt.refused)) == (2, 1)
    tell(c, request)
    assert c.labels_used == 4
    sound(c)


@pytest.mark.parametrize("learner", [None, "table"])
def test_a_request_of_a_pool_is_answered_by_id_only(make: Make, learner: Any) -> None:
    """Counts and rows of one's own would leave its examples held for ever."""
    c = make(learner=learner)
    c.pool(pool_frame())
    request = c.ask()
    same = unchanged(c)
    rows = pool_frame(2, 100).drop(columns="id")
    verbs: list[Any] = [
        lambda: c.tell(request, rows, ["yes", "no"]),
        lambda: c.tell(request, rows, ["yes", "no"], ids=["new1", "new2"]),
        lambda: c.tell(request, rows, ["yes", "no"], ids=list(request.examples)),
    ]
    if learner is None:
        verbs.append(lambda: c.tell(request, n=2))
    for verb in verbs:
        with pytest.raises(InputError, match="by id"):
            verb()
    same()
    tell(c, request)
    sound(c)


def test_data_that_was_there_before_can_be_added(make: Make) -> None:
    c = make(learner="table")
    c.pool(pool_frame())
    c.add(pool_frame(4, 100).drop(columns="id"), ["yes", "no"] * 2, ["u", "v"] * 2, ids=["a1", "a2", "a3", "a4"])
    with pytest.raises(InputError, match="belongs to the pool"):
        c.add(pool_frame(1).drop(columns="id"), ["yes"], ["u"], ids=["e0"])
    run(c)
    assert len(everything(c)) == 44
    sound(c)


def test_data_can_be_added_where_the_learner_takes_numbers_alone(make: Make) -> None:
    c = make(learner="logistic")
    rows = pd.DataFrame({"id": [f"e{k}" for k in range(8)], "group": ["u", "v"] * 4, "x": np.arange(8.0)})
    c.pool(rows)  # the column of groups is text, and no feature
    c.add(rows[["x"]][:2], ["yes", "no"], ["u", "v"], ids=["a1", "a2"])
    assert set(everything(c)) == {"a1", "a2"}
    sound(c)


def test_numpy_labels_and_whole_ids(make: Make) -> None:
    c = make()
    c.pool(pool_frame(20).assign(id=np.arange(20)))
    request = c.ask()
    c.tell_labels({int(name): np.int64(k) for k, name in enumerate(request.examples)})  # type: ignore[misc]
    assert set(everything(c)) == set(request.examples)
    assert sorted(everything(c).values()) == [0, 1]
    sound(c)


# -------------------------------------------------------------------- leases


def test_expired_ids_are_handed_out_again_with_their_role(make: Make, clock: Clock) -> None:
    c = make(budget=80)
    c.pool(pool_frame(8))
    first = c.ask_many(4)
    with pytest.raises(NothingToAsk):
        c.ask()
    roles = {
        name: role
        for event in c.events()
        if event["kind"] == "asked"
        for name, role in zip(event["facts"]["ids"], event["facts"]["roles"], strict=True)
    }
    clock.now += 3600
    again = c.ask_many(4)
    assert sorted(name for r in again for name in r.examples) == sorted(name for r in first for name in r.examples)
    asked = [event for event in c.events() if event["kind"] == "asked"][4:]
    assert {
        n: r for event in asked for n, r in zip(event["facts"]["ids"], event["facts"]["roles"], strict=True)
    } == roles
    assert [event["facts"]["new"] for event in asked] == [0] * 4
    for request in again:
        tell(c, request)
    assert set(c.training_set().ids) == {name for name, role in roles.items() if role == "t"}
    assert all(tell(c, request).repeated for request in first)
    assert (c.labels_used, c.status()["pool"]["left"]) == (8, 0)
    sound(c)


def test_roles_do_not_depend_on_who_was_late(make: Make, clock: Clock) -> None:
    """An id's role is that of its first ask, whatever came between."""
    one, late = make(budget=200), make(budget=200)
    for c in (one, late):
        c.pool(pool_frame(200), _salt="a secret")
    late.ask_many(20)
    clock.now += 3600
    run(one)
    run(late)
    assert set(one.training_set().ids) == set(late.training_set().ids)
    sound(late)


def test_a_late_label_is_taken_while_the_budget_lasts(make: Make, clock: Clock) -> None:
    c = make(("u",), budget=6)
    c.pool(pool_frame(24).assign(group="u"))
    late = c.ask()
    clock.now += 3600
    again = c.ask()
    assert again.examples == late.examples, "what comes back is first again"
    c.abandon(again)
    receipt = tell(c, late)
    assert (receipt.rows, c.labels_used) == (2, 2)
    assert c.status()["pool"]["left"] == 22
    sound(c)


def test_a_late_label_beyond_the_budget_is_refused(make: Make, clock: Clock) -> None:
    c = make(("u",), budget=4)
    c.pool(pool_frame(24).assign(group="u"))
    first = c.ask()
    clock.now += 3600
    assert c.ask().examples == first.examples
    other = c.ask()
    for request in c.open_requests:
        c.abandon(request)
    extra = [name for name in pool_frame(24)["id"] if name not in {*first.examples, *other.examples}][:3]
    c.tell_labels(dict.fromkeys(extra, "yes"), extra=True)
    same = unchanged(c)
    with pytest.raises(InputError, match="comes late, and the budget is spent"):
        tell(c, first)
    same()
    receipt = c.tell_labels(dict.fromkeys((*first.examples, *other.examples), "yes"), partial=True)
    assert (receipt.rows, len(receipt.refused), c.labels_used) == (1, 3, 4)
    sound(c)


@pytest.mark.parametrize("verb", ["tell", "skip", "abandon", "extra", "ask", "erase"])
def test_a_late_label_is_the_first_to_find_the_lease_over(make: Make, clock: Clock, verb: str) -> None:
    """The step that writes down that a lease has ended sees the examples as given back, not as held."""
    c = make(("u",), budget=4)
    c.pool(pool_frame(4).assign(group="u"))
    late, other = c.ask_many(2)
    clock.now += 3600
    if verb == "tell":
        assert tell(c, late).late
    elif verb == "skip":
        c.skip(late.examples[0])
    elif verb == "abandon":
        with pytest.raises(InputError, match="expired"):
            c.abandon(late)
    elif verb == "extra":
        c.tell_labels(dict.fromkeys((*late.examples, *other.examples), "yes"), extra=True)
    elif verb == "erase":
        c.erase(late.examples[0])
    else:
        c.ask_many(2)
    sound(c)
    for request in c.open_requests:
        tell(c, request)
    run(c)
    sound(c)


def test_a_late_label_leaves_the_pool(make: Make, clock: Clock) -> None:
    c = make(budget=80)
    c.pool(pool_frame(8))
    late = c.ask()
    clock.now += 3600
    c.retire("u")
    c.retire("v")
    with pytest.raises(NothingToAsk):
        c.ask()
    c.retire("u", back=True)
    c.retire("v", back=True)
    receipt = tell(c, late)
    assert receipt.late
    names = [name for r in c.ask_many(3) for name in r.examples]
    assert not set(names) & set(late.examples)
    assert len(names) == 6
    sound(c)


def test_a_lease_that_ends_in_the_middle_of_an_ask(make: Make, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a step finds overdue goes back to the pool, at whichever moment it is found."""
    c = make(budget=80)
    c.pool(pool_frame(8))
    c.ask_many(2)

    def slowly(*given: Any) -> None:
        clock.now += 3600
        fetch_ahead(*given)

    monkeypatch.setattr("evenhand.campaign.asking.fetch_ahead", slowly)
    c.ask()
    monkeypatch.undo()
    in_pools(c)
    assert sorted(name for r in [*c.open_requests, *c.ask_many(3)] for name in r.examples) == sorted(
        pool_frame(8)["id"]
    )
    sound(c)


def test_status_knows_what_an_ask_would_find(make: Make, clock: Clock) -> None:
    """Every example is held by requests whose lease has ended: an ask hands them out again."""
    c = make(budget=80)
    c.pool(pool_frame(4))
    c.ask_many(2)
    assert c.status()["nothing_to_ask"] in ("groups used up", "waiting for open requests")
    clock.now += 3600
    assert c.status()["nothing_to_ask"] is None
    proposed = c.propose()
    assert c.ask().group == proposed.decision.group
    sound(c)


def test_abandoned_examples_go_back(make: Make) -> None:
    c = make(budget=80)
    c.pool(pool_frame(8))
    before = in_pools(c)
    request = c.ask()
    c.tell_labels({request.examples[0]: "yes"})
    c.abandon(request)
    assert sum(in_pools(c).values()) == sum(before.values()) - 1
    again = [name for r in c.ask_many(4) for name in r.examples]
    assert request.examples[1] in again
    assert request.examples[0] not in again
    sound(c)


def test_chosen_again_from_a_pool_with_examples_that_came_back(make: Make, clock: Clock) -> None:
    """Several requests at once are chosen as if one came after the other, also where roles are kept."""
    c = make(("u", "v", "w"), strategy="optimistic", learner="table", budget=400, batch=3, validation=0.3)
    rows = pool_frame(300).assign(group=np.array(["u", "v", "w"])[np.arange(300) % 3])
    c.pool(rows)
    for k in range(6):
        requests = c.ask_many(5)
        for request in requests[: k % 3 + 1]:
            tell(c, request)
        clock.now += 3600
    sound(c)


# -------------------------------------------------------------------- skipping


def test_a_skipped_example_leaves_its_request_and_the_pool(make: Make) -> None:
    c = make(budget=80, batch=2)
    c.pool(pool_frame(20))
    request = c.ask()
    c.skip(request.examples[0], reason="illegible", by="ann")
    (now,) = c.open_requests
    assert (now.size, now.outstanding, now.examples) == (3, 3, request.examples[1:])
    assert c.unspent == 77
    event = c.events()[-1]
    assert (event["kind"], event["actor"], event["facts"]["reason"]) == ("skipped", "ann", "illegible")
    same = unchanged(c)
    c.skip(request.examples[0])
    with pytest.raises(InputError, match="was skipped"):
        c.tell_labels({request.examples[0]: "yes"})
    same()
    c.tell_labels({name: label_of(name) for name in request.examples[1:]})
    assert not c.open_requests
    free = next(name for name in pool_frame(20)["id"] if name not in request.examples)
    c.skip(free)
    assert c.status()["skipped"] == 2
    asked = [name for _, _, names in run(c) for name in names]
    assert not {free, request.examples[0]} & set(asked)
    sound(c)


def test_a_request_whose_last_example_is_skipped_ends(make: Make) -> None:
    c = make()
    c.pool(pool_frame(20))
    one, two = c.ask_many(2)
    c.tell_labels({one.examples[0]: "yes"})
    c.skip(one.examples[1])
    assert [r.id for r in c.open_requests] == [two.id]
    for name in two.examples:
        c.skip(name)
    assert not c.open_requests
    assert (c.labels_used, c.unspent) == (1, 39)
    sound(c)
    run(c)
    sound(c)


def test_what_cannot_be_skipped(make: Make) -> None:
    c = make()
    c.pool(pool_frame(20))
    request = c.ask()
    tell(c, request)
    c.add(pool_frame(1, 100).drop(columns="id"), ["yes"], ["u"], ids=["added"])
    same = unchanged(c)
    with pytest.raises(InputError, match="has a label already"):
        c.skip(request.examples[0])
    for name in ("stranger", "added"):
        with pytest.raises(InputError, match=r"no example|has a label"):
            c.skip(name)
    same()


def test_an_expired_example_can_be_skipped(make: Make, clock: Clock) -> None:
    c = make(budget=80)
    c.pool(pool_frame(8))
    late = c.ask()
    clock.now += 3600
    c.ask_many(3)
    c.skip(late.examples[0])
    sound(c)


# -------------------------------------------------------------------- certificates


def certified(make: Make, **given: Any) -> eh.Campaign:
    c = make(learner="table", budget=200, batch=2, seed=None, **given)
    c.pool(pool_frame(80), _salt="a secret")
    for _ in range(6):
        tell(c, c.ask())
    c.certify()
    c.retire("v")  # so that what comes back is first again
    return c


def missing(c: eh.Campaign) -> int:
    certificate = c.certificate()
    assert certificate is not None
    return int(sum(certificate.missing))


def test_a_skipped_example_is_missing_in_a_certificate(make: Make) -> None:
    c = certified(make)
    request = c.ask()
    c.skip(request.examples[0])
    assert missing(c) == 1
    c.tell_labels({name: label_of(name) for name in request.examples[1:]})
    assert missing(c) == 1
    free = c.ask_many(2)[0].examples[0]
    c.skip(free)
    assert missing(c) == 2
    sound(c)


@pytest.mark.parametrize("verb", ["skip", "erase", "extra"])
def test_an_example_taken_out_before_its_turn_is_missing(make: Make, verb: str) -> None:
    """Otherwise whoever knows the labels takes out what the model gets wrong."""
    c = certified(make)
    with c.store.moment() as (reader, _):
        name = reader.next_in_pool("u", 50)[-1].id
    if verb == "extra":
        c.tell_labels({name: label_of(name)}, extra=True)
    else:
        getattr(c, verb)(name)
    assert missing(c) == 1
    assert sum(c.certificate().n) == 0  # type: ignore[union-attr]
    sound(c)


def test_examples_handed_out_before_the_freeze_are_no_evidence(make: Make) -> None:
    c = make(learner="table", budget=200, batch=2, seed=None)
    c.pool(pool_frame(80))
    for _ in range(6):
        tell(c, c.ask())
    given_back, open_then = c.ask_many(2)
    c.abandon(given_back)
    c.certify()
    model = c.certified_model()
    tell(c, open_then)
    tell(c, given_back)
    found = c.certificate()
    rows = pool_frame(80).set_index("id").loc[[*open_then.examples, *given_back.examples]]
    wrong = model.predict(rows) != np.array([label_of(name) for name in rows.index])  # type: ignore[union-attr]
    assert found is not None
    assert (sum(found.n), sum(found.missing), sum(found.open)) == (wrong.sum(), 0, 0), "errors count, right ones do not"
    sound(c)


def test_a_pool_replaced_after_the_freeze_is_missing(make: Make) -> None:
    """Whoever changes what can be asked for may choose it."""
    c = certified(make)
    c.pool(pool_frame(80))
    assert missing(c) == 0, "the same rows again"
    c.pool(pool_frame(10, 200))
    assert missing(c) == 0, "more rows"
    with c.store.moment() as (reader, _):
        one, two, three = [e.id for e in reader.next_in_pool("u", 30) if e.id in set(pool_frame(80)["id"])][:3]
    rows = pool_frame(80)
    rows.loc[rows["id"] == one, "x"] = 7.0
    rows.loc[rows["id"] == two, "group"] = "v"
    rows["label"] = [label_of(name) if name == three else None for name in rows["id"]]
    c.pool(rows)
    assert missing(c) == 3
    c.certify()
    assert missing(c) == 0
    sound(c)


def test_what_is_told_is_no_longer_missing(make: Make, clock: Clock) -> None:
    """An example that was handed out again and told is evidence, and nothing of it is missing."""
    c = certified(make)
    request = c.ask()
    clock.now += 3600
    again = c.ask()
    assert set(again.examples) == set(request.examples)
    tell(c, again)
    assert missing(c) == 0
    other = c.ask()
    c.abandon(other)
    assert missing(c) == 4
    back = c.ask()
    assert back.examples == other.examples
    tell(c, back)
    assert missing(c) == 0
    sound(c)


def test_an_example_is_missing_once(make: Make, clock: Clock) -> None:
    c = certified(make)
    request = c.ask()
    clock.now += 3600
    again = c.ask()
    assert set(again.examples) == set(request.examples)
    clock.now += 3600
    third = c.ask()
    assert set(third.examples) == set(request.examples)
    assert missing(c) <= 4
    c.skip(request.examples[0])
    assert missing(c) <= 4
    c.abandon(third)
    assert missing(c) == 4
    sound(c)


def test_late_labels_are_no_longer_missing(make: Make, clock: Clock) -> None:
    c = certified(make)
    late = c.ask()
    clock.now += 3600
    c.abandon(c.ask())
    tell(c, late)
    assert missing(c) == 0
    certificate = c.certificate()
    assert certificate is not None
    assert sum(certificate.n) == 4
    sound(c)


def test_extra_labels_are_no_evidence(make: Make) -> None:
    c = certified(make)
    with c.store.moment() as (reader, _):
        name = reader.next_in_pool("u", 50)[-1].id
    c.tell_labels({name: "yes"}, extra=True)
    certificate = c.certificate()
    assert certificate is not None
    assert sum(certificate.n) == 0
    tell(c, c.ask())
    assert sum(c.certificate().n) == 4  # type: ignore[union-attr]
    sound(c)


# -------------------------------------------------------------------- taking back


def test_a_row_nobody_labelled_can_be_erased(make: Make) -> None:
    c = make(budget=80)
    c.pool(pool_frame(8))
    request = c.ask()
    c.erase(request.examples[0], reason="asked for it")
    with c.store.moment() as (reader, _):
        row = reader.find([request.examples[0]])[request.examples[0]]
        assert (row.features, row.held, row.fate) == (None, False, "erased")
    assert [(r.size, r.examples) for r in c.open_requests] == [(1, request.examples[1:])]
    free = next(name for name in pool_frame(8)["id"] if name not in request.examples)
    c.erase(free)
    assert sum(in_pools(c).values()) == 5
    with pytest.raises(InputError, match="was erased"):
        c.tell_labels({free: "yes"}, extra=True)
    c.pool(pool_frame(8))
    with c.store.moment() as (reader, _):
        assert reader.find([free])[free].features is None, "an erased row came back"
    run(c)
    sound(c)


def test_a_closed_campaign_still_forgets(make: Make) -> None:
    c = make()
    c.pool(pool_frame())
    a, b = c.ask().examples
    c.tell_labels({a: "yes", b: "no"})
    c.close()
    c.erase(a)
    c.correct(b, "yes")
    assert everything(c) == {b: "yes"}
    sound(c)


def test_labelled_pool_rows_are_corrected_withdrawn_and_erased(make: Make) -> None:
    c = make(learner="table")
    c.pool(pool_frame())
    for _ in range(6):
        tell(c, c.ask())
    a, b, *_ = everything(c)
    c.withdraw(a, refund=True)
    c.erase(b)
    assert not {a, b} & set(everything(c))
    with pytest.raises(InputError, match="no label"):
        c.withdraw(c.ask().examples[0])
    for request in c.open_requests:
        tell(c, request)
    run(c)
    assert c.labels_used in (39, 40)
    sound(c)


# -------------------------------------------------------------------- used up


def test_a_group_that_is_used_up_is_announced_and_the_campaign_goes_on(make: Make) -> None:
    c = make(budget=36, learner="table", strategy="optimistic")
    c.pool(pd.concat([pool_frame(8), pool_frame(60, 100).query("group == 'v'")]))
    asked = run(c)
    groups = [group for _, group, _ in asked]
    assert Counter(groups)["u"] == 2
    status = c.status()
    assert status["pool"]["used_up"] == ["u"]
    assert status["groups"]["u"]["available"] is False
    assert (status["groups"]["u"]["left"], status["groups"]["v"]["left"]) == (0, 2)
    assert status["used"] == 36
    sound(c)
    c.pool(pool_frame(4, 200))
    c.change(budget=40)
    assert c.status()["pool"]["used_up"] == []
    assert {group for _, group, _ in run(c)} == {"u", "v"}
    sound(c)


def test_a_pool_that_is_used_up_ends_the_campaign(make: Make) -> None:
    c = make(budget=40)
    c.pool(pool_frame(9))
    run(c)
    with pytest.raises(NothingToAsk, match="groups used up"):
        c.ask()
    assert c.done
    assert c.status()["nothing_to_ask"] == "groups used up"
    assert c.status()["pool"]["left"] == 1
    sound(c)


def test_status_says_how_long_a_group_lasts(make: Make) -> None:
    c = make(budget=40)
    c.pool(pool_frame(60))
    for _ in range(10):
        tell(c, c.ask())
    status = c.status()
    for group in GROUPS:
        found = status["groups"][group]
        assert found["left"] == in_pools(c)[group] == 20
        assert found["lasts_labels"] == round(20 / c.mixture[group])
    assert status["pool"] == {"left": 40, "used_up": [], "files": []}


def test_a_campaign_without_a_pool_says_nothing_of_one(make: Make) -> None:
    c = make()
    status = c.status()
    assert status["pool"] is None
    assert "left" not in status["groups"]["u"]
    assert c.ask().examples == ()
    with pytest.raises(InputError, match="no example"):
        c.tell_labels({"a": "yes"})
    with pytest.raises(InputError, match="no example"):
        c.skip("a")


def test_retiring_and_pools(make: Make) -> None:
    c = make()
    c.pool(pool_frame())
    c.retire("u")
    assert {r.group for r in c.ask_many(5)} == {"v"}
    sound(c)


# -------------------------------------------------------------------- copies


def test_it_goes_on_from_a_saved_file(make: Make, tmp_path: Path, clock: Clock) -> None:
    c = make(learner="table", batch=2)
    c.pool(pool_frame())
    for _ in range(3):
        tell(c, c.ask())
    request = c.ask()
    c.tell_labels({request.examples[0]: "yes"})
    c.skip(request.examples[1])
    c.save(tmp_path / "c.db")
    with DatabaseLedger(f"sqlite:///{tmp_path / 'c.db'}", clock=clock) as ledger:
        copy = eh.Campaign.open(ledger, c.name)
        assert standing(copy) == standing(c)
        assert [r.examples for r in copy.ask_many(3)] == [r.examples for r in c.ask_many(3)]
        sound(copy)


def test_an_export_has_the_rows(make: Make, tmp_path: Path) -> None:
    c = make()
    c.pool(pool_frame())
    run(c)
    c.export(tmp_path / "data.csv")
    found = pd.read_csv(tmp_path / "data.csv", dtype={"id": str}).set_index("id")
    rows = pool_frame().set_index("id")
    assert len(found) == 40
    assert found["x"].to_numpy().tolist() == rows.loc[found.index, "x"].to_numpy().tolist()
    assert found["group"].tolist() == rows.loc[found.index, "group"].tolist()
    assert found["label"].to_dict() == {name: label_of(name) for name in found.index}


def test_a_snapshot_holds_no_pool(ledger: Ledger) -> None:
    """Opening must cost no more than without a pool."""
    sizes = []
    for rows in (40, 4000):
        c = made(ledger, budget=400)
        c.pool(pool_frame(rows))
        for _ in range(5):
            tell(c, c.ask())
        sizes.append(len(c.store.state.as_text()))
        assert max(len(str(event["facts"])) for event in c.events()) < 2000
    assert abs(sizes[1] - sizes[0]) < 100


def test_opening_from_a_snapshot(make: Make) -> None:
    c = make(budget=400)
    c.pool(pool_frame(300))
    for k in range(60):
        request = c.ask()
        if k % 7 == 0:
            c.skip(request.examples[0])
            c.tell_labels({request.examples[1]: "yes"})
        else:
            tell(c, request)
    with c.store.moment() as (reader, _):
        assert reader.snapshot() is not None
    sound(c)


# -------------------------------------------------------------------- many at once


def test_threads_never_get_the_same_example(ledger: Ledger) -> None:
    c = made(ledger, budget=160, lease="1d")
    c.pool(pool_frame(160))
    got: list[str] = []
    failures: list[BaseException] = []

    def work() -> None:
        try:
            while True:
                requests = c.ask_many(2)
                got.extend(name for r in requests for name in r.examples)
                for request in requests:
                    tell(c, request)
        except NothingToAsk:
            pass
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(got) == len(set(got)) == 160
    sound(c)


def collect(url: str, name: str, place: int, notes: Path) -> None:
    """One of eight processes: ask, keep some until their short lease is over, tell them late, skip a few."""
    rng = np.random.default_rng(place)
    with eh.Campaign.open(url, name) as c, notes.open("w") as file:
        kept: list[str] = []
        for _ in range(400):
            try:
                requests = c.ask_many(int(rng.integers(1, 3)))
            except NothingToAsk as nothing:
                if nothing.reason == "budget spent":
                    break
                requests = []
            for request in requests:
                file.write(f"asked {request.id} {' '.join(request.examples)}\n")
                names = list(request.examples)
                if rng.random() < 0.3:
                    kept += names
                    time.sleep(0.06)
                    continue
                if rng.random() < 0.1:
                    try:
                        c.skip(names[0])
                        names = names[1:]
                    except InputError:  # its lease ended, and another labelled it meanwhile
                        pass
                c.tell_labels({n: label_of(n) for n in names}, partial=True)
            if kept and rng.random() < 0.5:
                receipt = c.tell_labels({n: label_of(n) for n in kept}, partial=True)
                file.write(f"late {receipt.rows}\n")
                kept = []


def test_eight_processes_with_short_leases(database: str, tmp_path: Path) -> None:
    """Leases end all the time; still no id is in two open requests and none has two labels."""
    with eh.Campaign.create(database, "crowd", ["u", "v"], "uniform", None, budget=300, batch=2, lease="0.05s") as c:
        c.pool(pool_frame(500))
    children = []
    for place in range(8):
        pid = os.fork()
        if not pid:
            code = 1
            try:
                collect(database, "crowd", place, tmp_path / f"{place}.notes")
                code = 0
            except BaseException as error:
                (tmp_path / f"{place}.failed").write_text(f"{type(error).__name__}: {error}")
            finally:
                os._exit(code)
        children.append(pid)
    for pid in children:
        os.waitpid(pid, 0)
    assert [path.read_text() for path in sorted(tmp_path.glob("*.failed"))] == []
    with eh.Campaign.open(database, "crowd") as c:
        events = c.events()
        assert sum(event["kind"] == "expired" for event in events) > 0
        told = [name for event in events if event["kind"] == "told" for name in event["facts"]["ids"]]
        assert len(told) == len(set(told)) == c.labels_used
        assert c.labels_used <= 300
        roles: dict[str, str] = {}
        for event in events:
            if event["kind"] == "asked":
                for name, role in zip(event["facts"]["ids"], event["facts"]["roles"], strict=True):
                    assert roles.setdefault(name, role) == role
        handed_out = {
            name
            for path in tmp_path.glob("*.notes")
            for line in path.read_text().splitlines()
            if line.startswith("asked")
            for name in line.split()[2:]
        }
        assert handed_out == set(roles)
        with c.store.moment() as (reader, _):
            replayed = State()
            for event in reader.events():
                replayed.fold([event])
                open_ids = [name for request in replayed.open.values() for name in request["left"]]
                assert len(open_ids) == len(set(open_ids))
            held = {name for request in replayed.open.values() for name in request["left"]}
            assert all(row.held == (row.id in held) for row in reader.find(list(pool_frame(500)["id"])).values())
        in_pools(c)
        assert c.verify().problems == []


# -------------------------------------------------------------------- anything in any order


class AnyOrder(RuleBasedStateMachine):
    """Verbs of a pool in any order, the same on three ledgers, compared with a small model."""

    ledgers: tuple[Ledger, ...]
    clock: Clock

    def __init__(self) -> None:
        super().__init__()
        given = {"budget": 24, "batch": 2, "lease": "1h", "seed": 5, "strategy": "uniform"}
        self.campaigns = [made(ledger, **given) for ledger in self.ledgers]
        self.rows, self.labels, self.skipped = 0, dict[str, str](), set[str]()
        self.roles: dict[str, str] = {}
        self.asked: list[str] = []
        self.pool(5, Random(0))

    def all(self, verb: Callable[[eh.Campaign], Any]) -> Any:
        """Do it on every ledger: the same label_of or the same refusal."""
        found = []
        for c in self.campaigns:
            try:
                found.append(("done", verb(c)))
            except (InputError, NothingToAsk) as error:
                found.append((type(error).__name__, str(error)))
        assert all(f == found[0] for f in found), found
        return found[0]

    @rule(more=st.integers(1, 9), shuffled=st.randoms(use_true_random=False))
    def pool(self, more: int, shuffled: Any) -> None:
        rows = pool_frame(self.rows + more)
        order = list(range(len(rows)))
        shuffled.shuffle(order)
        how, found = self.all(lambda c: c.pool(rows.iloc[order], _salt=f"salt {more}"))
        assert how == "done"
        assert (sum(found.groups.values()), found.known) == (more, self.rows)
        self.rows += more

    @rule(count=st.integers(1, 3))
    def ask(self, count: int) -> None:
        how, found = self.all(lambda c: [(r.id, r.group, r.examples, r.size) for r in c.ask_many(count)])
        if how != "done":
            return
        for _, _, names, size in found:
            assert len(names) == size
            assert not set(names) & (self.labels.keys() | self.skipped)
            self.asked += names
        for event in self.campaigns[0].events():
            if event["kind"] == "asked" and "ids" in event["facts"]:
                for name, role in zip(event["facts"]["ids"], event["facts"]["roles"], strict=True):
                    assert self.roles.setdefault(name, role) == role

    @precondition(lambda self: self.asked)
    @rule(data=st.data(), partial=st.booleans())
    def tell(self, data: st.DataObject, partial: bool) -> None:
        names = data.draw(st.lists(st.sampled_from(sorted(set(self.asked))), min_size=1, max_size=5, unique=True))
        given = {name: label_of(name) for name in names}
        how, found = self.all(lambda c: _facts(c.tell_labels(given, partial=partial)))
        if how == "done":
            rows, known, refused = found
            new = [name for name in names if name not in self.labels and name not in refused]
            assert (len(new), known) == (rows, len(self.labels.keys() & set(names)))
            self.labels |= {name: label_of(name) for name in new}

    @precondition(lambda self: self.rows)
    @rule(data=st.data())
    def extra(self, data: st.DataObject) -> None:
        name = f"e{data.draw(st.integers(0, self.rows - 1))}"
        how, found = self.all(lambda c: _facts(c.tell_labels({name: label_of(name)}, extra=True)))
        if how == "done" and found[0]:
            self.labels[name] = label_of(name)

    @precondition(lambda self: self.rows)
    @rule(data=st.data())
    def skip(self, data: st.DataObject) -> None:
        name = f"e{data.draw(st.integers(0, self.rows - 1))}"
        how, _ = self.all(lambda c: c.skip(name))
        assert (how == "done") == (name not in self.labels)
        if how == "done":
            self.skipped.add(name)

    @rule(data=st.data())
    def abandon(self, data: st.DataObject) -> None:
        numbers = [r.id for r in self.campaigns[0].open_requests]
        if numbers:
            number = data.draw(st.sampled_from(numbers))
            assert self.all(lambda c: c.abandon(number))[0] == "done"

    @rule(seconds=st.sampled_from([600, 3600]))
    def wait(self, seconds: int) -> None:
        self.clock.now += seconds

    @rule()
    def reopen(self) -> None:
        self.campaigns = [eh.Campaign.open(c.store.ledger, c.name) for c in self.campaigns]

    @invariant()
    def agree(self) -> None:
        for c in self.campaigns:
            state = c.store.refresh()
            assert state.labels_used == len(self.labels)
            assert state.labels_used + state.outstanding <= 24
            held = [name for request in state.open.values() for name in request["left"]]
            assert len(held) == len(set(held))
            assert not set(held) & (self.labels.keys() | self.skipped)
            assert all(r["size"] - r["told"] == len(r["left"]) for r in state.open.values())
            if state.pool is not None:
                assert sum(state.pool) == self.rows - len(self.labels) - len(self.skipped) - len(held)
                in_pools(c)

    def teardown(self) -> None:
        assert everything(self.campaigns[0]) == self.labels
        for c in self.campaigns:
            sound(c)
        found = [[event["facts"] for event in c.events()] for c in self.campaigns]
        assert [events[0].pop("order") for events in found] == ["seed", "secret", "secret"]
        assert found[0] == found[1] == found[2]


def _facts(receipt: Any) -> tuple[int, int, set[str]]:
    return receipt.rows, receipt.known, {row.id for row in receipt.refused}


def test_any_order(postgres_server: str, tmp_path: Path) -> None:
    clock = Clock()
    urls = (
        f"sqlite:///{tmp_path / 'any.db'}?synchronous=normal",
        f"{new_schema(postgres_server)}&synchronous=normal",
    )
    databases = [DatabaseLedger(url, create=True, clock=clock) for url in urls]
    machine = type("Machine", (AnyOrder,), {"ledgers": (MemoryLedger(clock=clock), *databases), "clock": clock})
    try:
        run_state_machine_as_test(machine, settings=settings(max_examples=25, stateful_step_count=25, deadline=None))
    finally:
        for ledger in databases:
            ledger.close()

"""The verbs of a campaign with a pool: register it, tell labels by id, skip what nobody can label."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from evenhand.campaign.altering import Altering
from evenhand.campaign.deliveries import Delivery
from evenhand.campaign.features import Rows
from evenhand.campaign.labels import check_text
from evenhand.campaign.pools import AHEAD, PoolTable, fetch, pool_examples, read_pool
from evenhand.campaign.requests import Receipt
from evenhand.campaign.state import MADE, State
from evenhand.campaign.telling import Options, Step
from evenhand.engine.settings import as_population, check_settings, forced_warning
from evenhand.errors import InputError
from evenhand.ledger import Reader, Writer

__all__ = ["Pooled", "Pooling"]


class Pooled(NamedTuple):
    """What registering a pool brought: new examples by group, ids known already, and labelled rows taken in."""

    groups: dict[str, int]
    known: int
    labelled: int
    event: int


class Pooling(Altering):
    """Pools."""

    def pool(
        self,
        data: Any,
        id: str = "id",
        group: str | Sequence[str] = "group",
        features: Sequence[str] | None = None,
        *,
        ignore: Sequence[str] = (),
        by: str | None = None,
    ) -> Pooled:
        """Register examples that are not labelled yet; may be called again with more.

        Args:
            data: a pandas, polars or Arrow table, or the path of a CSV file, a Parquet file or a folder of Parquet files.
            id: the column of the ids.
            group: the columns that tell the group; a number may have bins, like `"age:30,60"`.
            features: the columns to learn from; by default all but id, group and label.
            ignore: columns to leave out altogether.
            by: who registers it.

        Rows whose label column has a value are taken in as `add` does. A Parquet file stays where it is and must not
        change; after a change call `pool` again, which registers anew what was not handed out.
        """
        label = self.settings["label"]
        table = read_pool(
            data, id=id, group=group, features=features, label=label, ignore=ignore,
            needs_numbers=self._parts.needs_numbers,
        )  # fmt: skip
        state = self._refresh()
        _check_like(table, state)
        for value in table.labels:
            if value is not None:
                self._check_label(value)
        found: list[Pooled] = []
        self._write(lambda s, w: found.append(self._register(s, w, table, id, by)), still_open=True)
        labelled = self._add_labelled(table, by)
        self._fetch_ahead()
        examples = self.budget * (1 - self._state.settings["validation"])
        if not state.groups and (message := forced_warning(self._parts.strategy, len(self.groups), examples)):
            warnings.warn(message, stacklevel=2)
        return found[0]._replace(labelled=labelled)

    def tell_labels(
        self,
        labels: Mapping[str, Any],
        collector: str | None = None,
        partial: bool = False,
        extra: bool = False,
        dry_run: bool = False,
        *,
        written: bool = False,
    ) -> Receipt:
        """Labels by id, whichever requests they fill. The same label again changes nothing.

        A label that comes after its request's lease is taken while the budget lasts; one for an example that was never
        handed out is refused, unless `extra`. `written` says that the labels were read from a file.
        """
        if collector is not None:
            check_text(collector, "the collector")
        options = Options(collector, partial, extra)
        if dry_run:
            with self._moment() as (reader, state):
                steps = self._intake.label(state, reader, labels, options, written=written)
                return replace(_together([step.receipt for step in steps]), dry_run=True)
        found: list[Receipt] = []

        def write(state: State, writer: Writer) -> None:
            steps = self._intake.label(state, writer, labels, options, written=written)
            found.append(_together([step.write(writer) for step in steps]))

        self._write(write)
        return found[0]

    def skip(self, id: str, reason: str | None = None, by: str | None = None) -> None:
        """Nobody can label this example: it leaves its request, which shrinks, and the pool."""

        def write(state: State, writer: Writer) -> None:
            example = writer.find([id]).get(id)
            if example is None or example.place is None:
                raise InputError(f"there is no example {id!r} in the pool")
            if example.label is not None:
                raise InputError(f"the example {id!r} has a label already: withdraw it instead")
            if example.fate is not None:
                return
            facts = {
                "id": id, "group": state.groups.index(example.group), "reason": reason,
                "handed_out": example.role is not None,
            }  # fmt: skip
            number = example.request if example.held else None
            event = writer.append("skipped", facts, request=number, actor=by)
            writer.put([example._replace(fate="skipped", held=False, changed=event.seq)])

        self._write(write, still_open=True)

    # ---------------------------------------------------------------- within

    def _register(self, state: State, writer: Writer, table: PoolTable, id: str, by: str | None) -> Pooled:
        """Store the examples of a pool and the event that brings them."""
        settings, groups = state.settings, state.groups or list(table.groups)
        population = settings["population"]
        if not state.groups:
            check_settings(
                groups, self._parts.strategy, simulated=True,
                **{name: settings[name] for name in ("budget", "batch", "warmup", "validation")},
            )  # fmt: skip
            population = self._shares(table, population)
        taken: set[str] = set(writer.find(table.ids)) if state.pool is not None or state.examples else set()
        counts, file = dict.fromkeys(groups, 0), table.file
        first = 1 + max((f["first"] + f["rows"] for f in state.files), default=0)
        if file is not None:
            for old in state.files:
                if old["path"] == file["path"]:
                    gone = writer.forget_pool(old["first"], old["first"] + old["rows"] - 1)
                    counts = {group: n - gone.get(group, 0) for group, n in counts.items()}
                    taken -= {name for name, e in writer.find(table.ids).items() if e.role is None and e.told is None}
            file = {**file, "first": first, "rows": len(table.ids), "columns": table.columns}
        new = dict.fromkeys(groups, 0)
        for batch in pool_examples(table, state, taken, first):
            writer.put(batch)
            for example in batch:
                new[example.group] += 1
        facts = {
            "groups": groups, "population": population, "counts": [counts[g] + new[g] for g in groups],
            "columns": table.columns, "file": file, "id": id, "lookalikes": any(map(MADE.fullmatch, table.ids)),
        }  # fmt: skip
        event = writer.append("pooled", facts, actor=by)
        return Pooled(new, len(taken), 0, event.seq)

    def _shares(self, table: PoolTable, given: Any) -> list[float] | None:
        """The population's shares where the rule needs them: those of the pool, if none were given."""
        if given is not None or not getattr(self._parts.strategy, "needs_population", False):
            return None if given is None else list(given)
        counts = [int((table.codes == z).sum()) for z in range(len(table.groups))]
        share = as_population(counts, table.groups, self._parts.strategy)
        return None if share is None else share.tolist()

    def _check_label(self, value: Any) -> None:
        with self._moment() as (reader, state):
            self._intake.classes(state, reader).take(value, written=True)

    def _add_labelled(self, table: PoolTable, by: str | None) -> int:
        """Take in the rows that have a label already."""
        with self._moment() as (reader, _):
            known = reader.find(
                [name for name, label in zip(table.ids, table.labels, strict=True) if label is not None]
            )
        rows = [k for k, v in enumerate(table.labels) if v is not None and table.ids[k] not in known]
        if not rows:
            return 0
        stored = table.stored_at(rows)
        groups = [table.groups[int(table.codes[k])] for k in rows]
        delivery = Delivery(
            Rows(table.columns, list(stored)),
            [table.labels[k] for k in rows],
            [table.ids[k] for k in rows],
            groups,
            True,
        )
        return self.add_delivery(delivery, by=by).rows

    def add_delivery(
        self,
        delivery: Delivery,
        *,
        charge: bool = False,
        by: str | None = None,
        partial: bool = False,
        dry_run: bool = False,
    ) -> Receipt:
        """Bring in rows as they were read from a file with a group column."""
        options = Options(by, partial)
        return self._deliver(lambda s, r: self._intake.add(s, r, delivery, charge, options), dry_run)

    def _deliver(self, decide: Callable[[State, Reader], Step], dry_run: bool) -> Receipt:
        """Store what a delivery comes to, or with `dry_run` only say it."""
        if dry_run:
            with self._moment() as (reader, state):
                return replace(decide(state, reader).receipt, dry_run=True)
        found: list[Receipt] = []

        def write(state: State, writer: Writer) -> None:
            step = decide(state, writer)
            found.append(step.write(writer))
            self._intake.remember(step.examples)

        self._write(write)
        return found[0]

    def _fetch_ahead(self, wanted: int = 1) -> None:
        """Copy rows of Parquet files for the next places of every group, outside the write lock."""
        if not self._state.files:
            return
        with self._moment() as (reader, state):
            short = [g for g in state.groups if any(e.features is None for e in reader.next_in_pool(g, wanted))]
            missing = [e for g in short for e in reader.next_in_pool(g, AHEAD + wanted) if e.features is None]
        if not missing:
            return
        rows = {e.id: e.features for e in fetch(state, missing)}

        def write(now: State, writer: Writer) -> None:
            still = writer.find(list(rows)).values()
            writer.put([e._replace(features=rows[e.id]) for e in still if e.features is None])

        self._write(write)

    def _expire_overdue(self) -> None:
        """Give examples of requests whose lease ended back to the pool, so that the next ask finds them there."""
        if self._state.pool is None or not self._state.open:
            return
        with self._ledger.reading(self._number) as reader:
            now = reader.now
        if self._state.overdue(now):
            self._write(lambda state, writer: None)


def _check_like(table: PoolTable, state: State) -> None:
    """Refuse a pool with groups or columns that the campaign does not have."""
    unknown = [group for group in table.groups if state.groups and group not in state.groups]
    if unknown:
        raise InputError(f"unknown group {unknown[0]!r}: the groups are {', '.join(map(repr, state.groups))}")
    for group in table.groups:
        check_text(group, "the group")
    if state.columns is None:
        return
    was, now = (
        dict(zip(c["names"], c["types"], strict=True)) if "names" in c else {} for c in (state.columns, table.columns)
    )
    for name in state.columns.get("names", ()):
        if name not in now:
            raise InputError(f"the column {name!r} of earlier rows is gone")
        if was[name] != now[name]:
            raise InputError(f"column {name!r} was {was[name]} in earlier rows and is {now[name]} now")
    if was.keys() != now.keys() or state.columns.get("features") != table.columns["features"]:
        extra = sorted(now.keys() - was.keys())
        raise InputError(f"the columns differ from earlier rows; not known {extra}: leave them out with ignore=")


def _together(receipts: Sequence[Receipt]) -> Receipt:
    """One receipt for all requests that a delivery filled."""
    if len(receipts) == 1:
        return receipts[0]
    total = {
        name: sum(getattr(r, name) for r in receipts)
        for name in ("rows", "training", "validation", "known", "surplus", "outstanding")
    }
    return Receipt(
        request=0,
        **total,
        refused=tuple(row for r in receipts for row in r.refused),
        late=any(r.late for r in receipts),
        new_classes=tuple(dict.fromkeys(c for r in receipts for c in r.new_classes)),
        event=max((r.event for r in receipts), default=0),
    )

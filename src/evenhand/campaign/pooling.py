"""The verbs of a campaign with a pool: register it, tell labels by id, skip what nobody can label."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from evenhand.campaign.altering import Altering
from evenhand.campaign.answering import Options
from evenhand.campaign.correcting import check_reason, leaving
from evenhand.campaign.deciding import Chooser
from evenhand.campaign.deliveries import Delivery, refusal
from evenhand.campaign.facts import ORDER_BY_SEED
from evenhand.campaign.features import Rows
from evenhand.campaign.labels import check_text, read_id
from evenhand.campaign.pool_tables import PoolTable, read_pool
from evenhand.campaign.pools import fetch_ahead, register
from evenhand.campaign.requests import Receipt
from evenhand.campaign.settings import Parts
from evenhand.campaign.state import State
from evenhand.campaign.telling import Intake
from evenhand.engine.settings import as_population, check_settings, forced_warning
from evenhand.errors import Conflict, InputError, NotFound
from evenhand.ledger import Writer
from evenhand.notation import JsonObject, free_name

__all__ = ["Pooled", "Pooling"]

# how many disagreements the ledger lists by id; of the others it keeps only the number
_LISTED = 100


class Pooled(NamedTuple):
    """What registering a pool brought.

    Attributes:
        groups: new examples by group.
        known: ids known already.
        labelled: labelled rows taken in.
        event: the number of the event.
        read: what was read, in words.
        schema: what its columns hold, in words.
    """

    groups: dict[str, int]
    known: int
    labelled: int
    event: int
    read: str
    schema: str


class Pooling(Altering):
    """Pools."""

    if TYPE_CHECKING:

        def change(self, *, by: str | None = None, **settings: Any) -> None:
            """As `Campaign` has it."""

    def pool(
        self,
        data: object,
        id: str | None = "id",
        group: str | Sequence[str] = "group",
        features: Sequence[str] | None = None,
        *,
        text: str | Sequence[str] = (),
        image: str | Sequence[str] = (),
        vector: str | Sequence[str] = (),
        numbers: Sequence[str] = (),
        ignore: Sequence[str] = (),
        missing: Sequence[str] = (),
        exclude: Sequence[str] = (),
        merge_below: int = 0,
        merge_spellings: bool = False,
        max_categories: int | None = None,
        use_group_as_feature: bool = False,
        scale: str | None = None,
        separator: str | None = None,
        decimal: str | None = None,
        encoding: str | None = None,
        by: str | None = None,
        notice: Callable[[str], object] | None = None,
        _salt: str | None = None,
    ) -> Pooled:
        """Register examples that are not labelled yet; may be called again with more.

        Args:
            data: a pandas, polars or Arrow table, or the path of a CSV or JSON lines file, a Parquet file or a folder of
                Parquet files.
            id: the column of the ids; None takes the row numbers from 0 up, and then there can be only one pool.
            group: the columns that tell the group; a number may have bins, like `"age:30,60"`.
            features: the columns to learn from; by default those of the settings, or all but id, group and label.
            text, image, vector: columns of these kinds, which are shown to people and not learned from yet.
            numbers: columns such as `$1,000` to read as numbers.
            ignore: columns to leave out altogether.
            missing: words for a missing value, beside the empty cell.
            exclude: groups to leave out, by name.
            merge_below: groups with fewer rows than this are merged into one, called other.
            merge_spellings: whether groups and labels that differ only by case, blanks or Unicode form are one.
            max_categories: a column of categories with more values than this is left out; by default 1,000, or another
                value in nearly every row.
            use_group_as_feature: whether to learn from the group columns too.
            scale: how the learner `table` scales numbers, by its training rows: `"standard"` (its default), `"minmax"` or
                `"none"`; the same as `change(learner="table:scale=minmax")`.
            separator: the character between the cells of a CSV file; recognised unless given.
            decimal: the file's decimal mark; a comma is recognised.
            encoding: the file's encoding, UTF-8 unless given.
            by: who registers it.
            notice: is given what was read and what the columns hold, line by line, before anything is stored.

        The order in which the rows of a group are handed out is drawn now, from the system's random numbers, and shown
        nowhere; in a campaign in memory that was given a seed, the seed decides it.

        Rows whose label column has a value are taken in as `add` does. A Parquet file stays where it is and must not
        change; after a change call `pool` again, which registers anew what was not handed out.
        """
        from evenhand.campaign.intake import missing_words
        from evenhand.tables.groups import GroupRule
        from evenhand.tables.reading import Format, check_format, is_parquet, read
        from evenhand.tables.schema import Columns

        state, form = self.store.refresh(), Format(separator, decimal, encoding)
        check_format([data], form)
        by_columns = (group,) if isinstance(group, str) else tuple(group)
        label = state.settings["label"]
        features = state.settings["features"] if features is None else features
        columns = Columns.of(
            id=id, groups=by_columns, features=features, ignore=[i for i in ignore if i != label], numbers=numbers, text=text,
            image=image, vector=vector, missing=missing, decimal=decimal, use_group_as_feature=use_group_as_feature,
            max_categories=max_categories, needs_numbers=self.store.parts.needs_numbers,
        )  # fmt: skip
        words = columns.missing or tuple(missing_words(state.columns))
        rule = GroupRule(by_columns, tuple(exclude), merge_below, merge_spellings, words)
        frame = read(data, form)
        path = Path(data) if isinstance(data, str | Path) and is_parquet(data) else None
        table = read_pool(
            frame, columns, rule, label=label, earlier=state.columns, is_first=not state.has_rows, path=path
        )
        table = table.like(state)
        self._check_learner(table)
        if notice is not None:
            for line in table.said:
                notice(line)
        scaled = None if scale is None else self._scaled(scale)
        if id is None:
            if state.pool is not None:
                raise InputError(
                    "rows of a second table cannot be told apart by their numbers: name a column of ids, id=..."
                )
            # the rows to label come back as a file with this column
            id = free_name("row", (*frame.schema.names, label))
        found: list[Pooled] = []
        self.store.write(lambda s, w: found.append(self._register(s, w, table, id, by, _salt)), still_open=True)
        if scaled is not None:
            self.change(learner=scaled, by=by)
        # done now, while somebody waits for a long command anyway, and not at the first ask
        fetch_ahead(self.store)
        examples = self.budget * (1 - self.store.state.settings["validation"])
        if not state.groups and (message := forced_warning(self.store.parts.strategy, len(self.groups), examples)):
            warnings.warn(message, stacklevel=2)
        return found[0]

    def tell_labels(
        self,
        labels: Mapping[str, object],
        collector: str | None = None,
        partial: bool = False,
        extra: bool = False,
        dry_run: bool = False,
        *,
        written: bool = False,
    ) -> Receipt:
        """Tell the labels of pool examples by id, whichever requests they fill. The same label again changes nothing.

        A label that comes after its request's lease is taken while the budget lasts; one for an example that was never
        handed out is refused, unless with `extra`. `written` says that the labels were read from a file.
        """
        if not isinstance(labels, Mapping):
            raise InputError(f"give labels by id, {{id: label}}, not {type(labels).__name__}")
        if collector is not None:
            check_text(collector, "the collector")
        options = Options(collector, partial, extra)
        if dry_run:
            with self.store.moment() as (reader, state):
                steps = self.store.intake.label(state, reader, labels, options, written=written)
                return replace(_together([step.receipt for step in steps]), dry_run=True)
        found: list[Receipt] = []

        def write(state: State, writer: Writer) -> None:
            steps = self.store.intake.label(state, writer, labels, options, written=written)
            found.append(_together([step.write(writer) for step in steps]))

        self.store.write(write)
        return found[0]

    def skip(self, id: str, reason: str | None = None, by: str | None = None) -> None:
        """Leave out an example that nobody can label: it leaves the pool, and its request shrinks."""
        id = read_id(id)

        def write(state: State, writer: Writer) -> None:
            example = writer.find([id]).get(id)
            if example is None or example.place is None or example.fate == "gone":
                raise NotFound(f"there is no example {id!r} in the pool")
            if example.label is not None:
                raise Conflict(f"the example {id!r} has a label already: withdraw it instead")
            if example.fate is not None:
                return
            facts = {"id": id, "reason": check_reason(reason), **leaving(state, example)}
            event = writer.append("skipped", facts, request=facts["request"], actor=by)
            writer.put([example._replace(fate="skipped", held=False, changed=event.seq)])

        self.store.write(write, still_open=True)

    def note_disagreements(self, ids: Sequence[str], by: str) -> None:
        """Record all examples whose answers in a labelling tool now contradict each other; `status` lists them."""
        facts = {"count": len(ids), "ids": list(ids)[:_LISTED]}

        def write(state: State, writer: Writer) -> None:
            if state.disagreements.get(by, {"count": 0, "ids": []}) != facts:
                writer.append("disagreed", facts, actor=by)

        if self.store.state.disagreements.get(by, {"count": 0, "ids": []}) != facts:
            self.store.write(write)

    # ---------------------------------------------------------------- within

    def _scaled(self, scale: str) -> str | None:
        """The text of the learner with another scale; None where it has it already."""
        from evenhand.learners.parsing import describe_learner
        from evenhand.learners.table import TableLearner

        learner = self.store.parts.learner
        if not isinstance(learner, TableLearner):
            raise InputError("scale has no effect: it is for the learner 'table', others take numbers as they are")
        return None if learner.scale == scale else describe_learner(replace(learner, scale=scale))

    def _check_learner(self, table: PoolTable) -> None:
        """Refuse a pool without the columns that the learner names."""
        from evenhand.learners.columns import check_columns, needs_columns

        learner = self.store.parts.learner
        if learner is not None and needs_columns(learner):
            check_columns(learner, table.schema.features, table.schema.left_out)

    def _register(
        self, state: State, writer: Writer, table: PoolTable, id: str, by: str | None, salt: str | None
    ) -> Pooled:
        """Store the examples of a pool, the event that brings them, and the rows that have a label already."""
        settings, groups = state.settings, state.groups or list(table.groups)
        population = settings["population"]
        if not state.groups:
            check_settings(
                groups, self.store.parts.strategy,
                **{name: settings[name] for name in ("budget", "batch", "warmup", "validation")},
            )  # fmt: skip
            population = self._shares(table, population)
        if state.frozen is not None and settings["order"] == "seed":
            raise InputError(f"a model is frozen, and a pool would end its proof: {ORDER_BY_SEED}")
        table = table.like(state)  # another process may have brought columns or groups since
        found = register(table, state, writer, groups, salt)
        facts = {
            "groups": groups, "population": population, "counts": [found.change[g] for g in groups],
            "removed": [found.removed[g] for g in groups],
            "columns": table.columns, "read": table.said[0], "files": _files(state, writer, table), "id": id,
            "last_row": state.last_row + (len(table) if table.file is not None else 0),
            "lookalikes": table.has_lookalikes,
        }  # fmt: skip
        event = writer.append("pooled", facts, actor=by)
        labelled = 0
        if table.labels:
            labelled = self._take_labelled(state.copy().fold([event]), writer, table, by)
        return Pooled(found.new, found.known, labelled, event.seq, *table.said)

    def _take_labelled(self, state: State, writer: Writer, table: PoolTable, by: str | None) -> int:
        """Take in the rows of a table that have a label already; returns their number."""
        parts = Parts(dict(state.settings), self.store.parts.given)  # the groups may have come with this table
        rows = list(table.labels)
        try:
            step = Intake(parts, Chooser(parts)).add(state, writer, _labelled(table), False, Options(by))
        except InputError as error:
            if not error.refused:
                raise
            refused = [row._replace(row=rows[row.row]) for row in error.refused]
            raise refusal(refused, len(table), advice="Correct them.") from None
        return step.write(writer).rows

    def _shares(self, table: PoolTable, given: Any) -> list[float] | None:
        """The population's shares where the rule needs them: those of the pool, if none were given."""
        if given is not None or not getattr(self.store.parts.strategy, "needs_population", False):
            return None if given is None else list(given)
        counts = [int((table.codes == z).sum()) for z in range(len(table.groups))]
        share = as_population(counts, table.groups, self.store.parts.strategy)
        return None if share is None else share.tolist()

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
        return self.store.deliver(lambda s, r: self.store.intake.add(s, r, delivery, charge, options), dry_run)


def _files(state: State, writer: Writer, table: PoolTable) -> list[JsonObject]:
    """The Parquet files that rows of the pool lie in, once a table is registered."""
    new = [] if table.file is None else [table.file]
    known = [
        file
        for file in state.files
        if not any(file["path"] == other["path"] for other in new)
        and writer.pool_counts(file["first"], file["first"] + file["rows"] - 1)
    ]
    return [*known, *({**f, "first": state.last_row + 1, "rows": len(table), "columns": table.columns} for f in new)]


def _labelled(table: PoolTable) -> Delivery:
    """The rows of a pool's table that have a label already."""
    rows, ids = list(table.labels), table.ids
    groups = [table.groups[int(table.codes[row])] for row in rows]
    names = [ids[row].as_py() for row in rows]
    features = Rows(table.columns, list(table.stored_at(rows)))
    return Delivery(features, list(table.labels.values()), names, groups, table.written)


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

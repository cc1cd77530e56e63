"""What comes in, decided under the write lock: labelled rows, counts, labels by id, reported losses."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from evenhand.campaign.corrections import Alteration, check_reason, correct, erase, leaving, withdraw
from evenhand.campaign.deliveries import (
    Delivery,
    NewLabel,
    SortedLabels,
    SortedRows,
    counted_reasons,
    digest_of,
    made_ids,
    new_salt,
    refusal,
    repeated,
    sort_labels,
    sort_out,
)
from evenhand.campaign.events import (
    ADDED,
    ANSWERS,
    COUNTED,
    DISAGREED,
    LABELLED,
    LOSSES,
    SKIPPED,
    TOLD,
    Answer,
    Disagreed,
    Draft,
    Labelled,
    RoleCounts,
    Score,
    Skipped,
    ids_in,
)
from evenhand.campaign.events import Rows as RowFacts
from evenhand.campaign.examples import LARGEST, Rows
from evenhand.campaign.labels import Classes, as_label, check_text, label_text, read_id
from evenhand.campaign.log import Log, Once
from evenhand.campaign.pool import Pooled, PoolTable, fetch, labelled_rows, register_event
from evenhand.campaign.requests import (
    Asker,
    Options,
    Receipt,
    Refused,
    outstanding,
    refuse_closed,
    request_for,
    room_for,
    too_many,
)
from evenhand.campaign.state import LETTERS, OUTSIDE, ROLES, State
from evenhand.errors import Conflict, InputError, NotFound, Repeated
from evenhand.ledger.base import Busy, Event, Example, Reader, Writer

_LISTED = 100
"""How many disagreements the ledger lists by id; of the others it keeps only the number."""


@dataclass(frozen=True)
class Step:
    """The result of a delivery: its receipt, and the event and the examples to store, if there is anything new."""

    receipt: Receipt
    event: Draft | None = None
    examples: Sequence[Example] = ()
    actor: str | None = None

    def write(self, writer: Writer) -> Receipt:
        """Store it; returns the receipt."""
        if self.event is None:
            return self.receipt
        event = self.event.append(writer, request=self.receipt.request or None, actor=self.actor)
        writer.put(self.examples)
        return replace(self.receipt, event=event.seq)


class Intake:
    """Takes in what comes: labelled rows, counts, labels by id, corrections, losses, and tables of a pool.

    Each verb decides under the write lock and stores all of it or nothing. It keeps nothing but the classes it has seen,
    which the ledger has too.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._seen: tuple[int, set[str]] = (0, set())

    # ---------------------------------------------------------------- labelled rows

    def tell(self, number: int, delivery: Delivery, options: Options, *, dry_run: bool = False) -> Receipt:
        """Rows that answer a request."""
        return self._deliver(lambda s, r: [self._told(s, r, number, delivery, options)], dry_run)

    def count(self, number: int, n: int, options: Options, *, dry_run: bool = False) -> Receipt:
        """How many rows came, where somebody else keeps them; it closes the request."""
        return self._deliver(lambda s, r: [self._counted(s, r, number, n, options)], dry_run)

    def label(
        self, labels: Mapping[str, object], options: Options, *, written: bool = False, dry_run: bool = False
    ) -> Receipt:
        """Labels of pool examples by id, whichever requests they fill."""
        return self._deliver(lambda s, r: self._labelled(s, r, labels, options, written=written), dry_run)

    def add(self, delivery: Delivery, options: Options, *, charge: bool, dry_run: bool = False) -> Receipt:
        """Labelled rows that the user already had."""
        return self._deliver(lambda s, r: [self._added(s, r, delivery, charge, options)], dry_run)

    def _deliver(self, decide: Callable[[State, Reader], list[Step]], dry_run: bool) -> Receipt:
        """Store a delivery, or with `dry_run` only say what would be stored."""
        if dry_run:
            with self._log.moment() as (reader, state):
                return replace(_together([step.receipt for step in decide(state, reader)]), dry_run=True)
        found: list[Receipt] = []

        def write(state: State, writer: Writer) -> None:
            steps = decide(state, writer)
            found.append(_together([step.write(writer) for step in steps]))
            for step in steps:
                self._remember(step.examples)

        self._write(write)
        return found[0]

    def _write(self, step: Callable[[State, Writer], object], *, still_open: bool = False) -> None:
        try:
            self._log.write(step, still_open=still_open)
        except Busy:  # no step was begun; to read the classes anew costs a scan of all labels
            raise
        except BaseException:
            # read the classes anew the next time: what was about to be stored was not
            self._seen = (0, set())
            raise

    def _remember(self, examples: Sequence[Example]) -> None:
        """Know the classes of rows that are being stored, so that the next delivery need not look them up."""
        if examples:
            # with the event that brings them: `_classes` reads on from there
            self._seen = (examples[0].changed, self._seen[1] | {e.label for e in examples if e.label is not None})

    # ---------------------------------------------------------------- labels changed or taken back

    def correct(
        self, labels: Mapping[str, object], reason: str | None, by: str | None, *, written: bool = False
    ) -> int:
        """Other labels for examples, all or none; returns how many changed."""
        return self._alter(lambda s, r: correct(s, r, labels, self._classes(s, r), reason, written=written), by)

    def withdraw(self, ids: Sequence[str], reason: str | None, by: str | None, *, refund: bool) -> int:
        """Examples taken back for good; returns how many."""
        return self._alter(lambda s, r: withdraw(s, r, ids, reason, refund=refund), by)

    def erase(self, ids: Sequence[str], reason: str | None, by: str | None) -> int:
        """Features and labels deleted for good; returns of how many examples."""
        changed = self._alter(lambda s, r: erase(s, r, ids, reason), by)
        # until then the erased values are still in SQLite's log
        self._log.ledger.checkpoint()
        self._seen = (0, set())
        return changed

    def _alter(self, decide: Callable[[State, Reader], Alteration], by: str | None) -> int:
        changed: list[int] = []
        # a campaign that has ended accepts these too: somebody may ask to be forgotten at any time
        self._write(lambda s, w: changed.append(decide(s, w).write(w, by)))
        return changed[0]

    # ---------------------------------------------------------------- pools

    def register(self, table: PoolTable, id: str, by: str | None, salt: str | None) -> Pooled:
        """The examples of a table that are not labelled yet, and those that are."""
        found: list[Pooled] = []

        def write(state: State, writer: Writer) -> None:
            event, known, taken = register_event(self._log.parts, state, writer, table, id, by, salt)
            labelled = 0
            if taken.labels:
                labelled = self._take_labelled(state.copy().fold([event]), writer, taken, by)
            found.append(Pooled(known.new, known.known, labelled, event.seq, *table.said))

        self._write(write, still_open=True)
        return found[0]

    def _take_labelled(self, state: State, writer: Writer, table: PoolTable, by: str | None) -> int:
        """Take in the rows of a table that have a label already; returns their number."""
        rows = list(table.labels)
        try:
            step = self._added(state, writer, labelled_rows(table), False, Options(by))
        except InputError as error:
            if not error.refused:
                raise
            refused = [row._replace(row=rows[row.row]) for row in error.refused]
            raise refusal(refused, len(table), advice="Correct them.") from None
        return step.write(writer).rows

    def skip(self, id: str, reason: str | None, by: str | None) -> None:
        """Leave out an example that nobody can label."""
        id = read_id(id)

        def write(state: State, writer: Writer) -> None:
            example = writer.find([id]).get(id)
            if example is None or example.place is None or example.fate == "gone":
                raise NotFound(f"there is no example {id!r} in the pool")
            if example.label is not None:
                raise Conflict(f"the example {id!r} has a label already: withdraw it instead")
            if example.fate is not None:
                return
            left = leaving(state, example)
            facts: Skipped = {**left, "id": id, "reason": check_reason(reason)}
            event = SKIPPED.append(writer, facts, request=left["request"], actor=by)
            writer.put([example._replace(fate="skipped", held=False, changed=event.seq)])

        self._write(write, still_open=True)

    # ---------------------------------------------------------------- what others report

    def report_losses(self, losses: Mapping[str, Sequence[float]], by: str | None, once: Once | None) -> None:
        """The losses of somebody who trains elsewhere."""

        def step(state: State, writer: Writer) -> None:
            LOSSES.append(writer, {"groups": check_losses(state, losses)}, actor=by)

        with suppress(Repeated):
            self._log.write(step, still_open=True, once=once)

    def note_disagreements(self, ids: Sequence[str], by: str) -> None:
        """All examples whose answers in a labelling tool now contradict each other."""
        facts: Disagreed = {"count": len(ids), "ids": list(ids)[:_LISTED]}

        def known(state: State) -> bool:
            return state.disagreements.get(by, {"count": 0, "ids": []}) == facts

        def write(state: State, writer: Writer) -> None:
            if not known(state):
                DISAGREED.append(writer, facts, actor=by)

        if not known(self._log.state):
            self._log.write(write)

    # ---------------------------------------------------------------- decisions

    def _told(self, state: State, reader: Reader, number: int, delivery: Delivery, options: Options) -> Step:
        """Rows that answer a request."""
        # a request without any labels yet has no earlier deliveries to look up: the usual case costs no query
        none_yet = number in state.open and not state.open[number]["told"]
        told = [] if none_yet else reader.events(kinds=(TOLD.name,), request=number)
        rows = delivery.rows(state.columns, state.settings["features"])
        # a script that was cut off tells its delivery again; without ids only the content can show that
        if delivery.ids is None and (event := repeated(delivery, rows, told, reader, state.groups)) is not None:
            return _again(state, number, event)
        found = self._sorted(state, reader, delivery, rows)
        left, late = outstanding(state, number), number in state.expired
        # before anything is refused: telling again what is known succeeds, also of a closed campaign
        if not found.new and not found.refused:
            return Step(Receipt(number, 0, 0, 0, known=found.known, outstanding=left))
        if not found.new and options.partial:
            return Step(_with_found(Receipt(number, 0, 0, 0, outstanding=left, late=late), found))
        if found.refused and not options.partial:
            raise refusal(found.refused, len(rows))
        if found.known and options.partial and not options.extra and not left and state.closed is None:
            # a delivery stored in part that filled the request, told again: what was left out then is left out now
            found.refused += [
                Refused(new.row, new.id, f"request {number} waits for 0 labels only") for new in found.new
            ]
            return Step(Receipt(number, 0, 0, 0, known=found.known, refused=tuple(found.refused)))
        request = request_for(state, reader, number, options)
        most = room_for(state, number, options)
        if len(found.new) > most and options.partial:
            spent = number in state.expired or options.extra
            reason = "the budget is spent" if spent else f"request {number} waits for {left} labels only"
            found.refused += [Refused(new.row, new.id, reason) for new in found.new[most:]]
            found.keep(most)
        if len(found.new) > most:
            raise Conflict(too_many(state, number, len(found.new), most, extra=options.extra))
        surplus = max(0, len(found.new) - left)
        receipt = Receipt(number, 0, 0, 0, outstanding=left - len(found.new) + surplus, surplus=surplus, late=late)
        made = sum(len(facts["ids"]) for facts in map(TOLD.facts, told) if facts["made"])
        groups = [request.group] * len(found.new)
        # ids go on from those made for this request; taken ones are
        # looked up only if somebody ever gave an id that looks made
        names = partial(made_ids, first=made + 1, prefix=f"r{number}", taken=reader.find if state.lookalikes else _none)
        receipt = _with_found(receipt, found)
        if not found.new:
            return Step(receipt)
        actor = _checked(options.actor) or request.by
        origins = ["asked"] * (len(groups) - surplus) + ["extra"] * surplus
        facts, examples = self._stored(state, number, found, rows, groups, names, origins)
        answer: Answer = {"group": request.group, "rows": len(groups), "surplus": surplus, "late": late}
        return Step(_with_rows(receipt, facts["roles"]), TOLD.draft({**answer, **facts}), examples, actor)

    def _added(self, state: State, reader: Reader, delivery: Delivery, charge: bool, options: Options) -> Step:
        """Labelled rows that the user already had."""
        rows = delivery.rows(state.columns, state.settings["features"])
        added = reader.events(kinds=(ADDED.name,))
        if delivery.ids is None and (event := repeated(delivery, rows, added, reader, state.groups)) is not None:
            return _again(state, 0, event)
        found = self._sorted(state, reader, delivery, rows)
        if found.refused and not options.partial:
            raise refusal(found.refused, len(rows))
        refuse_closed(state)
        if charge and len(found.new) > state.unspent:
            raise InputError(f"{len(found.new)} labels to charge, but the budget has {state.unspent} left")
        groups = [(delivery.groups or [])[new.row] for new in found.new]
        names = partial(
            made_ids, first=1, prefix=f"a{len(added) + 1}", taken=reader.find if state.lookalikes else _none
        )
        receipt = _with_found(Receipt(0, 0, 0, 0), found)
        if not found.new:
            return Step(receipt)
        actor, origins = _checked(options.actor), ["charged" if charge else "added"] * len(groups)
        facts, examples = self._stored(state, None, found, rows, groups, names, origins)
        numbers, charged = [state.groups.index(group) for group in groups], len(groups) if charge else 0
        draft = ADDED.draft({**facts, "rows": len(groups), "groups": numbers, "charged": charged})
        return Step(_with_rows(receipt, facts["roles"]), draft, examples, actor)

    def _counted(self, state: State, reader: Reader, number: int, n: int, options: Options) -> Step:
        """How many rows came, where somebody else keeps them; it closes the request."""
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise InputError(f"n must be a number of rows from 1 up, not {n!r}: nothing came? abandon the request")
        if state.settings["learner"] is not None:
            raise InputError("this campaign has a learner, which needs the rows: tell(request, X, y)")
        # a bare number says nothing about errors, so whoever
        # sees the model's errors could hide them in one
        if state.frozen is not None:
            raise InputError("a model is frozen, and its certificate needs every label: tell(request, X, y), not n=")
        answers = reader.events(kinds=ANSWERS, request=number)
        if answers and number not in state.open and answers[-1].kind == COUNTED.name:
            event, earlier = answers[-1], COUNTED.facts(answers[-1])
            if earlier["rows"] == n:
                return Step(Receipt(number, 0, 0, 0, known=n, event=event.seq, late=earlier["late"]))
        request = request_for(state, reader, number, options)
        left, late = outstanding(state, number), number in state.expired
        most = room_for(state, number, options)
        if n > most:
            raise Conflict(too_many(state, number, n, most, extra=options.extra))
        count, surplus = int(n), max(0, int(n) - left)
        of_role = self._counts(state, request, count)
        receipt = Receipt(number, count, of_role["train"], of_role["validate"], surplus=surplus, late=late)
        answer: Answer = {"group": request.group, "rows": count, "surplus": surplus, "late": late}
        event_now = COUNTED.draft({**answer, **of_role})
        return Step(receipt, event_now, actor=_checked(options.actor) or request.by)

    def _counts(self, state: State, request: Asker, count: int) -> RoleCounts:
        """How many of a group's next rows have each role."""
        found: RoleCounts = {"train": 0, "validate": 0, "certify": 0, "test": 0}
        if request.kind == "certify":
            return {**found, "certify": count}
        if request.kind == "test":
            return {**found, "test": count}
        z = state.groups.index(request.group)
        found["validate"] = int(self._log.parts.roles(z, state.dealt[z], count).sum())
        found["train"] = count - found["validate"]
        return found

    def _labelled(
        self, state: State, reader: Reader, labels: Mapping[str, object], options: Options, *, written: bool = False
    ) -> list[Step]:
        """Labels of pool examples by id: a step for every request they fill."""
        if not labels:
            raise InputError("no labels given: tell at least one")
        classes = self._classes(state, reader)
        found = sort_labels(labels, reader, classes, extra=options.extra, written=written)
        if any(new.example.features is None for new in found.new):
            # extra labels of examples whose rows still lie in a file: a label without its row could not be learned from
            rows = fetch(state, [new.example for new in found.new])
            found.new = [new._replace(example=row) for new, row in zip(found.new, rows, strict=True)]
        # labels of an expired request went back to the budget, so late ones are paid for again
        room = max(state.unspent, 0)
        for new in [new for new in found.new if not new.example.held]:  # late or extra: what the budget has left
            if room:
                room -= 1
            else:
                found.new.remove(new)
                found.refused.append(Refused(new.row, new.example.id, "it comes late, and the budget is spent"))
        if found.refused and not options.partial:
            raise refusal(found.refused, len(labels))
        if found.new:
            refuse_closed(state)
        return self._label_steps(state, found, classes, options)

    def _label_steps(self, state: State, found: SortedLabels, classes: Classes, options: Options) -> list[Step]:
        # one event for each request, so that an event answers one request in every ledger
        by_request: dict[tuple[int | None, str], list[NewLabel]] = {}
        for new in found.new:
            by_request.setdefault((new.example.request, new.example.group), []).append(new)
        if not by_request:
            left = sum(outstanding(state, number) for number in found.requests if number in state.open)
            about = next(iter(found.requests)) if len(found.requests) == 1 else 0
            return [Step(Receipt(about, 0, 0, 0, known=found.known, refused=tuple(found.refused), outstanding=left))]
        kept = {new.label for new in found.new}
        fresh = tuple(label for label in classes.new if label in kept)
        steps: list[Step] = []
        dealt = dict(zip(state.groups, state.dealt, strict=True))
        for (number, group), items in by_request.items():
            z, examples, roles = state.groups.index(group), [], ""
            for position, new in enumerate(items):
                example = new.example
                # an extra label of an example that was never handed
                # out has its role drawn now, like any next one
                letter = self._drawn(z, dealt[group], 1) if example.role is None else LETTERS[example.role]
                dealt[group] += example.role is None
                seq, text = state.seq + 1 + len(steps), label_text(new.label)
                roles += letter
                examples.append(
                    example._replace(
                        role=ROLES[letter], held=False, label=text, first_label=text, told=seq, position=position,
                        changed=seq, salt=new_salt(), fate=None, origin="asked" if example.role is not None else "extra",
                    )
                )  # fmt: skip
            late = number is not None and number in state.expired
            surplus = sum(e.origin == "extra" for e in examples)
            facts: Labelled = {
                "group": group, "rows": len(items), "roles": roles, "ids": [e.id for e in examples],
                "digests": [digest_of(e) for e in examples],
                "surplus": surplus, "late": late,
                # once, as in the receipt
                "why": {} if steps else counted_reasons(found.refused),
                "label_kind": classes.kind if state.label_kind is None else None,
                "dealt_before": sum(e.origin == "asked" and e.role in ("train", "validate") for e in examples),
                "from_pool": sum(new.example.in_pool for new in items),
            }  # fmt: skip
            left = max(outstanding(state, number or 0) - len(items) + surplus, 0)
            receipt = Receipt(number or 0, 0, 0, 0, surplus=surplus, outstanding=left, late=late)
            receipt = _with_rows(receipt, roles)
            # once, or the receipts of several requests would add it up
            if not steps:
                receipt = replace(receipt, known=found.known, refused=tuple(found.refused), new_classes=fresh)
            by = None if number not in state.open else state.open[number]["by"]
            steps.append(Step(receipt, LABELLED.draft(facts), examples, options.actor or by))
        return steps

    # ---------------------------------------------------------------- within

    def _sorted(self, state: State, reader: Reader, delivery: Delivery, rows: Rows) -> SortedRows:
        classes = self._classes(state, reader)
        return sort_out(
            delivery, rows, classes, reader, needs_numbers=self._log.parts.needs_numbers, groups=state.groups
        )

    def _classes(self, state: State, reader: Reader) -> Classes:
        """The classes so far: those given, or the labels in the ledger."""
        if state.settings["classes"] is not None:
            return Classes(state.settings["classes"])
        seq, seen = self._seen
        if state.altered > seq:
            # a correction may have been the last example of a class: only counting anew tells
            seen = {label for counts in reader.class_counts().values() for label in counts}
        elif max(state.arrived, default=0) > seq:
            seen = seen | {row.label for row in reader.changed(seq) if row.counts and row.label is not None}
        self._seen = state.seq, seen
        learned = [as_label(text, state.label_kind) for text in sorted(seen)]
        return Classes(None, learned, state.settings["positive"])

    def _stored(
        self,
        state: State,
        number: int | None,
        found: SortedRows,
        rows: Rows,
        groups: Sequence[str],
        names: Callable[[int], list[str]],
        origins: Sequence[str],
    ) -> tuple[RowFacts, list[Example]]:
        """New rows as they are stored, with their roles, and what their event says of them."""
        made = found.new[0].id is None
        ids = names(len(found.new)) if made else [str(new.id) for new in found.new]
        roles, examples = self._roles(state, groups, number), []
        stored = zip(found.new, ids, groups, roles, origins, strict=True)
        for position, (new, name, group, role, origin) in enumerate(stored):
            text = label_text(new.label)
            example = Example(
                id=name, group=group, role=ROLES[role], request=number, origin=origin, made=made,
                label=text, first_label=text, features=rows.stored[new.row], told=state.seq + 1, position=position,
                changed=state.seq + 1, salt=new_salt(),
            )  # fmt: skip
            if new.earlier is not None:  # its place is for good, though nobody will be asked for it any more
                example = example._replace(place=new.earlier.place, registered=new.earlier.registered)
            examples.append(example)
        facts: RowFacts = {
            "roles": roles,
            "ids": ids,
            "made": made,
            "digests": [digest_of(e) for e in examples],
            "given": len(rows),
            "left_out": sorted(row.row for row in found.refused),
            "why": counted_reasons(found.refused),
            "columns": rows.columns if state.columns is None else None,
            "label_kind": found.kind if state.label_kind is None else None,
        }
        return facts, examples

    def _roles(self, state: State, groups: Sequence[str], number: int | None) -> str:
        """The role of every row, a letter each."""
        request = state.waiting(number)
        if request is not None and (letter := OUTSIDE.get(request["kind"])) is not None:
            return letter * len(groups)
        # drawn a group at a time, and taken from the end in the order of the rows
        index = [state.groups.index(group) for group in groups]
        # a row's role depends on its place within its group
        # alone, so deliveries may mix groups in any order
        found = {z: list(self._drawn(z, state.dealt[z], index.count(z)))[::-1] for z in set(index)}
        return "".join(found[z].pop() for z in index)

    def _drawn(self, z: int, dealt: int, count: int) -> str:
        """The roles of a group's next ordinary examples."""
        return "".join("v" if validates else "t" for validates in self._log.parts.roles(z, dealt, count).tolist())


def _with_rows(receipt: Receipt, roles: str) -> Receipt:
    """The receipt of rows with these roles."""
    validation = roles.count("v") + roles.count("c")
    return replace(receipt, rows=len(roles), training=roles.count("t"), validation=validation)


def _with_found(receipt: Receipt, found: SortedRows) -> Receipt:
    """The receipt of rows that were told: which were known, refused, and of new classes."""
    return replace(receipt, known=found.known, refused=tuple(found.refused), new_classes=tuple(found.classes))


def _checked(actor: str | None) -> str | None:
    return None if actor is None else check_text(actor, "the collector")


def _none(names: Collection[str]) -> Collection[str]:
    return ()


def _again(state: State, number: int, event: Event) -> Step:
    """A delivery that was told before: nothing is stored."""
    late, left = event.kind == TOLD.name and TOLD.facts(event)["late"], outstanding(state, number)
    return Step(Receipt(number, 0, 0, 0, known=len(ids_in(event)), outstanding=left, late=late, event=event.seq))


def check_losses(state: State, losses: Mapping[str, Sequence[float]]) -> dict[str, Score]:
    """Reported mean losses, accuracies and numbers of validation examples, checked."""
    if state.settings["learner"] is not None:
        raise InputError("this campaign has a learner and scores by itself: make it with learner=None to report losses")
    if not losses:
        raise InputError("no losses given: report {group: (mean loss, accuracy, examples)}")
    # a slip, such as a percentage in place of a count, would outweigh every other group for good
    most = state.settings["budget"] + state.added
    found: dict[str, Score] = {}
    for group, reported in losses.items():
        if group not in state.groups:
            raise InputError(f"unknown group {group!r}: the groups are {', '.join(map(repr, state.groups))}")
        try:
            mean, right, n = (float(value) for value in reported)
        except (TypeError, ValueError):
            raise InputError(f"losses of {group!r}: give (mean loss, accuracy, examples), not {reported!r}") from None
        if not (0 <= mean <= LARGEST and 0 <= right <= 1 and 1 <= n < math.inf and n == int(n)):
            raise InputError(
                f"losses of {group!r}: the mean loss must be a number from 0 up, accuracy in [0, 1], examples a whole number "
                f"from 1 up, not {reported!r}"
            )
        if n > most:
            raise InputError(
                f"losses of {group!r}: {n:g} validation examples are more than the {most:,} labels there can be"
            )
        found[str(group)] = {"n": int(n), "relevant": int(n), "loss_sum": mean * n, "accuracy": right}
    return found


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

"""Labelled rows as they are delivered, checked row by row: which of them are new, known, or cannot be stored."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from evenhand.campaign.events import ADDED, TOLD
from evenhand.campaign.examples import Rows, as_rows, schema_of
from evenhand.campaign.labels import Classes, Label, label_text, plain_list, read_id, read_label
from evenhand.campaign.requests import Refused
from evenhand.errors import Conflict, InputError
from evenhand.ledger.base import Event, Example, Reader
from evenhand.ledger.text import as_text, from_text
from evenhand.notation import JsonMapping

if TYPE_CHECKING:
    from evenhand.arrays import Features


_Entry = TypeVar("_Entry")
_VALUES = re.compile(r"\[[^\]]*\]|'[^']*'|\"[^\"]*\"|-?\d[\d.,e+]*")
_SHOWN = 5
_TAKEN_BACK = {"withdrawn": "was withdrawn", "erased": "was erased", "skipped": "was skipped"}


@dataclass(frozen=True)
class Delivery:
    """Rows as they were given: features, labels, ids where there are any, and the group of every row.

    Attributes:
        X: the features as given.
        labels: one value a row.
        ids: one id a row; None where the ledger makes them.
        groups: the group of every row; None where the request names it.
        written: whether the labels were read from a file, in which all is text.
        problems: what is wrong with rows already, by row number.
    """

    X: Any
    labels: list[object]
    ids: list[object] | None = None
    groups: list[str] | None = None
    written: bool = False
    problems: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def of(cls, X: Features, y: object, ids: object = None, groups: object = None) -> Delivery:
        """A delivery of what `tell` and `add` are given."""
        labels = plain_list(y)
        named = None if ids is None else plain_list(ids)
        of_groups = None if groups is None else [str(group) for group in plain_list(groups)]
        for what, values in (("ids", named), ("groups", of_groups)):
            if values is not None and len(values) != len(labels):
                raise InputError(f"{len(labels)} labels but {len(values)} {what}: give one for every row")
        if not labels:
            raise InputError("an empty delivery: tell at least one row, or abandon the request")
        return cls(X, labels, named, of_groups)

    def rows(self, columns: JsonMapping | None = None, features: Iterable[str] | None = None) -> Rows:
        """The features as they are stored, with the `columns` of earlier deliveries and those named to learn from."""
        named = None if features is None else list(features)
        rows = self.X if isinstance(self.X, Rows) else as_rows(self.X, columns, named)
        if len(rows) != len(self.labels):
            raise InputError(f"X has {len(rows)} rows and y {len(self.labels)} labels: give one label for every row")
        return rows


class New(NamedTuple):
    """A row to be stored: its number in the delivery, its id and label, and the example of the pool that it was."""

    row: int
    id: str | None
    label: Label
    earlier: Example | None = None


@dataclass
class Sorted(Generic[_Entry]):
    """A delivery sorted into new entries, how many were known already, and refused ones."""

    new: list[_Entry] = field(default_factory=list)
    known: int = 0
    refused: list[Refused] = field(default_factory=list)


@dataclass
class SortedRows(Sorted[New]):
    """The rows of a delivery, and the classes seen for the first time."""

    classes: list[Label] = field(default_factory=list)
    kind: str | None = None

    def keep(self, count: int) -> None:
        """Keep the first new rows, and the new classes among them."""
        self.new = self.new[:count]
        kept = {new.label for new in self.new}
        self.classes = [label for label in self.classes if label in kept]


def sort_out(
    delivery: Delivery, rows: Rows, classes: Classes, reader: Reader, *, needs_numbers: bool, groups: Collection[str]
) -> SortedRows:
    """Which rows can be stored. An id told before with the same label and features is known; otherwise it is refused."""
    found = SortedRows()
    ids = _read_ids(delivery)
    stored = reader.find([name for name in ids if isinstance(name, str)]) if delivery.ids is not None else {}
    numbers = _not_numbers(rows) if needs_numbers else {}
    as_numbers = delivery.written and classes.reads_numbers(delivery.labels)
    seen: dict[str, tuple[Label, str | bytes]] = {}
    for row, value in enumerate(delivery.labels):
        name = ids[row]
        problem = delivery.problems.get(row) or rows.problems.get(row) or numbers.get(row)
        try:
            if problem is not None:
                raise InputError(problem)
            if isinstance(name, InputError):
                raise name
            if delivery.groups is not None and delivery.groups[row] not in groups:
                raise InputError(
                    f"unknown group {delivery.groups[row]!r}: the groups are {', '.join(map(repr, groups))}"
                )
            label = classes.take(value, written=delivery.written, as_number=as_numbers)
            if name is not None:
                earlier = stored.get(name)
                if earlier is not None and _is_known(earlier, label, rows.stored[row]):
                    found.known += 1
                    continue
                if name in seen:
                    if seen[name] != (label, rows.stored[row]):
                        raise InputError(f"the id {name!r} comes twice with different content")
                    found.known += 1
                    continue
                seen[name] = label, rows.stored[row]
        except InputError as error:
            shown = name if isinstance(name, str) else None
            found.refused.append(Refused(row, shown, str(error), isinstance(error, Conflict)))
        else:
            found.new.append(New(row, name, label, stored.get(name) if name is not None else None))
    kept = {new.label for new in found.new}
    found.classes, found.kind = [label for label in classes.new if label in kept], classes.kind
    return found


class NewLabel(NamedTuple):
    """A label of a pool example: its place among those told, the example, and the label."""

    row: int
    example: Example
    label: Label


@dataclass
class SortedLabels(Sorted[NewLabel]):
    """Labels by id, and the requests of those known already."""

    requests: set[int] = field(default_factory=set)


def sort_labels(
    labels: Mapping[str, object], reader: Reader, classes: Classes, *, extra: bool, written: bool
) -> SortedLabels:
    """Which labels can be stored: those of examples that were handed out, with `extra` also of others in the pool."""
    found = SortedLabels()
    stored = reader.find([str(name) for name in labels])
    as_numbers = written and classes.reads_numbers(list(labels.values()))
    for row, (key, value) in enumerate(labels.items()):
        name = str(key)
        example = stored.get(name)
        try:
            if example is None or (example.fate == "gone" and example.role is None):
                raise InputError(f"there is no example {name!r} in this campaign")
            label = classes.take(value, written=written, as_number=as_numbers)
            if example.fate in _TAKEN_BACK:
                raise Conflict(f"the id {name!r} {_TAKEN_BACK[example.fate]} and cannot be told again")
            if example.label is not None:
                # the first label too: an old delivery told again
                # after a correction is no news, and must not undo it
                if label_text(label) not in (example.label, example.first_label):
                    raise Conflict(
                        f"the id {name!r} has the label {example.label!r}, not {label!r}: use correct to change it"
                    )
                found.known += 1
                found.requests |= {example.request} if example.request else set()
                continue
            if example.role is None and not extra:
                raise InputError(f"nobody asked for the example {name!r}: take it all the same with extra=True")
        except InputError as error:
            found.refused.append(Refused(row, name, str(error), isinstance(error, Conflict)))
        else:
            found.new.append(NewLabel(row, example, label))
    return found


def _read_ids(delivery: Delivery) -> Sequence[str | InputError | None]:
    if delivery.ids is None:
        # made under the write lock, where it is known which are free
        return [None] * len(delivery.labels)
    found: list[str | InputError | None] = []
    for value in delivery.ids:
        try:
            found.append(read_id(value))
        except InputError as error:
            found.append(error)
    return found


def _is_known(earlier: Example, label: Label, features: str | bytes) -> bool:
    """Whether this was told before; told differently it is refused."""
    if earlier.fate == "gone" and earlier.role is None:
        return False  # it left the pool before its turn, or has just left it: its row came with a label
    if earlier.fate in _TAKEN_BACK:
        raise Conflict(f"the id {earlier.id!r} {_TAKEN_BACK[earlier.fate]} and cannot be told again")
    # a row under the id of a pool example would bring its own
    # features: those of the pool are the ones that were asked for
    if earlier.label is None and (earlier.place is not None or earlier.role is not None):
        raise InputError(f"the id {earlier.id!r} belongs to the pool: tell its label by id")
    if label_text(label) not in (earlier.label, earlier.first_label):
        raise Conflict(
            f"the id {earlier.id!r} has the label {earlier.label!r}, not {label!r}: use correct to change it"
        )
    if not _same_features(earlier.features, features):
        raise Conflict(f"the id {earlier.id!r} was told before with other features: every example needs its own id")
    return True


def _same_features(one: str | bytes | None, other: str | bytes) -> bool:
    """Whether two rows are the same; 3 and 3.0 are."""
    if one == other or not (isinstance(one, str) and isinstance(other, str)):
        return one == other
    return bool(from_text(one) == from_text(other))


def _not_numbers(rows: Rows) -> dict[int, str]:
    """Rows of a table with text or missing numbers, which the learner cannot use."""
    if rows.columns["kind"] != "table":
        return {}
    from evenhand.tables.schema import NUMBERS, not_numbers

    schema = schema_of(rows.columns)
    for name in schema.features:
        if schema[name].kind not in NUMBERS:
            raise InputError(not_numbers(name, schema[name].kind))
    used = [(j, name) for j, name in enumerate(schema.stored) if name in schema.features]
    found = {}
    for row, stored in enumerate(rows.stored):
        values = from_text(stored)
        gap = next((name for j, name in used if values[j] is None), None)
        if gap is not None:
            found[row] = f"{gap} is missing, which the learner cannot use: remove or impute it"
    return found


def repeated(
    delivery: Delivery, rows: Rows, told: Sequence[Event], reader: Reader, names: Sequence[str]
) -> Event | None:
    """The earlier delivery without ids that had the same content, if there was one; `names` are the groups by number."""
    given = len(delivery.labels)
    for event in told:
        facts = TOLD.facts(event)
        if not facts["made"] or facts["given"] != given:
            continue
        # a delivery stored in part is repeated with all its rows: those refused then are refused again
        kept = [row for row in range(given) if row not in set(facts["left_out"])]
        if delivery.groups is not None and [delivery.groups[row] for row in kept] != [
            names[z] for z in ADDED.facts(event)["groups"]
        ]:
            continue
        earlier = reader.told_by(event.seq)
        if len(earlier) == len(kept) and all(
            e.fate == "erased"  # nothing is left to compare with; the other rows decide
            or (e.features, e.first_label) == (rows.stored[row], _written(delivery.labels[row], delivery))
            for e, row in zip(earlier, kept, strict=True)
        ):
            return event
    return None


def _written(value: object, delivery: Delivery) -> str | None:
    """A label's text, without knowing the classes; None for what is no label."""
    try:
        text = label_text(read_label(value))
    except InputError:
        return None
    return text.strip() if delivery.written else text


def made_ids(count: int, first: int, prefix: str, taken: Callable[[Collection[str]], Collection[str]]) -> list[str]:
    """Ids for `count` rows, each the prefix and a position; ids that are taken already are left out."""
    found: list[str] = []
    position = first
    while len(found) < count:
        names = [f"{prefix}-{position + k}" for k in range(count - len(found))]
        gone = set(taken(names))
        found += [name for name in names if name not in gone]
        position += len(names)
    return found


def digest_of(example: Example) -> str:
    """The digest of a row that its event keeps; once the salt is gone, it gives nothing of the row away."""
    # `label` is not among them: it may be corrected, and
    # then the event of the correction has its digest
    fixed = ("id", "group", "role", "request", "origin", "made", "told", "position", "first_label")
    content = example.features if isinstance(example.features, bytes) else (example.features or "").encode()
    about = as_text([getattr(example, name) for name in fixed]).encode()
    # keyed with the row's salt, which erasing deletes:
    # without it nobody can try out labels until a digest fits
    return hashlib.blake2b(about + content, digest_size=16, key=bytes.fromhex(example.salt or "")).hexdigest()


def label_digest(salt: str | None, label: str | None) -> str:
    """The digest of a label that the event of a correction keeps."""
    return hashlib.blake2b((label or "").encode(), digest_size=16, key=bytes.fromhex(salt or "")).hexdigest()


def new_salt() -> str:
    """A salt for one example."""
    return secrets.token_hex(16)


def refusal(
    refused: Sequence[Refused], rows: int, advice: str = "Correct them, or store the others with partial=True."
) -> InputError:
    """The error for rows that cannot be stored; it carries them as `refused`."""
    lines = [f"row {r.row}{f' ({r.id})' if r.id else ''}: {r.reason}" for r in refused[:_SHOWN]]
    more = [f"and {len(refused) - _SHOWN} more"] if len(refused) > _SHOWN else []
    kind = Conflict if any(row.conflict for row in refused) else InputError
    if rows == 1:
        error = kind(f"{refused[0].reason}; nothing was stored")
    else:
        head = f"{len(refused)} of {rows} rows cannot be stored, so nothing was: "
        error = kind(head + "; ".join([*lines, *more]) + f". {advice}")
    error.refused = tuple(refused)
    return error


def counted_reasons(refused: Sequence[Refused]) -> dict[str, int]:
    """How many rows were refused for each reason, without the values that reasons quote: those may be personal.

    >>> counted_reasons([Refused(0, None, "the label 'x' is not among the classes ['a', 'b']")])
    {'the label … is not among the classes …': 1}
    """
    found = Counter(_VALUES.sub("…", row.reason) for row in refused)
    return dict(found.most_common(_SHOWN))

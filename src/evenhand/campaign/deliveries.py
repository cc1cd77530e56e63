"""Deliveries: labelled rows on their way into the ledger, sorted into what is new, known, and refused."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from evenhand.campaign.features import Rows, as_rows
from evenhand.campaign.labels import Classes, Label, label_text, plain_list, read_id, read_label
from evenhand.campaign.requests import Refused
from evenhand.campaign.state import State
from evenhand.errors import InputError
from evenhand.ledger.base import Event, Example, Reader
from evenhand.ledger.text import from_text

__all__ = ["Delivery", "Sorted", "digest_of", "made_ids", "new_salt", "refusal", "repeated", "sort_out"]

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
    labels: list[Any]
    ids: list[Any] | None = None
    groups: list[str] | None = None
    written: bool = False
    problems: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def of(cls, X: Any, y: Any, ids: Any = None, groups: Any = None) -> Delivery:
        """What `tell` and `add` are given, in lists."""
        labels = plain_list(y)
        named = None if ids is None else plain_list(ids)
        of_groups = None if groups is None else [str(group) for group in plain_list(groups)]
        for what, values in (("ids", named), ("groups", of_groups)):
            if values is not None and len(values) != len(labels):
                raise InputError(f"{len(labels)} labels but {len(values)} {what}: give one for every row")
        if not labels:
            raise InputError("an empty delivery: tell at least one row, or abandon the request")
        return cls(X, labels, named, of_groups)

    def rows(self, state: State) -> Rows:
        """The features as they are stored, like those of earlier deliveries."""
        rows = self.X if isinstance(self.X, Rows) else as_rows(self.X, state.columns)
        if len(rows) != len(self.labels):
            raise InputError(f"X has {len(rows)} rows and y {len(self.labels)} labels: they must be as many")
        return rows


class New(NamedTuple):
    """A row to be stored: its number in the delivery, its id, and its label."""

    row: int
    id: str | None
    label: Label


@dataclass
class Sorted:
    """The rows of a delivery: new ones, the number known already, refused ones; and classes seen for the first time."""

    new: list[New] = field(default_factory=list)
    known: int = 0
    refused: list[Refused] = field(default_factory=list)
    classes: list[Label] = field(default_factory=list)
    kind: str | None = None


def sort_out(
    delivery: Delivery, rows: Rows, classes: Classes, reader: Reader, *, needs_numbers: bool, groups: Collection[str]
) -> Sorted:
    """Which rows can be stored. An id told before with the same label and features is known; otherwise it is refused."""
    found = Sorted()
    ids = _read_ids(delivery)
    stored = reader.find([name for name in ids if isinstance(name, str)]) if delivery.ids is not None else {}
    numbers = _not_numbers(rows) if needs_numbers else {}
    as_numbers = delivery.written and classes.reads_numbers(delivery.labels)
    seen: dict[str, tuple[Label, str | bytes]] = {}
    for row, value in enumerate(delivery.labels):
        name = ids[row]
        problem = delivery.problems.get(row) or rows.problems.get(row) or numbers.get(row)
        try:
            if isinstance(name, InputError):
                raise name
            if problem is not None:
                raise InputError(problem)
            if delivery.groups is not None and delivery.groups[row] not in groups:
                raise InputError(
                    f"unknown group {delivery.groups[row]!r}: the groups are {', '.join(map(repr, groups))}"
                )
            value = int(value) if as_numbers and isinstance(value, str) and value.strip() else value
            label = classes.take(value, written=delivery.written)
            if name is not None:
                earlier = stored.get(name)
                if earlier is not None:
                    if _is_known(earlier, label, rows.stored[row]):
                        found.known += 1
                        continue
                elif name in seen:
                    if seen[name] != (label, rows.stored[row]):
                        raise InputError(f"the id {name!r} comes twice with different content")
                    found.known += 1
                    continue
                seen[name] = label, rows.stored[row]
        except InputError as error:
            shown = name if isinstance(name, str) else None
            found.refused.append(Refused(row, shown, str(error)))
        else:
            found.new.append(New(row, name, label))
    kept = {new.label for new in found.new}
    found.classes, found.kind = [label for label in classes.new if label in kept], classes.kind
    return found


def _read_ids(delivery: Delivery) -> Sequence[str | InputError | None]:
    if delivery.ids is None:
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
    if earlier.fate is not None:
        raise InputError(f"the id {earlier.id!r} {_TAKEN_BACK[earlier.fate]} and cannot be told again")
    if earlier.label is None:
        raise InputError(f"the id {earlier.id!r} belongs to the pool: tell its label by id")
    if label_text(label) not in (earlier.label, earlier.first_label):
        raise InputError(
            f"the id {earlier.id!r} has the label {earlier.label!r}, not {label!r}: use correct to change it"
        )
    if earlier.features != features:
        raise InputError(f"the id {earlier.id!r} was told before with other features: every example needs its own id")
    return True


def _not_numbers(rows: Rows) -> dict[int, str]:
    """Rows of a frame with text or missing numbers, which the learner cannot use."""
    columns = rows.columns
    if "types" not in columns:
        return {}
    for name, kind in zip(columns["names"], columns["types"], strict=True):
        if kind not in ("number", "bool"):
            raise InputError(
                f"column {name!r} is {kind}, not a number, which the learner needs: encode it, or leave it out"
            )
    found = {}
    for row, stored in enumerate(rows.stored):
        values = from_text(stored)
        if None in values:
            found[row] = (
                f"{columns['names'][values.index(None)]} is missing, which the learner cannot use: remove or impute it"
            )
    return found


def repeated(
    delivery: Delivery, rows: Rows, told: Sequence[Event], reader: Reader, names: Sequence[str]
) -> Event | None:
    """The earlier delivery without ids that had the same content, if there was one; `names` are the groups by number."""
    for event in told:
        facts = event.facts
        if not facts.get("made") or len(facts["ids"]) != len(delivery.labels):
            continue
        if delivery.groups is not None and delivery.groups != [names[z] for z in facts["groups"]]:
            continue
        earlier = reader.told_by(event.seq)
        same = all(
            e.fate == "erased" or (e.features == stored and e.first_label == _written(value, delivery))
            for e, stored, value in zip(earlier, rows.stored, delivery.labels, strict=True)
        )
        if same and len(earlier) == len(delivery.labels):
            return event
    return None


def _written(value: Any, delivery: Delivery) -> str | None:
    """A label's text, without knowing the classes; None for what is no label."""
    try:
        text = label_text(read_label(value))
    except InputError:
        return None
    return text.strip() if delivery.written else text


def made_ids(count: int, first: int, prefix: str, taken: Callable[[Collection[str]], Collection[str]]) -> list[str]:
    """Ids of `count` rows: the prefix and their position, those that somebody took before left out."""
    found: list[str] = []
    position = first
    while len(found) < count:
        names = [f"{prefix}-{position + k}" for k in range(count - len(found))]
        gone = set(taken(names))
        found += [name for name in names if name not in gone]
        position += len(names)
    return found


def digest_of(salt: str, label: str, features: str | bytes | None) -> str:
    """What the event says of a row, without giving it away once the salt is gone."""
    content = features if isinstance(features, bytes) else (features or "").encode()
    return hashlib.blake2b(content, digest_size=16, key=bytes.fromhex(salt), person=_short(label)).hexdigest()


def new_salt() -> str:
    """A salt for one example."""
    return secrets.token_hex(16)


def _short(label: str) -> bytes:
    return hashlib.blake2b(label.encode(), digest_size=16).digest()


def refusal(
    refused: Sequence[Refused], rows: int, advice: str = "Correct them, or store the others with partial=True."
) -> InputError:
    """What to say of rows that cannot be stored."""
    lines = [f"row {r.row}{f' ({r.id})' if r.id else ''}: {r.reason}" for r in refused[:_SHOWN]]
    more = [f"and {len(refused) - _SHOWN} more"] if len(refused) > _SHOWN else []
    if rows == 1:
        return InputError(f"{refused[0].reason}; nothing was stored")
    head = f"{len(refused)} of {rows} rows cannot be stored, so nothing was: "
    return InputError(head + "; ".join([*lines, *more]) + f". {advice}")

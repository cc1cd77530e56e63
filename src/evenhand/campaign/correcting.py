"""Labels changed or taken back after they were told: corrected, withdrawn, erased.

Counts and example sets change at once, scores at the next refit. The first label stays beside the corrected one, and a
withdrawn row stays in the ledger, so that evidence on a frozen model cannot be improved afterwards. Erasing deletes
features and labels for good and leaves a row that says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from evenhand.campaign.deliveries import label_digest, refusal
from evenhand.campaign.labels import Classes, check_text, label_text, read_id
from evenhand.campaign.requests import Refused
from evenhand.campaign.state import LETTERS, State
from evenhand.errors import InputError
from evenhand.ledger.base import Example, Reader, Writer
from evenhand.notation import JsonObject

__all__ = ["Alteration", "check_reason", "correct", "erase", "leaving", "unchanged", "withdraw"]

# what was paid for can be refunded; data added for free cannot
_CHARGED = ("asked", "extra", "charged")


class Alteration(NamedTuple):
    """The result of a correction: the examples as changed, and the event's facts; no examples if nothing changes."""

    kind: str
    facts: Mapping[str, object]
    examples: Sequence[Example]

    def write(self, writer: Writer, by: str | None) -> int:
        """Store it; returns the number of examples that changed."""
        if self.examples:
            writer.append(self.kind, self.facts, actor=by)
            writer.put(self.examples)
        return len(self.examples)


def correct(
    state: State,
    reader: Reader,
    labels: Mapping[str, object],
    classes: Classes,
    reason: str | None,
    *,
    written: bool = False,
) -> Alteration:
    """Give examples other labels; those that have the label already stay as they are."""
    labels = {read_id(name): value for name, value in labels.items()}
    found, refused = _found(reader, labels)
    changed: list[Example] = []
    as_numbers = written and classes.reads_numbers(list(labels.values()))
    for row, (name, value) in enumerate(labels.items()):
        example = found.get(name)
        if example is None:
            continue
        try:
            if example.fate not in (None, "gone"):
                raise InputError(f"the id {name!r} was {example.fate} and has no label to correct")
            if example.label is None:
                raise InputError(f"the id {name!r} has no label yet: tell it first")
            text = label_text(classes.take(value, written=written, as_number=as_numbers))
        except InputError as error:
            refused.append(Refused(row, name, str(error)))
        else:
            # the first label stays: a certificate counts the worse
            # of the two, so correcting errors away gains nothing
            if text != example.label:
                changed.append(example._replace(label=text, changed=state.seq + 1))
    _refuse(refused, len(labels))
    digests = [label_digest(e.salt, e.label) for e in changed]
    return Alteration("corrected", {**_about(state, changed, reason), "digests": digests}, changed)


def unchanged(id: str, label: str) -> str:
    """What to say of a correction that changed nothing."""
    return f"{id!r} is already labelled {label.strip()!r}; nothing changed."


def withdraw(
    state: State, reader: Reader, ids: Sequence[str], reason: str | None, *, refund: bool = False
) -> Alteration:
    """Take examples back; they no longer count, and their ids cannot be told again."""
    found, refused = _found(reader, dict.fromkeys(ids))
    refused += _unlabelled(found, "withdraw")
    _refuse(refused, len(ids))
    changed = [e._replace(fate="withdrawn", changed=state.seq + 1) for e in found.values() if e.fate is None]
    facts = {**_about(state, changed, reason), "roles": "".join(LETTERS.get(e.role or "", "-") for e in changed)}
    return Alteration(
        "withdrawn", facts | {"refund": sum(e.origin in _CHARGED for e in changed) if refund else 0}, changed
    )


def erase(state: State, reader: Reader, ids: Sequence[str], reason: str | None) -> Alteration:
    """Delete features and labels for good; the id, its group and its role stay as a tombstone."""
    found, refused = _found(reader, dict.fromkeys(ids))
    _refuse(refused, len(ids))
    gone = [e for e in found.values() if e.fate != "erased"]
    roles = "".join(LETTERS.get(e.role or "", "-") if e.counts else "-" for e in gone)
    changed = [
        # the row stays without its content, because the
        # events name its id and the counts have to add up
        e._replace(
            label=None, first_label=None, features=None, salt=None, held=False, fate="erased", changed=state.seq + 1
        )
        for e in gone
    ]
    # an example that is out in a request would otherwise be waited for until its lease ends
    unlabelled = {e.id: leaving(state, e) for e in gone if e.label is None and e.fate is None}
    return Alteration("erased", {**_about(state, changed, reason), "roles": roles, "unlabelled": unlabelled}, changed)


def leaving(state: State, example: Example) -> JsonObject:
    """What an example without a label leaves: its request, or the pool."""
    return {
        "group": state.groups.index(example.group),
        "request": example.request if example.held else None,
        "in_pool": example.in_pool,
    }


def _found(reader: Reader, ids: Mapping[str, object]) -> tuple[dict[str, Example], list[Refused]]:
    if not ids:
        raise InputError("no ids given: name at least one example")
    names = [read_id(name) for name in ids]
    found = reader.find(names)
    missing = [
        Refused(row, name, f"there is no example {name!r}") for row, name in enumerate(names) if name not in found
    ]
    return {name: found[name] for name in names if name in found}, missing


def _unlabelled(found: Mapping[str, Example], verb: str) -> list[Refused]:
    rows = enumerate(found.items())
    return [
        Refused(row, n, f"the id {n!r} has no label to {verb}")
        for row, (n, e) in rows
        if e.label is None and e.fate in (None, "gone")
    ]


def _about(state: State, examples: Sequence[Example], reason: str | None) -> JsonObject:
    groups = [state.groups.index(e.group) for e in examples]
    return {"ids": [e.id for e in examples], "groups": groups, "reason": check_reason(reason)}


def check_reason(reason: str | None) -> str | None:
    """A reason that can be stored and shown, or none."""
    return None if reason is None else check_text(reason, "the reason", lines=True)


def _refuse(refused: Sequence[Refused], rows: int) -> None:
    if refused:
        raise refusal(refused, rows, advice="Correct them.")

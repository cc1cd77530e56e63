"""Labels and ids as they are told: plain values, one kind a campaign, no two classes that look alike."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evenhand.arrays import is_missing
from evenhand.errors import InputError
from evenhand.risks import is_same_class

Label = str | int | bool
_KINDS: dict[type, str] = {str: "text", int: "int", bool: "bool"}
_WORDS = {"text": "text", "int": "whole numbers", "bool": "true or false"}
_LONGEST = 500
# what a database and NumPy hold
_LARGEST = 2**63
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def plain_list(values: object) -> list[object]:
    """A sequence, an array or a column as a list of Python values."""
    if getattr(values, "ndim", 1) != 1 or hasattr(values, "columns"):
        raise InputError(f"give one value a row, not {type(values).__name__} of shape {getattr(values, 'shape', '?')}")
    if hasattr(values, "to_pylist"):
        return list(values.to_pylist())
    if hasattr(values, "tolist"):
        return list(values.tolist())
    if isinstance(values, str | bytes | Mapping | set | frozenset) or not isinstance(values, Iterable):
        raise InputError(f"give a list with one value a row, not {values!r}")
    return [value.item() if hasattr(value, "item") else value for value in values]


def check_text(text: str, what: str, *, lines: bool = False) -> str:
    """The text, if it can be stored and shown: not blank, no control characters, at most 500 characters."""
    if not isinstance(text, str):
        raise InputError(f"{what} must be text, not {text!r}")
    if not text.strip():
        raise InputError(f"{what} is blank: give it a name")
    if len(text) > _LONGEST:
        raise InputError(f"{what} has {len(text)} characters: at most {_LONGEST} are allowed")
    allowed = "\n\r\t" if lines else ""
    bad = next((c for c in text if c not in allowed and _CONTROL.match(c)), None)
    if bad is not None:
        raise InputError(f"{what} {text!r} has the character {bad!r}: leave out line ends, tabs and control characters")
    return text


def read_id(value: object) -> str:
    """An id as text.

    >>> read_id(17), read_id("007")
    ('17', '007')
    """
    value = _plain(value)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InputError(f"{value!r} is no id: ids are text or whole numbers")
    name = check_text(str(value), "the id", lines=True)
    if name != name.strip():
        raise InputError(f"the id {name!r} has blanks around it: write {name.strip()!r}")
    return name


def read_label(value: object) -> Label:
    """A label as a plain value; refuses values that cannot be labels.

    >>> read_label(1.0), read_label("yes")
    (1, 'yes')
    """
    value = _plain(value)
    if is_missing(value):
        raise InputError("no label")
    if isinstance(value, bool):
        return value
    # pandas turns a column of whole numbers into floats as soon as one of them is missing
    if isinstance(value, float):
        if not value.is_integer():  # infinities are refused too
            raise InputError(f"the label {value!r} is neither text nor a whole number")
        value = int(value)
    if isinstance(value, int):
        if not -_LARGEST <= value < _LARGEST:
            raise InputError(f"the label {value} is beyond 64 bits")
        return value
    if not isinstance(value, str):
        raise InputError(f"the label {value!r} is neither text, a whole number nor true or false")
    if not value.strip():
        raise InputError("no label")
    if value != value.strip():
        raise InputError(f"the label {value!r} has blanks around it: write {value.strip()!r}")
    return str(check_text(value, "the label"))


def _plain(value: object) -> Any:
    """A NumPy scalar as Python's own."""
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 1) == 0 else value


def written_classes(texts: Sequence[str]) -> list[Label]:
    """Classes that somebody wrote into a form or a shell: all whole numbers, all true or false, or else text.

    >>> written_classes(["0", "1"]), written_classes(["True", "false"]), written_classes(["1", "none"])
    ([0, 1], [True, False], ['1', 'none'])
    """
    words = [text.strip() for text in texts]
    if all(re.fullmatch(r"[+-]?\d{1,19}", word) for word in words):
        return [read_label(int(word)) for word in words]
    if all(word.lower() in ("true", "false") for word in words):
        return [word.lower() == "true" for word in words]
    return [read_label(word) for word in words]


def label_text(label: Label) -> str:
    """A label as the ledger keeps it."""
    return str(label).lower() if isinstance(label, bool) else str(label)


def as_label(text: str, kind: str | None) -> Label:
    """The label that `label_text` wrote."""
    return int(text) if kind == "int" else text == "true" if kind == "bool" else text


class Classes:
    """The classes of a campaign: given and fixed, or learned from the labels that come.

    >>> known = Classes(None)
    >>> known.take("yes"), known.new
    ('yes', ['yes'])
    """

    def __init__(
        self, given: Iterable[object] | None, learned: Iterable[Label] = (), positive: Label | None = None
    ) -> None:
        self.fixed, self._positive = given is not None, positive
        self.known: list[Label] = [read_label(value) for value in (given or learned)]
        self.new: list[Label] = []
        if self.fixed and len(self.known) < 2:
            raise InputError(f"classes needs at least two labels, not {self.known}: leave it out to learn them")
        kinds = {_KINDS[type(label)] for label in self.known}
        if len(kinds) > 1:
            raise InputError(f"the classes {self.known} are of different kinds: use one kind")
        if len({_bare(label) for label in self.known}) < len(self.known):
            raise InputError(f"a class is named twice, but for case and blanks: {self.known}")
        self.kind: str | None = next(iter(kinds), None)

    def take(self, value: object, *, written: bool = False, as_number: bool = False) -> Label:
        """The class a label means; `written` where it was read from a file, in which all is text."""
        label = read_label(value.strip() if written and isinstance(value, str) else value)
        kind = "int" if as_number else self.kind
        if written and isinstance(label, str) and kind not in (None, "text"):
            label = self._unwritten(label, str(kind))
        if self.kind is not None and _KINDS[type(label)] != self.kind:
            raise InputError(f"the label {label!r} is not like the classes so far, {self.shown}: use one kind")
        if label in self.known:
            return label
        if self.fixed:
            raise InputError(f"the label {label!r} is not among the classes {self.shown}")
        # "Yes" beside "yes" is a typing error far more often than a third class
        near = next((k for k in self.known if _bare(k) == _bare(label)), None)
        if near is not None:
            raise InputError(f"the label {label!r} differs from {near!r} only by case or blanks: write it alike")
        self._check_positive(label)
        self.kind = self.kind or _KINDS[type(label)]
        self.known.append(label)
        self.new.append(label)
        return label

    def _check_positive(self, label: Label) -> None:
        """Refuse a new class that is nearly the positive one: it would silently be counted among the others."""
        wanted = self._positive
        if wanted is not None and _bare(wanted) == _bare(label) and not is_same_class(label, wanted):
            raise InputError(
                f"the label {label!r} differs from the positive class {wanted!r} only by case or blanks: write it alike"
            )

    def reads_numbers(self, values: Sequence[object]) -> bool:
        """Whether labels read from a file are whole numbers: the classes are, or there are none and all look it."""
        if self.kind is not None:
            return self.kind == "int"
        found = [value for value in values if isinstance(value, str) and value.strip()]
        # decided for the whole column: "1" and "01" must
        # not be a number in one row and text in the next
        return bool(found) and all(re.fullmatch(r"[+-]?(0|[1-9]\d*)(\.\d*)?", value.strip()) for value in found)

    def _unwritten(self, text: str, kind: str) -> Label:
        """Written text as the class of another kind that it stands for."""
        if kind == "int" and re.fullmatch(r"[+-]?\d+(\.0*)?", text.strip()):
            return read_label(int(text.strip().partition(".")[0]))
        if kind == "bool" and text.strip().lower() in ("true", "false"):
            return text.strip().lower() == "true"
        named = (
            "True or False"
            if kind == "bool"
            else f"{_WORDS[kind]}, such as {self.shown}"
            if self.known
            else _WORDS[kind]
        )
        raise InputError(f"the label {text!r} is not like the classes so far, which are {named}")

    @property
    def shown(self) -> str:
        """The classes for a message, the first ten."""
        rest = f" and {len(self.known) - 10} more" if len(self.known) > 10 else ""
        return ", ".join(map(repr, sorted(self.known, key=str)[:10])) + rest


def _bare(label: Label) -> str:
    return re.sub(r"\s+", "", str(label)).casefold()

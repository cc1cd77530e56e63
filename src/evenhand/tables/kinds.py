"""What a column holds, told from its values, and the values read as that kind.

Text is looked at as a file has it, whoever read it: a frame whose cells are text is told like its CSV file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenhand.tables.arrow import is_text, undictionary
from evenhand.tables.writing import time_text

__all__ = [
    "LARGEST",
    "MISSING_WORDS",
    "Kind",
    "Values",
    "bad_rows",
    "as_text",
    "blank",
    "cleaned",
    "decimal_mark",
    "has_numbers",
    "kind_of",
    "look",
    "read_as",
]

Kind = Literal["number", "yes/no", "date", "category", "text", "image", "vector", "other"]
"""`other` is what no learner can use, such as nested values."""

MISSING_WORDS = ("na", "n/a", "#n/a", "nan", "null", "none", "?")
"""What a cell among numbers, dates or yes and no may hold to say that its value is missing, in any case."""
LARGEST = 1e100
"""Numbers beyond this overflow in any model's arithmetic: squares of it are still finite, sums of squares too."""
MOST_SEEN = 100_000
"""Different values of a column that are kept while it is looked at."""
MOSTLY = 0.9
"""A column with this share of numbers has slips in it ("n/a", "12kg"); with fewer it is text."""
_YES_NO = ({"true", "false"}, {"yes", "no"})
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_THOUSANDS = r"^[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?$"
_LEADING_ZERO = r"^[+-]?0\d"
_DECORATED = r"^[^\w\s]?\s?[+-]?[\d.,]*\d\s?[^\w\s]?$"
_DATE = r"^(\d{4}[-./]\d{1,2}[-./]\d{1,2}|\d{1,2}[-./]\d{1,2}[-./]\d{2,4})\b"
_SEVERAL_WORDS = r"\S\s+\S"
_PROBE = 25
_WAYS = {"number": ("number",), "date": ("date", "zone"), "yes/no": ("yes/no",)}
_LIKELY = {"number": r"\d|(?i:inf)", "comma": r"\d|(?i:inf)", "date": r"^\d{4}-", "zone": r"^\d{4}-", "yes/no": ""}
"""What a text must have to be tried in a way at all."""
_NOTHING = pa.scalar(None, pa.string())


@dataclass
class Values:
    """What is known of a column after looking at its values.

    Attributes:
        rows: how many there are.
        missing: how many of them are empty.
        kind: what the values are.
        distinct: how many different texts were seen, at most `MOST_SEEN`; of columns of text alone.
        odd: some texts that are no numbers, where most are.
        note: what its owner should know.
        decimal: the decimal mark of its numbers, where it is not a point.
        counts_up: whether it only numbers the rows.
        texts: its different texts.
    """

    rows: int = 0
    missing: int = 0
    kind: Kind = "category"
    distinct: int = 0
    odd: tuple[str, ...] = ()
    note: str = ""
    decimal: str | None = None
    counts_up: bool = False
    texts: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))


def look(
    column: Iterator[pa.Array], kind: pa.DataType, missing: Sequence[str] = (), decimal: str | None = None
) -> Values:
    """What a column holds; `missing` are words for a missing value, `decimal` the mark its owner named."""
    if not is_text(kind):
        return _typed(column, kind)
    # a category by its owner's word stays one, whatever its values look like
    found, fits = Values(), set[str]() if pa.types.is_dictionary(kind) else {"number", "comma", "date", "zone"}
    whole, first = True, True
    for chunk in column:
        texts = blank(pc.utf8_trim_whitespace(undictionary(chunk)), missing)
        found.rows, found.missing = found.rows + len(texts), found.missing + texts.null_count
        if found.distinct < MOST_SEEN:
            some = pc.drop_null(texts).slice(0, MOST_SEEN) if fits else pc.drop_null(texts)
            found.texts = pc.unique(pa.concat_arrays([found.texts, pc.unique(some)])).slice(0, MOST_SEEN)
            found.distinct = len(found.texts)
        there = blank(texts, _words(texts)) if fits else texts
        fits = _fitting(there, fits)
        whole = whole and "number" in fits and _all(there, r"^\d+$")
        first = False
    if first or found.missing == found.rows:
        found.kind, found.note = "other", "no values at all"
        return found
    _settle(found, fits, whole, decimal)
    return found


def _fitting(texts: pa.Array, ways: set[str]) -> set[str]:
    """Those of these ways in which all texts can be read."""
    if texts.null_count == len(texts):
        return ways
    if "number" in ways and _cast(texts, "number") is not None:
        # what is a number is no date, and has no comma; whole numbers may stand among others that have one
        return ways - {"date", "zone"} - ({"comma"} if pc.any(pc.match_substring(texts, ".")).as_py() else set())
    return {way for way in ways - {"number"} if _cast(texts, way) is not None}


def _settle(found: Values, fits: set[str], whole: bool, decimal: str | None) -> None:
    """Decide what a column of texts is."""
    words = pc.drop_null(blank(found.texts, _words(found.texts)))
    if not len(words):  # nothing but such words: then they are values
        return
    if whole and "number" in fits and _some(words, _LEADING_ZERO):
        found.note = "numbers that begin with 0 are taken as names"
    elif "number" in fits and not (decimal == "," and _are_thousands(words, ".")):
        found.kind = "number"
        found.counts_up = whole and not found.missing
    elif "comma" in fits and decimal != "." and (decimal == "," or not _are_thousands(words, ",")):
        found.kind, found.decimal = "number", ","
    elif fits & {"date", "zone"}:
        found.kind = "date"
    elif set(pc.unique(pc.utf8_lower(words)).to_pylist()) in _YES_NO:
        found.kind = "yes/no"
    else:
        _describe_texts(found, words)


def _are_thousands(texts: pa.Array, mark: str) -> bool:
    """Whether all numbers with this mark may be whole ones with separators of thousands, such as 1,000."""
    marked = pc.utf8_trim_whitespace(pc.drop_null(texts.filter(pc.match_substring(texts, mark))))
    return len(marked) > 0 and _all(pc.replace_substring(marked, mark, ","), _THOUSANDS)


def _describe_texts(found: Values, words: pa.Array) -> None:
    plain = pc.match_substring_regex(words, _NUMBER)
    odd = words.filter(pc.invert(plain))
    if 0 < len(odd) <= (1 - MOSTLY) * len(words):
        found.odd = tuple(odd.slice(0, 3).to_pylist())
    several = pc.mean(pc.cast(pc.match_substring_regex(found.texts, _SEVERAL_WORDS), pa.float64())).as_py()
    if _share(words, _DATE) >= MOSTLY:
        found.note = "dates that are not written like 2026-11-30 are taken as names"
    elif _all(words, _DECORATED) and not found.odd:
        found.note = "numbers with a sign or separators in them are taken as names; say that it is a number (numbers=, --number) to read it as one"
    elif several > 0.5 and found.distinct > max(20, 0.5 * (found.rows - found.missing)):
        found.kind = "text"


def _typed(column: Iterator[pa.Array], kind: pa.DataType) -> Values:
    is_ = pa.types
    found, ups, last = Values(), pa.types.is_signed_integer(kind), -1
    for chunk in column:
        found.rows += len(chunk)
        found.missing += int(pc.sum(pc.is_null(chunk, nan_is_null=is_.is_floating(kind))).as_py() or 0)
        if ups and len(chunk):
            numbers = chunk.fill_null(-2).to_numpy(zero_copy_only=False)
            ups = bool(numbers[0] == last + 1 or (last < 0 and numbers[0] == 1)) and bool((np.diff(numbers) == 1).all())
            last = int(numbers[-1])
    found.counts_up, found.kind = ups, kind_of(kind)
    if found.kind == "other":
        found.note = f"{kind}, which no learner can use"
    if found.missing == found.rows:
        found.kind, found.note = "other", "no values at all"
    return found


def has_numbers(values: Values) -> bool:
    """Whether some of a column's texts are numbers."""
    return _some(values.texts, _NUMBER)


def kind_of(kind: pa.DataType) -> Kind:
    """What a column holds by its Arrow type alone.

    >>> kind_of(pa.int8()), kind_of(pa.string()), kind_of(pa.list_(pa.string()))
    ('number', 'category', 'other')
    """
    is_ = pa.types
    if is_text(kind) or is_.is_null(kind):
        return "category"
    if is_.is_boolean(kind):
        return "yes/no"
    if is_.is_integer(kind) or is_.is_floating(kind) or is_.is_duration(kind):
        return "number"
    if is_.is_timestamp(kind):
        return "date"
    if is_.is_binary(kind):
        return "image"
    listed = is_.is_list(kind) or is_.is_fixed_size_list(kind) or is_.is_large_list(kind)
    return "vector" if listed and is_.is_floating(kind.value_type) else "other"


# -------------------------------------------------------------------- reading


def blank(texts: pa.Array, missing: Sequence[str] = ()) -> pa.Array:
    """Texts in which empty ones, and those of `missing`, are missing."""
    empty = pc.is_in(texts, value_set=pa.array(["", *missing]))
    return pc.if_else(empty, _NOTHING, texts) if pc.any(empty).as_py() else texts


def cleaned(column: Any, decimal: str | None = None) -> pa.Array:
    """Texts such as `$1,000.50` or `12 %` without their signs and separators of thousands.

    >>> cleaned(pa.array(["$1,000.50", "12 %"])).to_pylist()
    ['1000.50', '12']
    """
    texts = undictionary(_one(column))
    # brackets stay, so that (1,000) is refused: it means a negative number
    bare = pc.replace_substring_regex(texts, r"[^\pL\pN.,+()-]", "")
    return pc.replace_substring(bare, "." if decimal == "," else ",", "")


def _one(column: Any) -> pa.Array:
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    # combine_chunks gives chunks again where the text is too long for one array
    return pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column


def read_as(column: Any, kind: Kind, missing: Sequence[str] = (), decimal: str | None = None) -> pa.Array:
    """The values of a column as its kind; what is none of it is missing, and `bad_rows` finds it.

    Numbers are float64 or int64, dates are times in UTC, categories and texts are as they are written.
    """
    column = _one(column)
    if is_text(column.type):
        texts = undictionary(column)
        return _of_text(texts, kind, missing, decimal)
    if kind in ("category", "text"):
        return _of_text(as_text(column), kind, missing, decimal)
    found = _of_typed(column, kind)
    words = [number for word in missing if (number := _number(word)) is not None] if kind == "number" else []
    return pc.if_else(pc.is_in(found.cast(pa.float64()), value_set=pa.array(words)), None, found) if words else found


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def _of_text(texts: pa.Array, kind: Kind, missing: Sequence[str], decimal: str | None) -> pa.Array:
    if kind in ("category", "text"):
        # only a cell without anything is missing: `NA` may be a country
        gaps = pc.is_in(pc.utf8_trim_whitespace(texts), value_set=pa.array(["", *missing]))
        return pc.if_else(gaps, _NOTHING, texts)
    there = blank(pc.utf8_trim_whitespace(texts), missing)
    there = blank(there, _words(there))
    ways = _WAYS[kind]
    if kind == "number" and (decimal or decimal_mark([there])) == ",":
        ways = ("comma",)
    for way in ways:
        if (found := _cast(there, way)) is not None:
            return found
    # cell by cell: what one cell says does not depend on the others
    return pc.coalesce(*(_cast(pc.if_else(_good(there, way), there, _NOTHING), way) for way in ways))


def decimal_mark(chunks: Iterable[pa.Array], said: str | None = None) -> str:
    """The decimal mark of numbers that are written as text, in all rows of a column.

    `said` is what is known of it: it decides whether 1,000 is a thousand, which the texts alone do not tell.

    >>> decimal_mark([pa.array(["1,5", "2"])]), decimal_mark([pa.array(["1,000"])]), decimal_mark([pa.array(["1,000"])], ",")
    (',', '.', ',')
    """
    commas, points = pa.array([], pa.string()), pa.array([], pa.string())
    for chunk in chunks:
        texts = undictionary(_one(chunk))
        with_comma = pc.match_substring(texts, ",")
        if said == "," or len(commas) or pc.any(with_comma).as_py():
            commas = pc.unique(pa.concat_arrays([commas, texts.filter(with_comma)]))
            points = pc.unique(pa.concat_arrays([points, texts.filter(pc.match_substring(texts, "."))]))
    if not len(commas):
        return "," if said == "," and len(points) and _are_thousands(points, ".") else "."
    if len(points) or said is not None:
        return said or "."
    return "." if _are_thousands(commas, ",") else ","


def _of_typed(column: pa.Array, kind: Kind) -> pa.Array:
    is_ = pa.types
    if kind == "number":
        if is_.is_integer(column.type):
            return column.cast(pa.int64()) if column.type != pa.uint64() else column.cast(pa.float64(), safe=False)
        if is_.is_floating(column.type):
            return pc.if_else(pc.is_nan(column), None, column)
        if is_.is_duration(column.type):  # in days, like dates
            return pc.divide(column.cast(pa.int64()).cast(pa.float64()), 86_400_000_000.0)
    if kind == "date" and is_.is_timestamp(column.type):
        return column
    if kind == "yes/no" and is_.is_boolean(column.type):
        return column
    if is_.is_null(column.type):
        return column.cast(
            {"number": pa.float64(), "date": pa.timestamp("us"), "yes/no": pa.bool_()}.get(kind, column.type)
        )
    if kind in ("image", "vector"):
        return column
    return _of_text(as_text(column), kind, (), None)


def as_text(column: pa.Array) -> pa.Array:
    """Values as text; whole numbers without `.0`, truth values as Python writes them."""
    is_ = pa.types
    if is_.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
        whole = column.cast(pa.int64(), safe=False)
        exact = pc.and_(pc.equal(whole.cast(pa.float64()), column), pc.less(pc.abs(column), 2.0**53))
        rest = pa.array([None if value is None else repr(value) for value in column.to_pylist()], pa.string())
        return pc.if_else(exact, whole.cast(pa.string()), rest)
    if is_.is_boolean(column.type):
        return pc.if_else(column, "True", "False")
    if is_.is_timestamp(column.type):
        return pa.array([None if value is None else time_text(value) for value in column.to_pylist()], pa.string())
    if is_.is_null(column.type) or is_.is_integer(column.type):
        return column.cast(pa.string())
    return pa.array([None if value is None else str(value) for value in column.to_pylist()], pa.string())


def bad_rows(column: Any, read: pa.Array, kind: Kind, missing: Sequence[str] = ()) -> dict[int, str]:
    """Rows whose value cannot be stored, and why: no value of the kind, too large a number, half a character."""
    column = _one(column)
    if kind == "number":
        large = pc.fill_null(pc.greater(pc.abs(read), LARGEST), False) if pa.types.is_floating(read.type) else None
        if large is not None and pc.any(large).as_py():
            rows = np.flatnonzero(large.to_numpy(zero_copy_only=False)).tolist()
            return {
                r: f"{read[r].as_py():g} is beyond ±{LARGEST:g}, the largest number that can be learned from"
                for r in rows
            }
    if not is_text(column.type):
        return {}
    texts = undictionary(column)
    if kind in ("category", "text"):
        nul = pc.fill_null(pc.match_substring(texts, "\0"), False)
        rows = np.flatnonzero(nul.to_numpy(zero_copy_only=False)).tolist() if pc.any(nul).as_py() else []
        return dict.fromkeys(rows, "it has a NUL character, which cannot be stored")
    there = blank(pc.utf8_trim_whitespace(texts), missing)
    there = blank(there, _words(there))
    if there.null_count == read.null_count:
        return {}
    lost = pc.and_(pc.is_valid(there), pc.is_null(read))
    words = {"number": "a number", "date": "a date like 2026-11-30", "yes/no": "yes or no"}
    return {
        row: f"{texts[row].as_py()!r} is not {words[kind]}"
        for row in np.flatnonzero(lost.to_numpy(zero_copy_only=False)).tolist()
    }


def _words(texts: pa.Array) -> list[str]:
    """The words for a missing value among these texts, as they are written there."""
    short = pc.unique(texts.filter(pc.less_equal(pc.utf8_length(pc.fill_null(texts, "")), 4))).to_pylist()
    return [text for text in short if text and text.lower() in MISSING_WORDS]


def _cast(texts: pa.Array, way: str) -> pa.Array | None:
    """All texts read in one way, or None if one of them cannot be."""
    # Arrow is slow to find out that nothing can be read: some of them tell
    if len(texts) > 4 * _PROBE and _cast(_probe(texts), way) is None:
        return None
    if way == "yes/no":
        known = pc.is_in(pc.utf8_lower(texts), value_set=pa.array(["true", "false", "yes", "no"]))
        if not pc.all(pc.or_(known, pc.is_null(texts))).as_py():
            return None
        said = pc.is_in(pc.utf8_lower(texts), value_set=pa.array(["true", "yes"]))
        return pc.if_else(pc.is_null(texts), pa.scalar(None, pa.bool_()), said)
    if way == "comma":
        if pc.any(pc.match_substring(texts, ".")).as_py():
            return None
        texts = pc.replace_substring(texts, ",", ".", max_replacements=1)
    try:
        if way in ("date", "zone"):
            kind = pa.timestamp("us", "UTC" if way == "zone" else None)
            return texts.cast(kind).cast(pa.timestamp("us"))
        numbers = texts.cast(pa.float64())
    except pa.ArrowInvalid:
        return None
    return _whole(texts, numbers)


def _probe(texts: pa.Array) -> pa.Array:
    """Some texts that are there, spread over all of them."""
    return pc.drop_null(texts.take(pa.array(np.linspace(0, len(texts) - 1, 4 * _PROBE).astype(np.int64)))).slice(
        0, _PROBE
    )


def _whole(texts: pa.Array, numbers: pa.Array) -> pa.Array:
    """Whole numbers as such: above 2**53 a float would change them."""
    if len(texts) > 4 * _PROBE and pa.types.is_floating(_whole(probe := _probe(texts), probe.cast(pa.float64())).type):
        return numbers
    try:
        return texts.cast(pa.int64())
    except pa.ArrowInvalid:
        return numbers


def _good(texts: pa.Array, way: str) -> pa.Array:
    """Which texts can be read in a way."""
    unique = pc.unique(pc.drop_null(texts))
    likely = unique.filter(pc.match_substring_regex(unique, _LIKELY[way]))
    # all at once where that is possible, because texts that are tried one by one take their time
    good = (
        likely
        if _cast(likely, way) is not None
        else [t for t in likely.to_pylist() if _cast(pa.array([t]), way) is not None]
    )
    return pc.is_in(texts, value_set=pa.array(good, pa.string()))


def _all(texts: pa.Array, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(texts, pattern)).as_py())


def _some(texts: pa.Array, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(texts, pattern)).as_py())


def _share(texts: pa.Array, pattern: str) -> float:
    return float(pc.mean(pc.cast(pc.match_substring_regex(texts, pattern), pa.float64())).as_py() or 0.0)

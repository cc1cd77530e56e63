"""Figures in sentences are those of the rendered blocks of their section; claims name commands that exist."""

import importlib
import math
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs/results"
MADE = {"api.md", "api-parts.md", "cli.md", "server-api.md"}
"""Pages that are made of the code as a whole."""
PAGES = [ROOT / "README.md", *(page for page in sorted((ROOT / "docs").glob("*.md")) if page.name not in MADE)]

BLOCK = re.compile(r"<!-- begin [\w-]+ -->(.*?)<!-- end -->", re.DOTALL)
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
COMMENT = re.compile(r"(?:^|\s)# (.*)")
QUOTED = re.compile(r"`(?:[^`\n]|\n(?!\n))+`")
TARGET = re.compile(r"\]\([^)]*\)|\{#[^}]*\}")

SECONDS = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "millisecond": 1e-3, "s": 1, "second": 1}
SECONDS |= {"min": 60, "minute": 60, "hour": 3600, "day": 86400}
BYTES = {"byte": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
UNITS = {
    **{unit: ("time", worth) for unit, worth in SECONDS.items()},
    **{unit: ("size", worth) for unit, worth in BYTES.items()},
    **dict.fromkeys(("%", "percent", "per cent", "percentage point", "point", "pp"), ("share", 1)),
    **dict.fromkeys(("×", "x", "times", "fold"), ("ratio", 1)),
    **dict.fromkeys(("pass", "passes", "fit"), ("work", 1)),
}
"""What a unit measures, and how many seconds or bytes it is."""
PLAIN = sorted((unit for unit in UNITS if unit not in ("%", "×", "fold")), key=len, reverse=True)
UNIT = rf"%|×|fold\b|(?:{'|'.join(PLAIN)})s?\b"

SMALL = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
WORTH = {word: float(worth) for worth, word in enumerate(SMALL.split(), 1)}
WORTH |= {word: 10.0 * tens for tens, word in enumerate(TENS.split(), 2)}
WORTH |= {f"{ten}-{one}": WORTH[ten] + WORTH[one] for ten in TENS.split() for one in SMALL.split()[:9]}
LARGE = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9}
PARTS = {"third": 1 / 3, "quarter": 1 / 4, "fifth": 1 / 5, "tenth": 1 / 10}
LOOSE = {
    "half": (0.5, 0.05),
    "halved": (0.5, 0.05),
    "most": (50, 5),
    "twice": (2, 0.2),
    "thrice": (3, 0.3),
    "single": (1, 0.5),
}
WORD = "|".join(sorted(WORTH, key=len, reverse=True))
SIZE = "|".join(LARGE)
NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d*\.\d+|\d+"
# of a range, both ends have the unit that follows the second
RANGE = rf"(?: (?:to|or|and) |–)(?:{NUMBER}|{WORD})"
# the number that another is counted of
OF = rf" (?:out of|of|in)(?: the| our| these| all)? ({NUMBER}|{WORD})(?!\w)"
COMPARED = r" as (?:fast|slow|long|many|much|large|small|often|wide|good|bad)\b| the (?:time|labels|speed|memory|size|error|gain)\b"
# not "in two halves" or "double precision"
CHANGED = r"(?:ed|ing)\b|es?(?= (?:it|the|its|their|every|each)\b)"
FIGURE = re.compile(
    rf"(?<![\w.,/^])(?<!\w-)(?<![A-Za-z]–)(?<!\^−)(?P<digits>\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?|\d*\.\d+|\d{{5,}}"
    rf"|\d+(?=(?:{RANGE})?[ -]?(?:{UNIT})|{OF}| (?:{SIZE})\b))(?![\d^])(?!(?!(?:{UNIT}))\w)(?: (?P<large>(?:{SIZE})(?: (?:{SIZE}))*)\b)?"
    rf"|\b(?P<word>{WORD}|an?(?= (?:{SIZE})\b))(?P<more> and a half)?"
    rf"(?: (?P<size>(?:{SIZE})(?: (?:{SIZE}))*)\b|(?=(?:{RANGE})?[ -](?:{UNIT})|fold\b|{OF}))"
    rf"|\b(?:(?<=about )|(?<=under )|(?<=within )|(?<=than )|(?<=almost )|(?<=nearly ))(?P<single>an?)(?= (?:second|minute|hour|day)\b)"
    rf"|\b(?P<half>half an?)\b(?= (?:{UNIT}))"
    rf"|\b(?P<twice>twice\b(?={COMPARED})|doubl(?:{CHANGED}))|\b(?P<thrice>tripl(?:{CHANGED}))"
    rf"|\b(?P<halved>half\b(?={COMPARED})|halv(?:{CHANGED}))"
    r"|\b(?P<part>(?:an?|one|two|three|four) (?:third|quarter|fifth|tenth)s?)\b(?= of )|\b(?P<most>half)(?= of the (?:runs|time|cases)\b)",
    re.IGNORECASE,
)

RULES = {
    "the level of an interval or a certificate": r"\b95 %(?! of)|\b5 % (?:unless|would be|divided)|δ(?:/2)? = [.\d]+|1 − 0\.05",
    "the value of a setting": r"\b(?:c0|ε) = 0\.1\b|\bξ = 0\.5\b|\bby default 0\.0?5\b|\bAdam (?:with|at) rate 0\.001\b",
    "a share that is held out": r"\b30 % (?:out )?of (?:every|each)",
    "the paper's": r"\bpaper(?:'s| uses?) (?:0\.1\b|\.\d{3}\b)",
    "a version, or a number of a section": r"\b(?:Python|NumPy|CC BY|Section) [.\d]+(?:(?:,| to| and) [.\d]+)*",
    "an example of a claim": r"above 0\.12?\b",
    "how something is done": r"\bone pass\b",
    "a class of Adult": r"\babove 50 thousand\b",
}
"""What is no measurement, wherever it stands: each with the words that tell it."""

# how a block was made: commands, dates, versions, processors, commits; and the level of its intervals
MADE_WITH = re.compile(
    r"\d{4}-\d\d-\d\d(?: \d\d:\d\d(?: UTC)?)?|\b[a-z][a-z-]+ \d+(?:\.\d+){2,}|\b(?:python|postgresql) [.\d]+"
    r"|\b(?:\d+|two) (?:shared )?cores?\b|\(family \d+, model \d+\)|\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}\b|\b95 %(?! of)"
)
# typed into the code of an experiment: what the paper says, and notes on it
PAPER = re.compile(r"^The paper: .*", re.MULTILINE)
OPTION = re.compile(r"--([a-z]+) (\d+)")
COUNTED = re.compile(
    r"\b(label|image|row|trial|event|example|round|group|run|task|server|collector|client|request|delivery|deliveries|campaign|cell|source)s?\b"
)
FIRST = re.compile(rf"(?:\*\*)? {COUNTED.pattern}")

EXCEPTIONS = {
    "claims.md": {
        "a hundred thousand events": "benchmarks/page.py EVENTS, GROUPS, COLLECTORS, DAYS = 100_000,",
        "ten million rows": "benchmarks/big_table.py default=10_000_000",
    },
    "certificates.md": {
        "true error is .15": 'benchmarks/corrections.py TRUE = {"u": 0.15, "v": 0.1}',
        "How many of 2,000 runs": "tests/claims/test_sequences.py misses(p, 2000, 5000,",
        "hides seven in ten": "benchmarks/proofs.py (rng.random(len(y)) < 0.7)",
        "the labels have doubled": "src/evenhand/claims/stopping.py seen.labels < 2 * seen.frozen_labels",
    },
    "discussion.md": {"goes on to 20,000": "src/evenhand/experiments/over_exploration.py 20,000 labels"},
    "durability.md": {
        "50 collectors, 5,000 requests": "tests/campaign/test_crowd.py processes=50, requests=5000",
        "a random 10 to 100 milliseconds": "src/evenhand/campaign/store.py random.uniform(0.01, 0.1)",
        "up to two minutes": "src/evenhand/ledger/connection.py BUSY_SECONDS = 120",
    },
    "label-studio.md": {
        "every 30 seconds": "src/evenhand/cli/sync.py 30s by default",
        "five minutes at most": "src/evenhand/connectors/running.py max(seconds, 300.0)",
    },
    "live.md": {
        "30 seconds": "src/evenhand/campaign/training.py LEASE_SECONDS = 30",
        "one day by default": 'src/evenhand/campaign/campaign.py lease: str | float | None = "1d"',
    },
    "performance.md": {"the second 2,000 rounds": "benchmarks/speed/growth.py _round(2000, d)"},
    "reproduction.md": {"approach 80.5 %": "src/evenhand/experiments/adult.py All rules approach 80.5 %"},
    "theory.md": {"optimistic:bound=vc,d=3,C=1.0": "docs/theory.md eh.VCBound(d=3), C=1.0"},
    "page.md": {
        "last seven days": "src/evenhand/campaign/viewing.py _PACE_DAYS = 7",
        "may have 5 MB": "src/evenhand/server/pages/uploads.py settings.max_body * 2 // 3",
        "pools 256 MB": "src/evenhand/server/settings.py max_upload: int = 256",
    },
    "server.md": {
        "64 KiB": "src/evenhand/server/incoming.py SMALL = 2**16",
        "90 days by default": 'src/evenhand/cli/token.py = "90d"',
    },
    "tables.md": {
        "a tenth of the budget": "src/evenhand/curation/starting.py plan.budget // 10",
        "at most 10,000 rows a group": "src/evenhand/sources/table/stream.py MOST_TEST_ROWS = 10_000",
        "more than 1,000 different values": "src/evenhand/sources/table/pool.py max_categories: int = 1000",
        "more than 2,000,000 rows": "src/evenhand/sources/table/table.py LARGE = 2_000_000",
    },
}
"""By page, settings of the code that no rule tells: the words of the page, the file, and what stands in it."""

GLYPHS = {"½": 0.5, "¼": 0.25, "¾": 0.75, "⅓": 1 / 3, "⅔": 2 / 3}
SPELLINGS = (
    # a figure alone between backticks: `+13.9 points`
    (rf"`((?i:[+−-]?(?:{NUMBER}|[{''.join(GLYPHS)}])(?:–(?:{NUMBER}))?(?:[km]|[ -]?(?:{UNIT}))?))`", r"\1"),
    # the text of a picture: ![up to 13.9 points](figure.png)
    (r"!\[([^\]]*)\]\([^)]*\)", r"\1"),
    # 4.5k labels, 2M rows
    (rf"(?<![\w.,])({NUMBER})[kK](?![\w/])", r"\1 thousand"),
    (rf"(?<![\w.,])({NUMBER})M(?![\w/])", r"\1 million"),
    # 10-20 %
    (rf"(?<![\w.,-])({NUMBER})-(?=(?:{NUMBER})[ -]?(?:{UNIT}))", r"\1–"),
    # *twice* the error
    (r"(?<=\w)\*+|\*+(?=\w)", ""),
    # two-thirds of them
    (r"(?<=[a-z])-(?=(?:third|quarter|fifth|tenth)s? of )", " "),
    # ½ point, 3½ points
    (
        rf"(?<![\w.,^−])(\d*)([{''.join(GLYPHS)}])(?=[ -]?(?:{UNIT}))",
        lambda found: f"{int(found[1] or 0) + GLYPHS[found[2]]:.3g}",
    ),
    # 97/100 trials, 1/3 of the labels, ½ of them
    (r"(?<![\w.,^/−])(\d+)/(\d+)(?= (?:trials|runs|campaigns|data sets)\b)", r"\1 of \2"),
    (
        r"(?<![\w.,^/−])(\d+)/(\d+)(?= of (?:the|all|these)\b)",
        lambda found: f"{100 * int(found[1]) / int(found[2]):.0f} %",
    ),
    (
        rf"(?<![\w.,^−])([{''.join(GLYPHS)}])(?= of (?:the|all|these)\b)",
        lambda found: f"{100 * GLYPHS[found[1]]:.0f} %",
    ),
)
"""Ways to write a figure, each with the way that `FIGURE` reads."""


class Known(NamedTuple):
    """A number of a block: what it measures, if that is said, in seconds or bytes; what it counts, if that is said."""

    value: float
    kind: str | None = None
    noun: str | None = None


def sentences(text: str) -> str:
    """A page without its blocks, code and targets of links; texts of pictures, comments in code and figures alone between backticks stay."""
    text = FENCED.sub(lambda found: "\n".join(COMMENT.findall(found[0])), BLOCK.sub(" ", text))
    for written, read in SPELLINGS:
        text = re.sub(written, read, text)
    return TARGET.sub(" ", QUOTED.sub(" ", text))


def within(found: re.Match[str], spans: list[tuple[int, int]]) -> bool:
    """Whether a figure lies inside one of these."""
    return any(first <= found.start() and found.end() <= last for first, last in spans)


def figures(text: str) -> list[re.Match[str]]:
    """The figures in the sentences of a page that no rule excuses."""
    text = sentences(text)
    excused = [found.span() for rule in RULES.values() for found in re.finditer(rule, text)]
    return [found for found in FIGURE.finditer(text) if not within(found, excused)]


def unit(text: str) -> tuple[str, float] | None:
    """The unit that a text begins with."""
    found = re.match(rf"(?:\*\*)?(?:{RANGE})?[ -]?({UNIT})", text, re.IGNORECASE)
    if not found:
        return None
    name = found[1].lower()
    return UNITS.get(name) or UNITS[name.removesuffix("s")]


def noun(text: str, *, first: bool = False) -> str | None:
    """What a text counts, as one word: anywhere in it, or as its first word."""
    found = FIRST.match(text) if first else COUNTED.search(text)
    return found[1].replace("deliveries", "delivery") if found else None


def of_column(header: str) -> tuple[str | None, float, str | None]:
    """What the numbers below a header measure or count, where they do not say it themselves."""
    found = re.search(rf"(?<!per )(?<!a )\b(?:{UNIT})|%|×", header, re.IGNORECASE)
    if found:
        return *unit(found[0]), None
    return ("ratio" if "ratio" in header else None), 1, noun(header)


def numbers(text: str) -> list[Known]:
    """The numbers in the rendered blocks of a page, not how these were made: another test holds them against the JSON files."""
    known = []
    for block in BLOCK.findall(text):
        # an option says how many there were of something
        options = OPTION.findall(" ".join(QUOTED.findall(block)))
        known += [Known(float(count), "count", noun(name)) for name, count in options if noun(name)]
        columns = []
        for line in MADE_WITH.sub(" ", QUOTED.sub(" ", PAPER.sub(" ", block))).splitlines():
            cells = line.split("|") if line.startswith("|") else [line]
            columns = columns or cells if line.startswith("|") else []
            for place, cell in enumerate(cells):
                known += in_cell(cell, columns[place] if place < len(columns) else "")
    return known


def in_cell(cell: str, header: str) -> Iterator[Known]:
    """The numbers of a cell of a table, or of a line of text."""
    below, worth, counted = of_column(header) if cell != header else (None, 1, None)
    for found in re.finditer(NUMBER, cell):
        value, after = float(found[0].replace(",", "")), cell[found.end() :]
        own = unit(after)
        # a whole number is no share unless it has a sign or a unit
        whole = found[0].replace(",", "").isdigit() and cell[found.start() - 1 : found.start()] not in ("+", "−")
        if own:
            yield Known(value * own[1], own[0])
        elif whole and not below:
            yield Known(value, "count", noun(after, first=True) or counted)
        else:
            yield Known(value * worth, below)


def value(found: re.Match[str]) -> tuple[float, float]:
    """A figure, and how far from it a number may be that rounds to it."""
    large = math.prod(LARGE[word] for word in (found["large"] or found["size"] or "").lower().split())
    if digits := found["digits"]:
        return float(digits.replace(",", "")) * large, 0.5 * 10 ** -len(digits.partition(".")[2]) * large
    if found["word"]:
        count = (WORTH.get(found["word"].lower(), 1) + (0.5 if found["more"] else 0)) * large
        return count, count / 20 if found["more"] or found["size"] else 0.5
    if found["part"]:
        count, part = found["part"].lower().split()
        return 100 * WORTH.get(count, 1) * PARTS[part.removesuffix("s")], 3
    return next(loose for name, loose in LOOSE.items() if found[name])


def kind_of(found: re.Match[str]) -> tuple[str | None, float]:
    """What a figure measures, and its unit in seconds or bytes."""
    if found["twice"] or found["halved"]:
        return "ratio", 1
    if found["part"] or found["most"]:
        return "part", 1
    return unit(found.string[found.end() :]) or (None, 1)


def scales(kind: str | None, counted: str | None, number: Known) -> tuple[float, ...]:
    """By what a number may be multiplied to be the figure, if it can be it at all."""
    if kind in ("time", "size", "ratio", "work"):
        return (1,) if number.kind == kind else ()
    if kind == "part":
        return (1,) if number.kind == "share" else (100,) if number.kind is None else ()
    if kind == "share":
        return (1, 100) if number.kind in (None, "share") else ()
    if number.kind in ("time", "size"):
        return ()
    return () if counted and number.noun and counted != number.noun else (1,)


def is_there(found: re.Match[str], known: list[Known]) -> bool:
    """Whether some number of the same kind rounds to the figure; a share may stand as percent or points, and of "12 of 13" both are there."""
    (wanted, half), (kind, worth) = value(found), kind_of(found)
    after = found.string[found.end() :]
    if of := re.match(OF, after, re.IGNORECASE):
        whole = WORTH.get(of[1].lower()) or float(of[1].replace(",", ""))
        if not any(number.value == whole and scales(None, None, number) for number in known):
            return False
    counted = noun(after, first=True)
    return any(
        abs(number.value * scale - wanted * worth) <= half * worth + 1e-9
        for number in known
        for scale in scales(kind, counted, number)
    )


def sections(text: str) -> list[str]:
    """The parts of a page, each with its heading of the second level; comments in code are no headings."""
    in_code = [found.span() for found in FENCED.finditer(text)]
    starts = [found.start() for found in re.finditer(r"^## ", text, re.MULTILINE)]
    starts = [0, *(start for start in starts if not any(first <= start < last for first, last in in_code))]
    return [text[start:end] for start, end in pairwise([*starts, len(text)])]


def unsupported(text: str, excepted: Iterable[str] = ()) -> list[str]:
    """The figures of a section that stand in no block of it, with the words around them."""
    known = numbers(text)
    phrases = "|".join(re.escape(phrase).replace(r"\ ", r"\s") for phrase in excepted) or "$^"
    allowed = [found.span() for found in re.finditer(phrases, sentences(text))]
    typed = [found for found in figures(text) if not is_there(found, known) and not within(found, allowed)]
    return [found.string[max(0, found.start() - 60) : found.end() + 20] for found in typed]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_figures_in_sentences_stand_in_a_block_of_their_section(page):
    text, excepted = page.read_text(encoding="utf-8"), EXCEPTIONS.get(page.name, {})
    typed = [found for section in sections(text) for found in unsupported(section, excepted)]
    assert typed == [], "typed by hand: render it, or take it out of the sentence"
    words = " ".join(sentences(text).split())
    assert [phrase for phrase in excepted if phrase not in words] == [], "an exception that is no longer needed"


def test_a_number_of_another_section_does_not_count():
    block = "<!-- begin a -->\n| 7.5 ms |\n<!-- end -->\n"
    inside, outside = (
        f"## One\n{before}It takes 7.5 ms.\n```sh\n## none\n```\n{after}"
        for before, after in (("", block), ("", f"## Two\n{block}"))
    )
    for page, wrong in ((inside, 0), (outside, 1)):
        assert sum(len(unsupported(section)) for section in sections(page)) == wrong


def test_figures_are_seen():
    text = (
        "It gains 3.5 points at 0.23 of u, 12 % in all, in 1,234.5 s, twelve times; `.707`, not `p=0.99`, Section 5 or Section 5.1.\n"
        "<!-- begin a -->\n0.0349 and 1.26\n<!-- end -->\nIt reached 40 kB, half a minute, c0 = 0.1, a level of 95 %.\n"
    )
    found = figures(text)
    assert [one[0] for one in found] == ["3.5", "0.23", "12", "1,234.5", "twelve", ".707", "40", "half a"]
    known = numbers(text)
    assert known == [Known(0.0349), Known(1.26)]
    assert [is_there(one, known) for one in found] == [True] + 7 * [False]
    right = [0.2349, 0.12, (1234.5, "time"), (11.9, "ratio"), 0.7071, (40.4e3, "size"), (30, "time")]
    assert all(
        is_there(one, [Known(*n) if isinstance(n, tuple) else Known(n)])
        for one, n in zip(found[1:], right, strict=True)
    )
    # a share in points, and never a length or a size
    assert not is_there(found[6], [Known(0.4)])


@pytest.mark.parametrize(
    ("sentence", "seen"),
    [
        ("13 percent, fifteen percent and ninety-five points", ["13", "fifteen", "ninety-five"]),
        ("two and a half points, 31–34 points, two or three points", ["two and a half", "31", "34", "two", "three"]),
        ("a change of -13.3, a 9-point lead", ["13.3", "9"]),
        ("9 min, 777µs, sixty seconds, in about a minute, a count a second", ["9", "777", "sixty", "a"]),
        ("2x, tenfold, 10-fold, 20 times, five folds, five-fold", ["2", "ten", "10", "20", "five"]),
        ("twice as fast, twice a day, half the time, half of the labels", ["twice", "half"]),
        (
            "a third of the labels, two fifths of them, a third term, in half of the runs",
            ["a third", "two fifths", "half"],
        ),
        ("in 10 of 10 trials and nine of ten runs, one of them", ["10", "nine"]),
        (
            "12345 rows, 1234 rows, 1 million, ten million, a hundred thousand",
            ["12345", "1 million", "ten million", "a hundred thousand"],
        ),
        ("c0 = 0.7, by default 0.3, the paper's gap of 0.07, at a rate 0.5", ["0.7", "0.3", "0.07", "0.5"]),
        ("on 2026-11-30, kill -9, UTF-8, 10^12 labels, Apache-2.0, `tol=1e-8`", []),
        (
            "gains `+13.9 points`, `+13.9`, `12–14 %` and 13.9pp, not `--budget 800` or `p = 13.9`",
            ["13.9", "13.9", "12", "14", "13.9"],
        ),
        (
            "4.5k labels, 3K of them, 2M rows, `4.5k`, a class above 50K",
            ["4.5 thousand", "3 thousand", "2 million", "4.5 thousand"],
        ),
        ("93 per cent, 13 percentage points, 1-2 %", ["93", "13", "1", "2"]),
        (
            "½ point, 3½ points, ½ of the labels, 1/3 of the labels, two-thirds of them",
            ["0.5", "3.5", "50", "33", "two thirds"],
        ),
        ("97 of the 100 trials, 97 out of 100, 97/100 trials, nine in ten", ["97", "97", "97", "nine"]),
        ("wins on 12 of 13 data sets, on twelve of thirteen, on all of them", ["12", "twelve"]),
        ("is .91 on the worst pair, with 40 % fewer labels", [".91", "40"]),
        (
            "It halves the error, doubles its cost; tripled; *twice* the labels",
            ["halves", "doubles", "tripled", "twice"],
        ),
        ("in two halves, double precision, n^−½, ½·θᵀHθ, [a/b](1/3)", []),
        ("![Up to 13.9 points on Adult](assets/adult-2.5.png)", ["13.9"]),
        ("\n```bash\nmake test   # in under ten minutes\nsleep 1.5\n```\n", ["ten"]),
    ],
)
def test_other_forms_are_seen(sentence, seen):
    assert [found[0] for found in figures(sentence)] == seen


@pytest.mark.parametrize(
    ("sentence", "block", "there"),
    [
        ("two minutes", "2 cores, python 3.11.7, 2026-11-16 02:02 UTC, `make soak --minutes 2`", False),
        ("two minutes", "it took 122 s", True),
        ("two minutes", "| seconds |\n|---|\n| 122 |", True),
        ("two minutes", "| per second |\n|---|\n| 122 |", False),
        ("5 MB", "5 servers and 5", False),
        ("5 MB", "5,010 kB", True),
        ("five times", "−4.5 points, 5", False),
        ("five times", "| ratio |\n|---|\n| 4.9 |", True),
        ("6,000 images", "6,000 labels", False),
        ("6,000 images", "| images |\n|---|\n| 6,000 |", True),
        ("ten million rows", "`python big.py --rows 10000000`", True),
        ("3 %", "| trials | error |\n|---|---|\n| 3 | 0.5 |", False),
        ("a third of the labels", "| 33 % |", True),
        ("a third of the labels", "| 33 |", False),
        ("1/3 of the labels", "| 33.4 % |", True),
        ("1/3 of the labels", "| 35 % |", False),
        ("4.5k labels", "| labels |\n|---|\n| 4,520 |", True),
        ("4.5k labels", "| labels |\n|---|\n| 4,600 |", False),
        ("it halves the error", "| 0.52 × |", True),
        ("it halves the error", "| 0.52 |", False),
        ("97 of the 100 trials", "100 trials, ahead in 97", True),
        ("97 of the 100 trials", "100 trials, ahead in 95", False),
        ("97 of the 100 trials", "50 trials, ahead in 97", False),
        ("twelve of thirteen data sets", "| better |\n|---|\n| 12 of 13 |", True),
        ("80.5 %", "A note.\nThe paper: All rules approach 80.5 %.", False),
        ("80.5 %", "A note: 80.5 %.\nThe paper: All rules approach it.", True),
    ],
)
def test_a_figure_needs_a_number_of_its_kind(sentence, block, there):
    assert (unsupported(f"{sentence}\n<!-- begin a -->\n{block}\n<!-- end -->\n") == []) == there


def test_rules_and_exceptions_are_needed():
    texts = [sentences(page.read_text(encoding="utf-8")) for page in PAGES]
    for why, rule in RULES.items():
        assert any(FIGURE.search(found[0]) for text in texts for found in re.finditer(rule, text)), why
    assert EXCEPTIONS.keys() <= {page.name for page in PAGES}
    for module, _, stands in (where.partition(" ") for known in EXCEPTIONS.values() for where in known.values()):
        assert stands in (ROOT / module).read_text(encoding="utf-8"), module


CHECK = re.compile(r"`((?:python|pytest|evenhand|make) [^`]*)`")


@pytest.fixture
def measuring(monkeypatch):
    """The commands of `make evidence`."""
    monkeypatch.syspath_prepend(str(RESULTS))
    evidence = importlib.import_module("evidence")
    every = [*evidence.STEPS.values(), *evidence.IMAGES.values(), *evidence.AFTER]
    # where a step keeps its trials is its own affair
    return [re.sub(r" --keep \S*{code}\S*", "", command) for commands in every for command in commands.split(" && ")]


BY_HAND = {
    "python docs/results/search_synthetic2.py rounded",
    "python benchmarks/image_claims.py --out results",
}
"""What checks a claim and is no step of the evidence: made once, or a step of the judging with a folder of its own."""


def test_every_check_of_a_claim_exists(measuring):
    text = (ROOT / "docs/claims.md").read_text("utf-8")
    typed = re.sub(r"<!-- begin .*?<!-- end -->", "", text, flags=re.DOTALL)
    rows = [line for line in typed.splitlines() if line.startswith("| ") and not line.startswith("| claim")]
    assert len(rows) > 60
    for row in rows:
        commands = CHECK.findall(row.split("|")[3])
        assert commands, row
        for command in commands:
            program, *words = command.split()
            if program == "pytest":
                assert all((ROOT / path).exists() for path in words if "/" in path), row
            elif program == "python":
                # as it is run for the pages, so that it has the options that it cannot do without
                assert command in [*measuring, *BY_HAND], row
            elif program == "make":
                assert f"\n{words[0]}:" in (ROOT / "Makefile").read_text(encoding="utf-8"), row


def test_every_file_is_made_by_a_step_of_the_evidence(measuring):
    commands = " ".join(measuring)
    for path in re.findall(r"\b(?:benchmarks|docs/results)/\w+\.py", commands):
        assert (ROOT / path).exists()
    # what a step writes by another name; the last one was made once, and asked for by nobody since
    written = ["results.json", "verdicts.json", "tables.json", "discussion.json", "theory.json", "models.json"]
    written += ["risks.json", "soak.json", "demo.json", "evidence.json", "quick.json", "synthetic2-search.json"]
    for path in RESULTS.glob("*.json"):
        assert path.name in written or path.name in commands, path.name

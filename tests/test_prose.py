"""Figures in sentences are those of the rendered blocks of the page; claims name commands that exist."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs/results"
MADE = {"api.md", "api-parts.md", "cli.md", "server-api.md"}
"""Pages that are made of the code as a whole."""
PAGES = [ROOT / "README.md", *(page for page in sorted((ROOT / "docs").glob("*.md")) if page.name not in MADE)]

BLOCK = re.compile(r"<!-- begin [\w-]+ -->(.*?)<!-- end -->", re.DOTALL)
CODE = re.compile(r"^```.*?^```|`(?:[^`\n]|\n(?!\n))+`", re.DOTALL | re.MULTILINE)
# texts of pictures and targets of links are no sentences
OTHER = re.compile(r"!\[[^\]]*\]|\]\([^)]*\)|\{#[^}]*\}")
NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d*\.\d+|\d+"
UNIT = r"%|×|points?\b|[nµm]?s\b|[kMG]i?B\b|(?:milli)?seconds?\b|minutes?\b|hours?\b|days?\b|times\b|passes\b|fits\b"
COUNTED = "one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty hundred thousand"
WORTH = dict(zip(COUNTED.split(), (*range(1, 13), 20, 30, 40, 50, 100, 1000), strict=True))
FIGURE = re.compile(
    rf"(?<![\w.,/^–-])(?<!\^−)(?P<digits>\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?|\d*\.\d+|\d+(?=(?: to \d+)? ?(?:{UNIT})))(?![\w^])"
    rf"|\b(?P<word>{'|'.join(WORTH)})\b(?= (?:{UNIT}))"
    rf"|\b(?P<part>half an?)\b(?= (?:{UNIT}))",
    re.IGNORECASE,
)

RULES = {
    "the level of an interval or a certificate": r"\b95 %(?! of)|\b5 % (?:unless|would be|divided)|δ(?:/2)? = [.\d]+|1 − 0\.05",
    "the value of a setting": r"\b(?:c0|c1|ξ|ε|A|π\\?\*) ?= ?[.\d]+|\bby default [.\d]+|\w+ days? by default|\brate [.\d]+",
    "a share that is held out": r"\b30 % (?:out )?of (?:every|each)",
    "the paper's": r"\bpaper(?:'s| has| uses|)\b[^.;:]{0,30}? [.\d]+",
    "a version, or a number of a section": r"\b(?:Python|NumPy|CC BY|Section) [.\d]+(?:(?:,| to| and) [.\d]+)*",
    "an example of a claim": r"above 0\.12\b",
}
"""What is no measurement, wherever it stands: each with the words that tell it."""

EXCEPTIONS = {
    "discussion.md": {"20,000": "experiments/over_exploration.py LONG"},
    "durability.md": {
        "10": "campaign/store.py random.uniform(0.01, 0.1)",
        "100": "campaign/store.py random.uniform(0.01, 0.1)",
    },
    "label-studio.md": {"30": "cli/sync.py 30s by default"},
    "live.md": {"30": "campaign/training.py LEASE_SECONDS = 30"},
    "page.md": {
        "seven": "campaign/viewing.py _PACE_DAYS = 7",
        "256": "server/settings.py max_upload: int = 256",
    },
    "server.md": {"64": "server/incoming.py SMALL = 2**16"},
    "tables.md": {
        "10,000": "sources/table/stream.py MOST_TEST_ROWS = 10_000",
        "1,000": "sources/table/pool.py max_categories: int = 1000",
        "2,000,000": "sources/table/table.py LARGE = 2_000_000",
    },
}
"""By page, settings of the code that no rule tells: the module, and what stands in it."""


def sentences(text: str) -> str:
    """A page without its blocks, code and pictures; a number alone between backticks is a figure all the same."""
    text = re.sub(r"`(\d*\.\d+)`", r"\1", BLOCK.sub(" ", text))
    for left_out in (CODE, OTHER):
        text = left_out.sub(" ", text)
    return text


def figures(text: str) -> list[re.Match[str]]:
    """The figures in the sentences of a page that no rule excuses."""
    text = sentences(text)
    excused = [found.span() for rule in RULES.values() for found in re.finditer(rule, text)]
    return [
        found
        for found in FIGURE.finditer(text)
        if not any(first <= found.start() and found.end() <= last for first, last in excused)
    ]


def numbers(text: str) -> list[float]:
    """The numbers in the rendered blocks of a page: another test holds these against the JSON files."""
    return [float(found.replace(",", "")) for block in BLOCK.findall(text) for found in re.findall(NUMBER, block)]


def is_there(found: re.Match[str], known: list[float]) -> bool:
    """Whether some number rounds to the figure; a share may stand as percent or points."""
    if found["digits"]:
        wanted, places = float(found["digits"].replace(",", "")), len(found["digits"].partition(".")[2])
    else:
        wanted, places = (WORTH[found["word"].lower()], 0) if found["word"] else (0.5, 1)
    scales = (1, 100) if re.match(" ?(%|points?)", found.string[found.end() :]) else (1,)
    half = 0.5 * 10**-places + 1e-9
    return any(abs(number * scale - wanted) <= half for number in known for scale in scales)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_figures_in_sentences_stand_in_a_block_of_the_page(page):
    text = page.read_text(encoding="utf-8")
    known, excepted = numbers(text), EXCEPTIONS.get(page.name, {})
    typed = [found for found in figures(text) if not is_there(found, known)]
    wrong = [found.string[found.start() - 60 : found.end() + 20] for found in typed if found[0] not in excepted]
    assert wrong == [], "typed by hand: render it, or take it out of the sentence"
    assert set(excepted) <= {found[0] for found in typed}, "an exception that is no longer needed"


def test_figures_are_seen():
    text = (
        "It gains 3.5 points at 0.23 of u, 12 % in all, in 1,234.5 s, twelve times; `.707`, not `p=0.99`, Section 5 or Section 5.1.\n"
        "<!-- begin a -->\n0.0349 and 1.26\n<!-- end -->\nIt reached 40 kB, half a minute, c0 = 0.1, a level of 95 %.\n"
    )
    found = figures(text)
    assert [one[0] for one in found] == ["3.5", "0.23", "12", "1,234.5", "twelve", ".707", "40", "half a"]
    known = numbers(text)
    assert known == [0.0349, 1.26]
    assert [is_there(one, known) for one in found] == [True] + 7 * [False]
    assert all(is_there(one, [350, 0.2349, 0.12, 1234.5, 11.9, 0.7071, 40.4, 0.5]) for one in found[1:])
    # a share in points, and never a length or a size
    assert not is_there(found[6], [0.4])


def test_rules_and_exceptions_are_needed():
    texts = [sentences(page.read_text(encoding="utf-8")) for page in PAGES]
    for why, rule in RULES.items():
        assert any(FIGURE.search(found[0]) for text in texts for found in re.finditer(rule, text)), why
    assert EXCEPTIONS.keys() <= {page.name for page in PAGES}
    for module, _, stands in (where.partition(" ") for known in EXCEPTIONS.values() for where in known.values()):
        assert stands in (ROOT / "src/evenhand" / module).read_text(encoding="utf-8"), module


CHECK = re.compile(r"`((?:python|pytest|evenhand|make) [^`]*)`")


@pytest.fixture
def measuring(monkeypatch):
    """The commands of `make evidence`."""
    monkeypatch.syspath_prepend(str(RESULTS))
    evidence = importlib.import_module("evidence")
    return [*evidence.STEPS.values(), *evidence.IMAGES.values(), *evidence.AFTER]


BY_HAND = {
    "python docs/results/search_synthetic2.py rounded",
    "python benchmarks/image_claims.py --out results",
    "python benchmarks/images.py gains",
}
"""What checks a claim and is no step of the evidence: made once, or a step of the judging with a folder of its own."""


def test_every_check_of_a_claim_exists(measuring):
    text = (ROOT / "docs/claims.md").read_text("utf-8")
    tables = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| claim")]
    rows = [line for line in tables if not line.startswith(("| file", "| `"))]
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
    # made once, and asked for by nobody since: the search for SyntheticModel2, single image runs, the demo's case
    by_hand = {"synthetic2-search.json", "images.json", "demo.json"}
    # what a step writes by another name
    written = {
        "results.json",
        "verdicts.json",
        "tables.json",
        "discussion.json",
        "theory.json",
        "models.json",
        "risks.json",
    }
    written |= {"soak.json"}
    for path in RESULTS.glob("*.json"):
        assert path.name in by_hand | written or path.name in commands, path.name

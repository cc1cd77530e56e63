"""Figures in sentences are those of the JSON files behind the page; claims name commands that exist."""

import importlib
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs/results"
# blocks are rendered, code is run, tables have a test of their own, targets of links are no sentences
NO_PROSE = re.compile(
    r"<!-- begin [\w-]+ -->.*?<!-- end -->|^```.*?^```|^\|.*?$|^#.*?$|`[^`]*`|\]\([^)]*\)", re.DOTALL | re.MULTILINE
)
FIGURE = re.compile(
    r"(?<![\w.,/^–-])(\d[\d,]*\.\d+|\.\d+|\d[\d,]*(?= ?(?:%|×|points?\b|seconds|minutes|hours|MiB|ms\b)))(?![\w^])"
)

SOURCES = {
    "results.md": ["tables.json", "images.json"],
    "reproduction.md": ["results.json", "synthetic2-search.json"],
    "reproduce.md": [],
    "discussion.md": ["discussion.json"],
    "claims.md": [],
}
"""The pages that are looked at, each with the files its figures come from."""

EXCEPTIONS = {
    "results.md": {
        "95": "the level of an interval",
        "0.1": "a setting, c0",
        "58.9": "a share of Adult's rows, tests/datasets checks the counts",
        ".807": "examples/ceilings.py adult",
        ".808": "examples/ceilings.py adult",
        ".722": "examples/ceilings.py german",
        ".730": "examples/ceilings.py german",
        ".757": "examples/ceilings.py german",
        "30": "a setting, test",
    },
    "reproduction.md": {
        "0.25": "a rule we had before",
        "0.20": "π*, exact: tests/sources/synthetic/test_model1.py",
        "5": "the definition of stuck",
        "95": "a share of u that makes the example clear",
        "0.1": "settings, c0 and c1",
    },
    "discussion.md": {"0.1": "the paper's settings"},
}
"""Figures that no file has, each with the reason."""


def figures(text: str) -> list[str]:
    """The figures in the sentences of a page."""
    return FIGURE.findall(NO_PROSE.sub(" ", text))


def leaves(found: object) -> list[float]:
    if isinstance(found, dict):
        return [value for inner in found.values() for value in leaves(inner)]
    if isinstance(found, list):
        return [value for inner in found for value in leaves(inner)]
    return [float(found)] if isinstance(found, int | float) and not isinstance(found, bool) else []


def is_there(figure: str, values: list[float]) -> bool:
    """Whether some value rounds to the figure, as a share or in points and percent."""
    wanted, digits = float(figure.replace(",", "")), len(figure.partition(".")[2])
    half = 0.5 * 10**-digits + 1e-9
    return any(abs(abs(value) * scale - wanted) <= half for value in values for scale in (1, 100))


@pytest.mark.parametrize("page", SOURCES)
def test_figures_in_sentences_are_in_the_files(page):
    values = [value for name in SOURCES[page] for value in leaves(json.loads((RESULTS / name).read_text("utf-8")))]
    found = figures((ROOT / "docs" / page).read_text("utf-8"))
    known = EXCEPTIONS.get(page, {})
    assert [figure for figure in found if figure not in known and not is_there(figure, values)] == []
    assert set(known) <= set(found), "an exception that is no longer needed"


def test_figures_are_seen():
    text = "It gains 3.5 points at 0.23 of u, 12 % in all, in 1,234.5 s; see `0.99` and Section 5.\n| 7.7 |\n"
    assert figures(text) == ["3.5", "0.23", "12", "1,234.5"]
    assert is_there("3.5", [0.0349])
    assert is_there("0.23", [-0.2349])
    assert not is_there("0.23", [0.2, 0.3])


CHECK = re.compile(r"`((?:python|pytest|evenhand|make) [^`]*)`")


def test_every_check_of_a_claim_exists():
    text = (ROOT / "docs/claims.md").read_text("utf-8")
    tables = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| claim")]
    rows = [line for line in tables if "json`" not in line and not line.startswith("| file")]
    assert len(rows) > 30
    for row in rows:
        (command,) = CHECK.findall(row.split("|")[3])
        program, *words = command.split()
        paths = [word for word in words if "/" in word and program in ("python", "pytest")]
        assert paths or program == "evenhand", row
        assert all((ROOT / path).exists() for path in paths), row


def test_every_file_is_made_by_a_step_of_the_evidence(monkeypatch):
    monkeypatch.syspath_prepend(str(RESULTS))
    evidence = importlib.import_module("evidence")
    commands = " ".join([*evidence.STEPS.values(), *evidence.IMAGES.values(), *evidence.AFTER])
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

"""Measured numbers in the documentation come from files in docs/results, through docs/results/render.py."""

import json
import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NUMBER = re.compile(r"[*~≥≤<>]*[+−-]?[\d.,]*\d( ?(%|×|[µmkMG]?i?[sB]|MiB))?( a \w+)?( ?[±\[(].*)?\**")


@pytest.fixture
def made(monkeypatch):
    """Modules of docs/results and benchmarks by name."""
    monkeypatch.syspath_prepend(str(ROOT / "docs/results"))
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return import_module


def typed_rows(text):
    """Rows of tables outside of rendered blocks and code with a number, alone or with its unit, after the first column."""
    text = re.sub(r"<!-- begin [\w-]+ -->.*?<!-- end -->|^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    return [row for row in rows if any(NUMBER.fullmatch(cell.strip()) for cell in row.strip("| ").split("|")[1:])]


def test_every_page_is_what_its_numbers_render_to(made):
    render = made("render")
    assert render.PAGES == PAGES
    blocks = render.all_blocks()
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert render.render(text, blocks) == text, f"{page.name}: run python docs/results/render.py"
        assert text.count("<!-- begin ") == text.count("<!-- end -->") == len(render.BLOCK.findall(text)), page.name


def test_every_block_is_on_a_page(made):
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert set(made("render").all_blocks()) <= set(re.findall(r"<!-- begin ([\w-]+) -->", text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_number_is_typed_into_a_table(page):
    assert typed_rows(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "cell", ["0.14", "6,870", ".770 ± .009", "**122×**", "35 s", "16 µs a round", "−.004 [−.1, .1]", "7.5 MB"]
)
def test_typed_numbers_are_seen(cell):
    row = f"| work | {cell} |"
    assert typed_rows(f"| | |\n|---|---|\n{row}\n") == [row]
    assert typed_rows(f"<!-- begin a -->\n{row}\n<!-- end -->\n") == []


NO_CHANCE = {"bench", "big-table", "evidence", "ledger", "pools", "soak", "unlabelled", "server"}
"""Files of times and sizes, whose figures do not hang on what was drawn."""


@pytest.mark.parametrize("path", sorted((ROOT / "docs/results").glob("*.json")), ids=lambda path: path.stem)
def test_files_say_when_and_how_they_were_made(path, made):
    claims = made("blocks.claims")
    found = json.loads(path.with_name(claims.BESIDE.get(path.name, path.name)).read_text(encoding="utf-8"))
    assert path.name in claims.MADE_BY or set(claims.texts(found, "command"))
    assert all(re.match(r"20\d\d-\d\d-\d\d", date) for date in claims.texts(found, "date", "finished"))
    keys = set(keys_of(found))
    assert keys & {"date", "finished"}
    assert "evenhand" in keys or "commit" in keys, "the version that made it"
    assert keys & {"seed", "seeds"} or path.stem in NO_CHANCE | {"image-repeats"}


def keys_of(found):
    """Every key of a JSON object, at any depth."""
    if isinstance(found, dict):
        yield from found
    for inner in found.values() if isinstance(found, dict) else found if isinstance(found, list) else ():
        yield from keys_of(inner)


def test_a_soak_report_becomes_numbers(made):
    case = '<testcase classname="tests" name="{}" time="{}">{}</testcase>'
    cases = [
        case.format("test_killed_two_hundred_times[sqlite]", 35.04, ""),
        case.format(
            "test_coverage[running_misses-0.5]", 9, '<properties><property name="misses" value="79"/></properties>'
        ),
        case.format("test_the_search", 1, ""),
    ]
    report = f'<testsuites><testsuite timestamp="2026-11-15T22:35:01">{"".join(cases)}</testsuite></testsuites>'
    found = made("soak").read(report)
    assert found["date"] == "2026-11-15"
    assert found["crowds"] == {"killed_two_hundred_times": {"sqlite": 35.0}}
    assert found["coverage"] == [{"kind": "running_misses", "p": 0.5, "misses": 79}]
    failing = report.replace("</testcase>", "<failure/></testcase>", 1)
    with pytest.raises(ValueError, match="failed"):
        made("soak").read(report, failing)
    assert made("soak").read(failing, report) == found


def test_the_ledger_table_names_every_row_below_the_aim(made):
    made("render")
    row = {"synchronous": "full", "what": "step", "bytes": 600, "bare_per_second": 5000.0, "ours_per_second": 1500.0}
    rows = [
        {**row, "database": "sqlite", "writers": 1, "ratio": 0.3},
        {**row, "database": "postgresql", "writers": 8, "ratio": 0.19},
    ]
    text = made("blocks.ledger").throughput(rows, 0.2)
    assert "| SQLite, `full` | an `ask` or a `tell` | 1 | 5,000 | 1,500 | 0.30 |" in text
    assert text.endswith(
        "The aim is a ratio of 0.2. These stay below it: PostgreSQL, `full`, an `ask` or a `tell`, 8 writers."
    )
    assert made("blocks.ledger").throughput(rows[:1], 0.2).endswith("All rows reach it.")

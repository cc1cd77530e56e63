"""Writes measured numbers into the pages of docs: what stands behind a mark in a page is computed from evidence/results.

Run: python -m evidence.render

A mark is a comment. In a sentence: `<!--=two(theory.excess.floor.last)-->0.01<!--/-->`. Before a table, whose first two lines stay as
they are written: `<!--rows errata.forced.rows` with a line for each row, `|{xi:g}|{first:,}|`, and `-->`; of a list, the lines are
repeated for each of its members. Expressions see the results by the names of their files, and everything in `views.py`.
"""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from evidence import views

ROOT = Path(__file__).parents[1]
VALUE = re.compile(r"<!--=(.+?)-->(.*?)<!--/-->", re.DOTALL)
ROWS = re.compile(r"<!--rows ([^\n]+)\n((?:\|[^\n]*\n)+)-->\n(\|[^\n]*\n\|[-| ]+\n)((?:\|[^\n]*\n)*)")
FIELD = re.compile(r"\{((?:[^{}]|\{[^{}]*\})+)\}")


class Box(dict[str, Any]):
    """A JSON object whose fields may be written with a dot."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


@cache
def names() -> dict[str, Any]:
    """The results, and what is computed of them."""
    files = sorted((ROOT / "evidence/results").glob("*.json"))
    found = {path.stem: json.loads(path.read_text("utf-8"), object_hook=Box) for path in files}
    views.results = found
    return found | {name: value for name, value in vars(views).items() if callable(value)}


def line(template: str, row: Any) -> str:
    """A row of a table; in it the fields of the row are known by their names, the row itself as `row`."""
    known = names() | (row if isinstance(row, dict) else {}) | {"row": row}
    parts = FIELD.split(template.strip("|"))
    # what stands between the fields, in which a bar ends a cell, and the fields
    parts[::2] = [part.replace("|", " | ") for part in parts[::2]]
    parts[1::2] = [str(eval("f'''{" + field + "}'''", known)) for field in parts[1::2]]
    return f"| {''.join(parts)} |".replace("|  |", "| |").replace("|  |", "| |")


def table(found: re.Match[str]) -> str:
    """A table with its rows written anew."""
    expression, templates, head, _ = found.groups()
    value = eval(expression, names())
    rows = value if isinstance(value, list) else [value]
    lines = [line(template, row) for row in rows for template in templates.splitlines()]
    mark = f"<!--rows {expression}\n{templates}-->\n"
    return mark + head + "".join(f"{one}\n" for one in lines)


def render(text: str) -> str:
    """A page with everything behind its marks written anew."""
    text = VALUE.sub(lambda found: f"<!--={found[1]}-->{eval(found[1], names())}<!--/-->", text)
    return ROWS.sub(table, text)


def pages() -> list[Path]:
    """The pages that have marks."""
    return [
        path for path in sorted((ROOT / "docs").glob("*.md")) if re.search(r"<!--(=|rows )", path.read_text("utf-8"))
    ]


def write_pages() -> None:
    """Write every page that is not as its results render."""
    for page in pages():
        text = page.read_text("utf-8")
        if (new := render(text)) != text:
            page.write_text(new, "utf-8")
            print(f"rendered docs/{page.name}")


if __name__ == "__main__":
    write_pages()

"""Doctests in docstrings become examples on the API pages.

In a docstring an example stands where it helps, `>>>` at the margin. Markdown would take these lines for a quotation, so
they are set apart as an `Examples:` section before the pages are made.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

BARE = re.compile(r"(?:^|\n\n)(>>> .*?)(?=\n\n(?!>>> )|\Z)", re.DOTALL)


def with_examples(text: str) -> str:
    """A docstring whose examples at the margin are a section of their own.

    >>> with_examples("Twice a number.\\n\\n>>> 2 * 3\\n6").splitlines()
    ['Twice a number.', '', 'Examples:', '    >>> 2 * 3', '    6']
    """

    def section(found: re.Match[str]) -> str:
        lines = found[1].splitlines()
        start = "" if found.start() == 0 else "\n\n"
        return start + "Examples:\n" + "\n".join(f"    {line}" if line else "" for line in lines)

    return BARE.sub(section, re.sub(r"^Example:$", "Examples:", text, flags=re.MULTILINE))


class Doctests(griffe.Extension):
    """What mkdocstrings calls for every object it has read."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring, where there is one."""
        if obj.docstring is not None:
            obj.docstring.value = with_examples(obj.docstring.value)

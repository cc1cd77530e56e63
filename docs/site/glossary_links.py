"""On every page, the first mention of a word of the glossary leads to the glossary.

The words are the headings of glossary.md: `### certificate, certified` is found as either, in the plural, and at the start of
a sentence.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

GLOSSARY = Path(__file__).parents[1] / "glossary.md"
ALONE = {"glossary.md", "api.md", "api-parts.md", "cli.md"}
HEADING = re.compile(r"^### (.+?) \{#([\w-]+)\}$", re.MULTILINE)
FENCE = re.compile(r"^\s*(```|~~~)")
MARK = re.compile(r"<!--rows .*?-->\n|<!--=.+?-->|<!--/-->", re.DOTALL)
"""Where a page has a number from: see evidence/render.py."""
# what is code, a link, a picture, a tag or an address already
TAKEN = re.compile(r"(`+[^`]*`+|!?\[[^\]]*\]\([^)]*\)|<[^>]*>|https?://\S+)")


def words() -> dict[str, str]:
    """Every form of every word, and the anchor it leads to."""
    found = HEADING.findall(GLOSSARY.read_text(encoding="utf-8"))
    listed = {form.strip(): anchor for forms, anchor in found for form in forms.split(",")}
    # Δ is not δ
    return {form[0].upper() + form[1:]: anchor for form, anchor in listed.items() if form[0].isascii()} | listed


def linked(text: str, forms: dict[str, str]) -> str:
    """A page with a link at the first mention of each word.

    >>> print(linked("# A pool\\nA pool has rows; `pool` adds them. Pools last.", {"pool": "pool"}))
    # A pool
    A [pool](glossary.md#pool){ .word } has rows; `pool` adds them. Pools last.
    """
    longest_first = sorted(forms, key=len, reverse=True)
    pattern = re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, longest_first))})(s?)(?![\w-])")
    waiting = set(forms.values())

    def link(found: re.Match[str]) -> str:
        anchor = forms[found[1]]
        if anchor not in waiting:
            return found[0]
        waiting.discard(anchor)
        return f"[{found[0]}](glossary.md#{anchor}){{ .word }}"

    lines, in_code = [], False
    for line in text.splitlines():
        if FENCE.match(line):
            in_code = not in_code
        elif waiting and not in_code and not line.startswith(("#", "    ", "<!--", ":::", "*[")):
            parts = TAKEN.split(line)
            line = "".join(part if i % 2 else pattern.sub(link, part) for i, part in enumerate(parts))
        lines.append(line)
    return "\n".join(lines)


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """What mkdocs calls for every page; how a number was made is nothing for its reader."""
    text = MARK.sub("", markdown)
    return text if page.file.src_uri in ALONE else linked(text, words())

"""Write the measured numbers into the documentation: every block between `<!-- begin NAME -->` and `<!-- end -->`.

Run: python docs/results/render.py          (`--check`: only say which pages are not as their numbers render)
"""

import re
import sys
from pathlib import Path

from blocks import (
    bench,
    corrections,
    discussion,
    errata,
    image_settings,
    image_trials,
    images,
    label_studio,
    ledger,
    models,
    newcomers,
    pools,
    proofs,
    reproduction,
    risks,
    server,
    server_api,
    tables,
    theory,
    web_page,
)

DOCS = Path(__file__).parents[1]
PAGES = [DOCS.parent / "README.md", *sorted(DOCS.glob("*.md"))]
SUBJECTS = (
    bench,
    corrections,
    discussion,
    errata,
    image_settings,
    image_trials,
    images,
    label_studio,
    ledger,
    models,
    newcomers,
    pools,
    proofs,
    reproduction,
    risks,
    server,
    server_api,
    tables,
    theory,
    web_page,
)
BLOCK = re.compile(r"(<!-- begin ([\w-]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


STARRED = re.compile(r"`[^`]*`|!\[[^\]]*\]|(?<=[πM])\*(?!\*)")
"""Code and texts of pictures, which stay as they are, or the star of π* and M*."""


def plain(text: str) -> str:
    """A block without accidental emphasis: two π* in a row would make italics of what stands between them."""
    return STARRED.sub(lambda found: r"\*" if found[0] == "*" else found[0], text)


def all_blocks() -> dict[str, str]:
    """Every block by its name."""
    found: dict[str, str] = {}
    for subject in SUBJECTS:
        made = subject.blocks()
        if twice := made.keys() & found.keys():
            raise ValueError(f"two blocks have the name {min(twice)}")
        found |= made
    return found


def render(text: str, blocks: dict[str, str]) -> str:
    """A page with every block between its marks written anew."""
    return BLOCK.sub(lambda found: f"{found[1]}{plain(blocks.get(found[2], 'Not run yet.'))}\n{found[4]}", text)


def main() -> int:
    """Write the pages, or check them."""
    blocks, stale = all_blocks(), []
    for page in PAGES:
        old = page.read_text(encoding="utf-8")
        new = render(old, blocks)
        if new != old:
            stale.append(page.name)
            if "--check" not in sys.argv:
                page.write_text(new, encoding="utf-8")
    print("\n".join(stale) or "all pages are as their numbers render")
    return int(bool(stale) and "--check" in sys.argv)


if __name__ == "__main__":
    sys.exit(main())

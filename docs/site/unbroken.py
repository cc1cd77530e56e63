"""A number and its per cent sign stay on one line: pages get a space there that does not break."""

from __future__ import annotations

import re
from typing import Any

# code is copied, so its spaces stay as they are; what is inside a tag is no text
LEFT = re.compile(r"(<pre.*?</pre>|<code.*?</code>|<[^>]*>)", re.DOTALL)
PER_CENT = re.compile(r"(?<=\d) (?=%)")


def unbroken(html: str) -> str:
    """The page with such spaces.

    >>> unbroken("<p title='5 %'>95 % of <code>5 % 2</code></p>")
    "<p title='5 %'>95\\xa0% of <code>5 % 2</code></p>"
    """
    return "".join(part if i % 2 else PER_CENT.sub("\xa0", part) for i, part in enumerate(LEFT.split(html)))


def on_page_content(html: str, **_: Any) -> str:
    """What mkdocs calls for every page."""
    return unbroken(html)

"""The README as a package index shows it. An index has the text alone, so pictures and links to files would be broken there."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

# a picture, and the caption in italics below it
PICTURE = re.compile(r"^!\[[^\]]*\]\([^)]*\)\n\n(?:\*[^\n]*\*\n\n)?", re.MULTILINE)
FILE_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)([^)]+)\)")


def for_an_index(text: str) -> str:
    """Without pictures; a link to a file becomes its words and the name of the file.

    >>> for_an_index("See [the guide](docs/guide.md), [docs/cli.md](docs/cli.md) and [the paper](https://arxiv.org).")
    'See the guide (`docs/guide.md`), `docs/cli.md` and [the paper](https://arxiv.org).'
    """

    def plain(found: re.Match[str]) -> str:
        words, path = found.groups()
        return f"`{path}`" if words == path else f"{words} (`{path}`)"

    return FILE_LINK.sub(plain, PICTURE.sub("", text))


class IndexReadme(MetadataHookInterface):
    """What hatchling calls when it writes the metadata of a wheel or an sdist."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Give the long description."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": for_an_index(text)}

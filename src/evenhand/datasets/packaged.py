"""The original files inside the package: packed once, checked byte for byte."""

from __future__ import annotations

import hashlib
import lzma
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from evenhand.errors import InputError


@dataclass(frozen=True)
class Original:
    """The size and digests of an original file."""

    size: int
    md5: str
    sha256: str

    def check(self, name: str, content: bytes) -> None:
        """Refuse bytes that are not the original's."""
        if len(content) != self.size:
            raise InputError(f"{name} has {len(content):,} bytes, the original has {self.size:,}.")
        if hashlib.sha256(content).hexdigest() != self.sha256:
            raise InputError(f"{name} is not the original: its SHA-256 is not {self.sha256}.")


ORIGINALS = {
    "adult.data": Original(
        3_974_305,
        "5d7c39d7b8804f071cdd1f2a7c460872",
        "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    ),
    "adult.test": Original(
        2_003_153,
        "35238206dfdf7f1fe215bbb874adecdc",
        "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
    ),
    "german.data": Original(
        79_793,
        "6b94c2e35480e671545e52a808a8a549",
        "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871",
    ),
}


def original(name: str) -> bytes:
    """The bytes of an original file, out of the package and checked."""
    packed = resources.files("evenhand.datasets").joinpath(f"files/{name}.xz").read_bytes()
    content = lzma.decompress(packed)
    # at every read: results are compared with the paper's, on these bytes and no others
    ORIGINALS[name].check(name, content)
    return content


def pack(folder: Path, out: Path) -> None:
    """Check the originals, anywhere below a folder, and pack them into `out`."""
    for name, expected in ORIGINALS.items():
        content = next(folder.rglob(name)).read_bytes()
        expected.check(name, content)
        (out / f"{name}.xz").write_bytes(lzma.compress(content, preset=9 | lzma.PRESET_EXTREME))

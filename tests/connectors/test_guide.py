"""The guide to Label Studio runs as it is written; `test_live.py` follows it with a real server."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.connectors.guide import follow_guide
from tests.connectors.miniature import Miniature, SmallPeople

KEY = "0123456789abcdef0123456789abcdef01234567"


def test_the_guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Miniature(KEY) as small:
        follow_guide(small.url, KEY, SmallPeople(small), tmp_path, monkeypatch)

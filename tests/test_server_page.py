"""The page about the server does what it says: all its commands and programs in order, against a real server."""

import os
import re
import shutil
import socket
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from standardwebhooks import Webhook

PAGE = Path(__file__).parents[1] / "docs" / "server.md"
BLOCK = re.compile(r"^```(python|bash)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def script() -> str:
    """The page as one shell script; what goes wrong ends it."""
    start = 'set -eu; PATH="$PWD/bin:$PATH"; trap "kill %1 2>/dev/null || true" EXIT\n'
    parts = [
        text if language == "bash" else f"\"{sys.executable}\" - <<'EOF'\n{text}EOF\n"
        for language, text in BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    ]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return start + "\necho ---\n".join(parts).replace("8000", str(port))


@pytest.mark.skipif(shutil.which("curl") is None, reason="the page uses curl")
def test_the_page_does_what_it_says(tmp_path: Path) -> None:
    command = tmp_path / "bin" / "evenhand"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m evenhand "$@"\n')
    command.chmod(0o755)
    # into files: a server that outlives the script would keep a pipe open
    with (tmp_path / "said").open("w") as out, (tmp_path / "log").open("w") as log:
        done = subprocess.run(
            ["bash", "-c", script()], cwd=tmp_path, stdout=out, stderr=log, timeout=120,
            env={k: v for k, v in os.environ.items() if "proxy" not in k.lower()},
        )  # fmt: skip
    said = (tmp_path / "said").read_text()
    assert done.returncode == 0, said + (tmp_path / "log").read_text()
    ready, tokens, python, curl, polling, _, running = said.split("---\n")
    assert '{"status":"ready"}' in ready
    assert "ann: collector of all campaigns" in tokens
    assert "['survey']" in python
    same = re.findall(r'\{"requests":.*?\}\]\}', curl)
    assert len(same) == 2
    assert same[0] == same[1]
    assert curl.count('"rows":2') == 2
    assert "use correct" in curl
    assert "304" in polling
    assert "event: told" in polling
    assert "evenhand_labels_total 24.0" in running


def test_the_example_knows_a_genuine_message() -> None:
    code = next(text for language, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")) if "is_genuine" in text)
    names: dict = {}
    exec(compile(code, str(PAGE), "exec"), names)
    secret, body, now = "whsec_" + "c2VjcmV0" * 4, b'{"type":"request.opened"}', datetime.now(UTC)
    headers = {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": "v1,b3RoZXI= " + Webhook(secret).sign("msg_1", now, body.decode()),
    }
    assert names["is_genuine"](secret, headers, body)
    assert not names["is_genuine"](secret, headers, body + b" ")
    assert not names["is_genuine"](secret, {**headers, "webhook-timestamp": "1000000000"}, body)

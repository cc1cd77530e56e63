"""Only bad input is shown as bad input: a bug of ours exits with 1 and leaves its traceback in a file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import sys
import numpy as np
import evenhand.campaign.campaign as module
def broken(*given, **settings):
    np.zeros(2) + np.zeros(3)
module.make_settings = broken
sys.argv = ["evenhand", "campaign", "create", "s", "--group", "u", "--budget", "20"]
from evenhand.cli import main
main()
"""


def test_a_bug_is_no_bad_input(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert "internal error: ValueError" in done.stderr
    log = Path(done.stderr.rsplit("The details are in ", 1)[1].strip())
    assert "could not be broadcast" in log.read_text()
    assert "Traceback" in log.read_text()
    assert "Traceback" not in done.stderr
    log.unlink()

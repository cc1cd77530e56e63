"""Asking, telling and looking from the shell import nothing heavy: a person waits for them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ["scipy", "sklearn", "pandas", "pyarrow", "numba", "narwhals", "matplotlib", "joblib", "torch", "alembic"]
SCRIPT = f"""
import sys
from evenhand.cli import app
try:
    app(["campaign", *sys.argv[1:]], standalone_mode=False)
except SystemExit:
    pass
print("heavy:", [name for name in {HEAVY} if name in sys.modules])
"""


@pytest.mark.parametrize("learner", ["none", "logistic"])
def test_what_a_quick_command_imports(tmp_path: Path, learner: str) -> None:
    (tmp_path / "rows.csv").write_text("id,a,b,label\n7,1,2,yes\n8,2,3,no\n")

    def run(*words: str) -> str:
        done = subprocess.run([sys.executable, "-c", SCRIPT, *words], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("create", "s", "--group", "u", "--group", "v", "--budget", "40", "--learner", learner)
    for words in (["ask", "s"], ["tell", "s", "1", "rows.csv"], ["status", "s"], ["explain", "s"], ["list"]):
        assert "heavy: []" in run(*words), words

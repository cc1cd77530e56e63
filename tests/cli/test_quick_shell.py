"""Asking, telling and looking from the shell import what they need and nothing heavy: a person waits for them."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path

import pytest

NEEDED = {
    "annotated_doc",  # typer's
    "evenhand",
    "lazy_loader",
    "numpy",  # standings and strategies
    "orjson",
    "shellingham",  # typer's
    "sqlalchemy",
    "typer",
    "typing_extensions",  # SQLAlchemy's
}
"""Every installed package a quick command may import. Each one more costs everybody who asks 10 to 300 ms."""
READS_FILES = {"cloudpickle", "dateutil", "pandas", "pyarrow"}
"""Files of rows are read by Arrow, which imports pandas where it is installed."""
if any(text.startswith("pydantic") for text in requires("typer") or ()):
    # an environment made before typer was held below 0.29: what that typer itself imports is not ours to refuse
    NEEDED |= {"annotated_types", "pydantic", "pydantic_core", "typing_inspection"}
SCRIPT = """
import sys
from evenhand.cli import app
try:
    app(["campaign", *sys.argv[1:]], standalone_mode=False)
except SystemExit:
    pass
installed = set()
for name, module in list(sys.modules.items()):
    file = getattr(module, "__file__", None) or ""
    if "site-packages" in file or "evenhand" in file:
        installed.add(name.partition(".")[0])
    if name in ("sqlalchemy.orm", "sqlalchemy.dialects.postgresql", "evenhand.experiments", "evenhand.simulation"):
        installed.add(name)
print("imported:", *sorted(installed))
"""


def _imported(folder: Path, *words: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", SCRIPT, *words], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.rpartition("imported:")[2].split())


@pytest.mark.parametrize("learner", ["none", "logistic"])
def test_what_a_quick_command_imports(tmp_path: Path, learner: str) -> None:
    (tmp_path / "rows.csv").write_text("id,a,b,label\n7,1,2,yes\n8,2,3,no\n")
    _imported(tmp_path, "create", "s", "--group", "u", "--group", "v", "--budget", "40", "--learner", learner)
    for words in (["ask", "s"], ["tell", "s", "1", "rows.csv"], ["status", "s"], ["explain", "s"], ["list"]):
        found = {name for name in _imported(tmp_path, *words) if not name.startswith("_")}
        assert found <= NEEDED | (READS_FILES if "rows.csv" in words else set()), words
        assert "numpy" in found, "the script looks in the wrong place"


def test_help_of_the_whole_program_is_quick_too(tmp_path: Path) -> None:
    script = "import sys\nfrom evenhand.cli import app\ntry:\n    app(['--help'])\nexcept SystemExit:\n    print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True)
    loaded = set(done.stdout.split())
    assert "evenhand.cli.simulate" in loaded
    assert not loaded & {"numpy", "sqlalchemy", "evenhand.campaign", "evenhand.cli.campaign_pool"}

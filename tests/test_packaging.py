"""The wheel and the sdist: built, installed apart from this checkout, and tried."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import evenhand

ROOT = Path(__file__).parents[1]


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the unpacked sdist: what the sdist lacks is missing here too."""
    folder = tmp_path_factory.mktemp("build")
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", folder, cwd=ROOT)
    sdist = next(folder.glob("*.tar.gz"))
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    unpacked = folder / sdist.name.removesuffix(".tar.gz")
    assert (unpacked / "tests" / "assets" / "ledger-0001.db").exists()  # the tests of the sdist need it
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=unpacked)
    return next(folder.glob("*.whl"))


def test_the_wheel_has_every_file_of_the_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.startswith("evenhand/")}
    files = subprocess.run(["git", "ls-files", "src/evenhand"], cwd=ROOT, capture_output=True, text=True).stdout.split(
        "\n"
    )
    assert packed >= {name.removeprefix("src/") for name in files if name}


def test_what_a_user_installs_works_in_a_fresh_environment(wheel: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", tmp_path / "fresh", cwd=tmp_path)
    python = tmp_path / "fresh" / "bin" / "python"
    # nothing of the environment that runs this, nor of the checkout
    bare = {"PYTHONPATH": "", "EVENHAND_DB": f"sqlite:///{tmp_path / 'ledger.db'}"}
    quiet = ("install", "--quiet", "--disable-pip-version-check", "--no-compile")
    run(python, "-m", "pip", *quiet, wheel, cwd=tmp_path, **bare)
    where = run(python, "-c", "import evenhand; print(evenhand.__file__)", cwd=tmp_path, **bare)
    assert where.startswith(str(tmp_path))
    extras = "import importlib.util as u; print([name for name in ('torch', 'fastapi', 'psycopg', 'httpx') if u.find_spec(name)])"
    assert run(python, "-c", extras, cwd=tmp_path, **bare).strip() == "[]"
    shell = [python, "-m", "evenhand"]
    assert run(*shell, "--version", cwd=tmp_path, **bare).strip() == evenhand.__version__
    assert run(python.with_name("evenhand"), "--version", cwd=tmp_path, **bare).strip() == evenhand.__version__
    # tables of the database, bundled data, templates of the report: what is no Python is there too
    run(*shell, "campaign", "create", "survey", "--group", "u", "--group", "v", "--budget", "20", cwd=tmp_path, **bare)
    assert "request 1" in run(*shell, "campaign", "ask", "survey", cwd=tmp_path, **bare)
    run(*shell, "curate", "german", "--budget", "60", "--compare", "1", "--out", "rows.csv", cwd=tmp_path, **bare)
    assert (tmp_path / "rows.report.html").exists()


def test_the_readme_is_whole_here_and_on_a_package_index(wheel: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    linked = re.findall(r"!?\[[^\]]*\]\((?!https?:)([^)#]+)", text)
    assert all((ROOT / path).exists() for path in linked)
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        shown = archive.read(metadata).decode()
    # an index has no files beside the text, so nothing in it may point to one
    assert re.findall(r"\]\((?!https?:)", shown) == []
    assert "docs/assets" not in shown
    assert "`docs/certificates.md`" in shown
    assert not re.search(r"<(script|iframe|style)", shown)

"""The wheel and the sdist: built, installed apart from this checkout, and tried."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

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


def beyond_the_default() -> list[str]:
    """The modules of this environment that `pip install evenhand`, without an extra, would not bring."""
    waiting, brought = ["evenhand"], set()
    while waiting:
        name = canonicalize_name(waiting.pop())
        if name not in brought:
            brought.add(name)
            needed = [Requirement(text) for text in metadata.requires(name) or ()]
            waiting += [one.name for one in needed if one.marker is None or one.marker.evaluate({"extra": ""})]
    owners = metadata.packages_distributions().items()
    return sorted(module for module, of in owners if not brought & {canonicalize_name(name) for name in of})


REFUSED = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
"""


def test_what_is_installed_works_without_the_checkout(wheel: Path, tmp_path: Path) -> None:
    place = tmp_path / "installed"
    run(sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", place, wheel, cwd=tmp_path)
    # the dependencies are those of the environment that runs this, as far as the default install has them
    absent = beyond_the_default()
    assert {"torch", "fastapi", "psycopg", "pytest"} <= set(absent)
    assert not {"numpy", "typer", "sqlalchemy", "skops"} & set(absent)
    (place / "sitecustomize.py").write_text(REFUSED.format(names=set(absent)), encoding="utf-8")
    there = {"PYTHONPATH": str(place), "EVENHAND_DB": f"sqlite:///{tmp_path / 'ledger.db'}"}
    where = run(
        sys.executable, "-c", "import evenhand; print(evenhand.__file__, evenhand.__version__)", cwd=tmp_path, **there
    )
    assert str(place) in where
    is_there = "import importlib.util as u\ntry: print(u.find_spec('fastapi'))\nexcept ImportError: print('absent')"
    assert run(sys.executable, "-c", is_there, cwd=tmp_path, **there).strip() == "absent"
    assert where.split()[1] == evenhand.__version__
    shell = [sys.executable, "-m", "evenhand"]
    assert run(*shell, "--version", cwd=tmp_path, **there).strip() == evenhand.__version__
    # tables of the database, bundled data, templates of the report: what is no Python is there too
    run(*shell, "campaign", "create", "survey", "--group", "u", "--group", "v", "--budget", "20", cwd=tmp_path, **there)
    assert "request 1" in run(*shell, "campaign", "ask", "survey", cwd=tmp_path, **there)
    run(*shell, "curate", "german", "--budget", "60", "--compare", "1", "--out", "rows.csv", cwd=tmp_path, **there)
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

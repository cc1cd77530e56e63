"""The documentation does what it says: examples and commands run, names and options exist, links lead somewhere."""

import doctest
import importlib
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.main import get_command
from typer.testing import CliRunner

import evenhand as eh
from evenhand.cli import app

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted(DOCS.glob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
SHELL = {"bash", "sh"}
OWN_TESTS = {"pools.md", "extending.md"}
"""Pages whose commands need files that people make: their tests make them and run the commands."""
NEEDS_SERVER = {"server.md", "label-studio.md"}
"""Pages that are run whole by a test of their own, with the server that they start."""


def blocks(page: Path) -> list[tuple[str, str]]:
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def lines(block: str) -> Iterator[list[str]]:
    """The commands of a block as words: comments, prompts and broken lines are put right."""
    for line in block.replace("\\\n", " ").splitlines():
        if words := shlex.split(line.removeprefix("$ "), comments=True):
            yield words


def runs(page: Path) -> bool:
    return any(language == "python" or language in SHELL for language, _ in blocks(page))


@pytest.mark.parametrize("page", [p for p in PAGES if runs(p) and p.name not in NEEDS_SERVER], ids=lambda p: p.name)
def test_examples_run(page, tmp_path, monkeypatch):
    """Python and shell, block after block, as somebody would who follows the page in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EVENHAND_DB", raising=False)
    names = {"__name__": "__main__"}
    for language, block in blocks(page):
        if language == "python":
            exec(compile(block, str(page), "exec"), names)
        elif language in SHELL and page.name not in OWN_TESTS:
            for words in lines(block):
                run(words, monkeypatch)


def run(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    program, *rest = words
    if program == "export":
        for word in rest:
            monkeypatch.setenv(*word.split("=", 1))
    elif program == "make":
        assert f"\n{rest[0]}:" in (ROOT / "Makefile").read_text(encoding="utf-8")
    else:
        assert program == "evenhand", f"write {program!r} in a console block: it is not run here"
        done = CliRunner().invoke(app, rest)
        assert done.exit_code == 0, f"{shlex.join(words)}: {done.output} {done.exception}"


# what a block of output or a sentence quotes
INLINE = re.compile(r"`(evenhand [a-z][^`…]*)`")


def quoted(page: Path) -> Iterator[tuple[list[str], bool]]:
    """Every command on a page that begins with `evenhand`, also those that take too long to run here; is it whole?"""
    text = page.read_text(encoding="utf-8")
    for language, block in blocks(page):
        if language in SHELL | {"console", ""}:
            yield from (
                ((words, True) for words in lines(block) if words[0] == "evenhand") if "evenhand " in block else ()
            )
    for found in INLINE.findall(BLOCK.sub("", text).replace("\n", " ")):
        yield shlex.split(found), False


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_commands_exist(page):
    """Commands, options and their values are such as the command line knows; what is required may be left out in a sentence."""
    for words, whole in quoted(page):
        command, rest = get_command(app), words[1:]
        while rest and rest[0] in getattr(command, "commands", ()):
            command, rest = command.commands[rest[0]], rest[1:]
        assert not rest or not hasattr(command, "commands") or rest[0].startswith("-"), (
            f"{page.name}: {shlex.join(words)}"
        )
        found = problem(command, rest, whole)
        assert found is None, f"{page.name}: {shlex.join(words)}: {found}"


def problem(command: Any, words: list[str], whole: bool) -> str | None:
    """What the command line has against these words."""
    try:
        command.make_context("evenhand", list(words))
    except Exception as error:
        # by name: newer typers carry a click of their own
        fine = {"Exit", "NoArgsIsHelpError"} | (set() if whole else {"MissingParameter"})
        return None if type(error).__name__ in fine else f"{type(error).__name__} {error}"
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_what_other_commands_name_is_there(page):
    """Targets of make, and the files that Python and pytest are given, in blocks that are not run."""
    for language, block in blocks(page):
        for words in lines(block) if language in SHELL | {"console"} else ():
            if words[0] == "make":
                assert f"\n{words[1]}:" in (ROOT / "Makefile").read_text(encoding="utf-8")
            elif Path(words[0]).name == "python":
                ours = [word for word in words[1:] if word.startswith(("docs/", "evidence/", "tests/", "examples/"))]
                assert not [path for path in ours if not (ROOT / path).exists()], f"{page.name}: {shlex.join(words)}"


LINK = re.compile(r"\]\(([^)#:]+)(#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    for target, _ in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def site(name: str):
    """A module of what makes the site."""
    sys.path.insert(0, str(DOCS / "site"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.pop(0)


@pytest.mark.parametrize("name", ["cli_page", "server_api_page"])
def test_a_generated_reference_is_current(name):
    page = site(name)
    assert page.PAGE.read_text(encoding="utf-8") == page.page(), f"run python docs/site/{name}.py"


SHOWN = re.compile(r"^::: (\S+)$", re.MULTILINE)


def test_every_public_name_is_on_the_page_and_every_name_there_works():
    shown = SHOWN.findall((DOCS / "api.md").read_text(encoding="utf-8"))
    assert sorted(shown) == sorted(f"evenhand.{name}" for name in eh.__all__ if not name.startswith("_"))
    for module in ("datasets", "guarantees"):
        for name in getattr(eh, module).__all__:
            assert hasattr(getattr(eh, module), name)


def test_the_building_blocks_are_where_the_page_says():
    for path in SHOWN.findall((DOCS / "api-parts.md").read_text(encoding="utf-8")):
        module, _, name = path.rpartition(".")
        try:
            importlib.import_module(path)
        except ModuleNotFoundError:
            assert hasattr(importlib.import_module(module), name), path


@pytest.mark.parametrize("name", ["doctests", "glossary_links", "unbroken"])
def test_what_makes_the_site_does_what_it_says(name):
    assert doctest.testmod(site(name)) == (0, 1)


def test_the_site_asks_no_other_host_for_anything(monkeypatch):
    """Its plugins may add scripts of their own, so they are run; pages from a folder have no search otherwise, offline."""
    monkeypatch.setenv("NO_MKDOCS_2_WARNING", "1")
    config = importlib.import_module("mkdocs.config").load_config(str(ROOT / "mkdocs.yml"))
    config = config.plugins.on_config(config)
    asked = [*config.extra["polyfills"], *config.extra_css, *map(str, config.extra_javascript)]
    assert not [path for path in asked if "//" in path]
    assert (DOCS / "assets/iframe-worker.js").exists()


def test_links_to_the_glossary_leave_code_as_it_is():
    links = site("glossary_links")
    made = links.linked((DOCS / "guide.md").read_text(encoding="utf-8"), links.words())
    assert BLOCK.findall(made) == blocks(DOCS / "guide.md")


def test_the_tables_of_the_readme_run(tmp_path, monkeypatch):
    """`curate` and `plan` as they stand there, on a file that the reader would have; with fewer trials, to be quick."""
    monkeypatch.chdir(tmp_path)
    people = [f"{('women', 'men')[k % 3 > 0]},{20 + k % 40},{('no', 'yes')[k * k % 7 > 2]}" for k in range(1500)]
    Path("people.csv").write_text("\n".join(["sex,age,hired", *people]) + "\n", encoding="utf-8")
    ours = [words for _, block in blocks(ROOT / "README.md") if "people.csv --label" in block for words in lines(block)]
    assert [words[1] for words in ours] == ["curate", "plan"]
    for words, fewer in zip(ours, (["--compare", "1"], ["--trials", "2", "--final", "plain"]), strict=True):
        run([*words, *fewer], monkeypatch)
    assert Path("train.report.html").exists()


def test_the_commands_of_the_guide_to_tables_run(tmp_path, monkeypatch):
    """On files that the reader would have; with fewer trials, to be quick."""
    monkeypatch.chdir(tmp_path)
    k = np.arange(12_000)
    frame = pd.DataFrame(
        {"sex": np.where(k % 3, "men", "women"), "age": 20 + k % 40, "hired": np.where(k * k % 7 > 2, "yes", "no")}
    )
    frame.assign(race=np.where(k % 5, "a", "b")).rename(columns={"hired": "income"}).to_parquet("census.parquet")
    frame[:1500].to_csv("labelled.csv", index=False)
    frame.drop(columns="hired")[:1500].to_csv("pool.csv", index=False)
    ours = [words for language, block in blocks(DOCS / "tables.md") if language == "console" for words in lines(block)]
    fewer = {
        "census.parquet": ["--compare", "1"],
        "--pilot": ["--trials", "2", "--final", "plain"],
        "pool.csv": ["--force"],
    }
    assert {words[2] for words in ours} == set(fewer)
    for words in ours:
        run([*words, *fewer[words[2]]], monkeypatch)
    assert len(pd.read_csv("train.todo.csv")) > 0


def test_the_report_of_the_page_guide_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EVENHAND_DB", raising=False)
    (words,) = (words for _, block in blocks(DOCS / "page.md") if "campaign report" in block for words in lines(block))
    run(["evenhand", "campaign", "create", "survey", "--group", "u", "--group", "v", "--budget", "20"], monkeypatch)
    run(words, monkeypatch)
    assert Path("survey.html").stat().st_size > 10_000


def test_the_campaign_of_the_readme_runs(tmp_path, monkeypatch):
    """The commands as they stand there; people fill in the labels between `ask` and `tell`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EVENHAND_DB", raising=False)
    people = [f"p{k},{('women', 'men')[k % 3 > 0]},{20 + k % 40}" for k in range(300)]
    Path("people.csv").write_text("\n".join(["person,sex,age", *people]) + "\n", encoding="utf-8")
    (block,) = (block for _, block in blocks(ROOT / "README.md") if "campaign create" in block)
    for words in lines(block):
        if words[2] == "tell":
            head, *rows = Path("todo.csv").read_text(encoding="utf-8").splitlines()
            answered = [f"{('no', 'yes')[k % 2]}{row}" for k, row in enumerate(rows)]
            Path("done.csv").write_text("\n".join([head, *answered]) + "\n", encoding="utf-8")
        run(words, monkeypatch)
    assert len(Path("predicted.csv").read_text(encoding="utf-8").splitlines()) == 301

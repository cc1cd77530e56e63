"""The numbers in docs/reproduction.md are those of docs/results."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

from evenhand.experiments.catalogue import experiments

DOCS = Path(__file__).parents[2] / "docs"
RESULTS = json.loads((DOCS / "results/results.json").read_text(encoding="utf-8"))["experiments"]


@pytest.fixture(scope="module")
def page():
    return (DOCS / "reproduction.md").read_text(encoding="utf-8")


def load(name):
    spec = importlib.util.spec_from_file_location(name, DOCS / "results" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_result_is_on_the_page(page):
    shown = set(re.findall(r"<!-- begin ([\w-]+) -->", page))
    assert {name for name, entry in RESULTS.items() if "numbers" in entry} <= shown
    assert all((DOCS / image).exists() for image in re.findall(r"\]\((results/[\w-]+\.png)\)", page))


@pytest.mark.parametrize(
    "name", [name for name, entry in RESULTS.items() if entry["scale"] == "paper" and "numbers" in entry]
)
def test_paper_scale_results_are_of_the_studies_as_they_are_now(name):
    entry = RESULTS[name]
    cut = re.search(r"--image-rounds (\d+)", entry["command"])
    studies = experiments()[name].at("paper", None, None, int(cut[1]) if cut else None)
    assert not entry["failures"]
    for study, kept in entry["studies"].items():
        assert (kept["budget"], kept["trials"]) == (studies[study].budget, studies[study].trials)
        assert kept["strategies"] == dict(studies[study].strategies)


def test_the_model_kept_is_the_default():
    import evenhand as eh

    search = load("search_synthetic2")
    assert search.model(search.BASE) == eh.SyntheticModel2()
    kept = json.loads(search.FILE.read_text(encoding="utf-8"))["rounded"][0]
    assert kept["settings"] == search.BASE
    assert kept["gain"] >= 0.03


@pytest.mark.parametrize("arguments", [["--help"], [], ["--rounded"], ["search"], ["search", "many"], ["round"]])
def test_the_search_runs_only_what_it_is_asked_for(arguments, monkeypatch, tmp_path):
    search = load("search_synthetic2")
    monkeypatch.setattr(search, "FILE", tmp_path / "found.json")
    with pytest.raises(SystemExit):
        search.main(arguments)
    assert not search.FILE.exists()


@pytest.mark.parametrize("arguments", [["rounded"], ["search", "3"]])
def test_a_step_of_the_search_keeps_what_the_other_found(arguments, monkeypatch, tmp_path):
    search = load("search_synthetic2")
    monkeypatch.setattr(search, "FILE", tmp_path / "found.json")
    monkeypatch.setattr(search, "tried", lambda settings, trials: {"settings": settings, "score": 0.0})
    search.FILE.write_text('{"runs": {"kept": {}}}')
    search.main(arguments)
    found = json.loads(search.FILE.read_text(encoding="utf-8"))
    assert found["runs"].keys() == {"kept", arguments[0]}
    assert found["runs"][arguments[0]]["command"].endswith(f"search_synthetic2.py {' '.join(arguments)}")
    assert len(found["rounded" if arguments == ["rounded"] else "searched"]) == (6 if arguments == ["rounded"] else 3)

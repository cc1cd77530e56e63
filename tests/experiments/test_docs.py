"""The numbers in docs/reproduction.md are those of docs/results."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

from evenhand.experiments.catalogue import experiments
from evenhand.experiments.judging import judge_again

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


def test_the_verdicts_are_those_of_the_kept_values():
    again = judge_again(DOCS / "results", [])
    # none is missing from both files
    assert set(again) == set(experiments())
    for name, claims in again.items():
        kept = {claim["text"]: claim for claim in RESULTS[name]["claims"]}
        for claim, published in claims:
            assert claim == published
            assert claim.text in kept


def test_the_model_kept_is_the_default():
    import evenhand as eh

    search = load("search_synthetic2")
    assert search.model(search.BASE) == eh.SyntheticModel2()
    kept = json.loads(search.FILE.read_text(encoding="utf-8"))["rounded"][0]
    assert kept["settings"] == search.BASE
    assert kept["gain"] >= 0.03

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


def test_the_page_is_what_the_results_render_to(page):
    assert load("render").render(page) == page


def test_every_result_is_on_the_page(page):
    shown = set(re.findall(r"<!-- begin ([\w-]+) -->", page))
    assert {name for name, entry in RESULTS.items() if "numbers" in entry} <= shown
    assert all((DOCS / image).exists() for image in re.findall(r"\]\((results/[\w-]+\.png)\)", page))


@pytest.mark.parametrize(
    "name", [name for name, entry in RESULTS.items() if entry["scale"] == "paper" and "numbers" in entry]
)
def test_paper_scale_results_are_of_the_studies_as_they_are_now(name):
    studies = experiments()[name].at("paper", None, None)
    entry = RESULTS[name]
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


def test_the_tables_of_results_are_what_their_runs_render_to():
    page = (DOCS / "results.md").read_text(encoding="utf-8")
    tables = load("tables")
    assert tables.render(page) == page
    assert set(re.findall(r"<!-- begin ([\w-]+) -->", page)) >= {f"{name}-half" for name in tables.RUNS}


THEORY = json.loads((DOCS / "assets/theory.json").read_text(encoding="utf-8"))


def cells(page, first):
    text = (DOCS / page).read_text(encoding="utf-8").replace("−", "-")
    row = next(line for line in text.splitlines() if line.startswith(f"| {first}"))
    return [cell.strip() for cell in row.strip("|").split("|")][1:]


@pytest.mark.parametrize("rule", ["optimistic:c0=0.1", "epsilon-greedy:epsilon=0.1", "epsilon-greedy:epsilon=0.5"])
def test_excess_risks_of_the_theory_page_are_those_of_its_run(rule):
    shown = [float(cell) for cell in cells("theory.md", f"`{rule}`")[:7]]
    assert shown == [round(value, 4) for value in THEORY["excess"][rule]["mean"]]


def test_lower_bounds_and_steering_scores_are_those_of_their_runs():
    for row in THEORY["pairs"]["rows"]:
        shown = [float(cell) for cell in cells("theory.md", f"{row['labels']:,} | 0.000")]
        assert shown == [round(row["bound"], 5), round(row["u_harder"], 4), round(row["v_harder"], 4)]
    for rule in ("optimistic:c0=0.1", "greedy", "uniform"):
        found = THEORY["steering"][rule]
        shown = cells("certificates.md", f"`{rule}`")
        assert float(shown[2].split()[0]) == round(found["bias_u"]["mean"], 3)
        assert float(shown[3]) == round(found["risk_u"], 3)

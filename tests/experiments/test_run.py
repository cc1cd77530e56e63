import json
from dataclasses import replace

import pytest

from evenhand.claims.paired import DOES_NOT_HOLD, HOLDS
from evenhand.experiments import run as running
from evenhand.experiments import study as studies
from evenhand.experiments.base import Experiment, Findings, Number, measured
from evenhand.experiments.catalogue import choose, experiments
from evenhand.experiments.drawing import draw_share, panels
from evenhand.experiments.measures import curves, final_share
from evenhand.experiments.run import Options, reproduce
from evenhand.experiments.study import Study
from evenhand.experiments.verdicts import NOT_TESTED, Above, Test
from evenhand.simulation import blocks

LESS = Test("u gets less than half", (Above("half less the share of u"),))


def find(runs, scale):
    figure, (ax,) = panels(["a panel"], "round", "share of u")
    draw_share(ax, runs["I"], "u", 0.2)
    share = final_share(runs["I"]["ours"], "u")
    found = {LESS.claim: measured({"half less the share of u": 0.5 - share})}
    return Findings(figure, curves(runs["I"]), [Number("share of u", float(share.mean()), paper=0.2)], found)


def experiment(**changes):
    rules = {"ours": "optimistic", "even": "uniform"}
    settings = {"budget": 40, "trials": 8, "quick": {"trials": 4}, "block": 2} | changes
    return Experiment(
        "fig-convergence", "A title", "It converges.", {"I": Study("synthetic1:I", rules, **settings)}, find, (LESS,)
    )


@pytest.fixture
def counted(monkeypatch):
    """The trials that were really run."""
    ran = []
    whole = blocks.run_block

    def run(source, strategy, learner, settings, trials, tick):
        ran.extend((str(strategy), trial) for trial in trials)
        return whole(source, strategy, learner, settings, trials)

    monkeypatch.setattr(blocks, "run_block", run)
    return ran


def entry(out):
    return json.loads((out / "results.json").read_text())["experiments"]["fig-convergence"]


def test_all_files_and_what_is_in_them(tmp_path):
    (outcome,) = reproduce([experiment()], tmp_path, Options())
    assert (outcome.status, outcome.ran) == ("done", 8)
    assert entry(tmp_path)["claims"][0]["verdict"] == NOT_TESTED
    for kind in ("png", "svg", "csv"):
        assert (tmp_path / f"fig-convergence.{kind}").stat().st_size > 500
    found = entry(tmp_path)
    assert found["claims"][0]["test"] == "half less the share of u: holds above 0, fails below 0"
    assert found["numbers"][0]["paper"] == 0.2
    assert found["command"] == "evenhand reproduce fig-convergence --scale quick --jobs 1"
    assert {"numpy", "evenhand", "python"} <= set(found["versions"])
    page = (tmp_path / "index.html").read_text()
    for text in ("It converges.", "fig-convergence.svg", "u gets less than half", "holds", "0.200"):
        assert text in page


def test_quick_figures_are_watermarked(tmp_path):
    for scale in ("quick", "paper"):
        reproduce([experiment()], tmp_path / scale, Options(scale=scale, trials=2))
        drawn = (tmp_path / scale / "fig-convergence.svg").read_text()
        assert ("quick scale" in drawn) == (scale == "quick")


def test_a_changed_test_judges_the_kept_trials_anew(tmp_path, counted):
    easier, harder = (
        replace(experiment(), tests=(replace(LESS, comparisons=(Above("half less the share of u", bound),)),))
        for bound in (-2, 2)
    )
    reproduce([easier], tmp_path, Options(scale="paper"))
    assert entry(tmp_path)["claims"][0]["verdict"] == HOLDS
    counted.clear()
    (outcome,) = reproduce([harder], tmp_path, Options(scale="paper"))
    assert (outcome.status, counted) == ("done", [])
    assert entry(tmp_path)["claims"][0]["verdict"] == DOES_NOT_HOLD


def test_the_same_command_twice_does_no_work(tmp_path, counted):
    reproduce([experiment()], tmp_path, Options())
    times = {path: path.stat().st_mtime_ns for path in tmp_path.glob("fig-*")}
    counted.clear()
    (outcome,) = reproduce([experiment()], tmp_path, Options())
    assert outcome.status == "kept"
    assert not counted
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("fig-*")} == times


def test_more_trials_extend_what_is_there(tmp_path, counted):
    reproduce([experiment()], tmp_path / "a", Options(trials=3))
    counted.clear()
    reproduce([experiment()], tmp_path / "a", Options(trials=5))
    assert sorted(counted) == [("optimistic", 3), ("optimistic", 4), ("uniform", 3), ("uniform", 4)]
    reproduce([experiment()], tmp_path / "b", Options(trials=5))
    assert (tmp_path / "a/fig-convergence.csv").read_text() == (tmp_path / "b/fig-convergence.csv").read_text()


def test_a_changed_setting_runs_anew(tmp_path, counted):
    reproduce([experiment()], tmp_path, Options())
    counted.clear()
    reproduce([experiment(budget=42)], tmp_path, Options())
    assert len(counted) == 8


def test_a_stopped_run_resumes(tmp_path, monkeypatch, counted):
    put, kept = running.Store.put, []

    def stop_at_third(store, settings, record):
        if len(kept) == 2:
            raise KeyboardInterrupt
        kept.append(record)
        put(store, settings, record)

    monkeypatch.setattr(running.Store, "put", stop_at_third)
    with pytest.raises(KeyboardInterrupt):
        reproduce([experiment()], tmp_path / "a", Options())
    monkeypatch.setattr(running.Store, "put", put)
    counted.clear()
    reproduce([experiment()], tmp_path / "a", Options())
    assert len(counted) == 8 - 4
    reproduce([experiment()], tmp_path / "b", Options())
    assert (tmp_path / "a/fig-convergence.csv").read_text() == (tmp_path / "b/fig-convergence.csv").read_text()


def test_a_failed_trial_costs_no_other_and_is_tried_again(tmp_path, monkeypatch):
    whole = blocks.run_block

    def fail_on_three(source, strategy, learner, settings, trials, tick):
        if 3 in trials and str(strategy) == "uniform":
            raise ZeroDivisionError("three")
        return whole(source, strategy, learner, settings, trials)

    monkeypatch.setattr(blocks, "run_block", fail_on_three)
    told = []
    (outcome,) = reproduce([experiment()], tmp_path, Options(), lambda *now: told.append(now))
    assert outcome.status == "failed"
    (failure,) = outcome.failures
    assert (failure["strategy"], failure["trial"], failure["seed"]) == ("even", 3, 0)
    assert failure["error"].endswith("ZeroDivisionError: three")
    assert told[-1] == ("fig-convergence", 7, 1, 8)
    assert "I, even, trial 3, seed 0" in (tmp_path / "index.html").read_text()
    monkeypatch.setattr(blocks, "run_block", whole)
    assert [(o.status, o.ran) for o in reproduce([experiment()], tmp_path, Options())] == [("done", 1)]


def test_a_failure_names_its_study_where_two_have_the_same_source(tmp_path, monkeypatch):
    whole = blocks.run_block

    def fail_with_large_budgets(source, strategy, learner, settings, trials, tick):
        if settings.budget == 44:
            raise ZeroDivisionError("large")
        return whole(source, strategy, learner, settings, trials, tick=tick)

    monkeypatch.setattr(blocks, "run_block", fail_with_large_budgets)
    both = experiment().studies | {"I, longer": experiment(budget=44).studies["I"]}
    two = Experiment("fig-convergence", "A title", "It converges.", both, find, (LESS,))
    (outcome,) = reproduce([two], tmp_path, Options(trials=1))
    assert {failure["study"] for failure in outcome.failures} == {"I, longer"}


def test_absent_data_skip_the_experiment_and_not_the_others(tmp_path, monkeypatch):
    monkeypatch.setattr(studies, "open_source", _no_images)
    studies._source.cache_clear()
    outcomes = reproduce([*choose(["fig-fashion"]), experiment()], tmp_path, Options(trials=2))
    assert [outcome.status for outcome in outcomes] == ["skipped", "done"]
    assert outcomes[0].absent == {"FashionMNIST": "put the files into a folder"}
    assert "put the files into a folder" in (tmp_path / "index.html").read_text()


def test_images_can_be_left_out(tmp_path):
    chosen = [*choose(["fig-fashion"]), experiment()]
    outcomes = reproduce(chosen, tmp_path, Options(trials=2, image_rounds=0))
    assert [outcome.status for outcome in outcomes] == ["skipped", "done"]
    assert outcomes[0].absent == {"FashionMNIST": "left out: --image-rounds 0"}
    assert (
        "--image-rounds"
        not in json.loads((tmp_path / "results.json").read_text())["experiments"][chosen[1].id]["command"]
    )


def _no_images(name, **settings):
    from evenhand.sources.catalogue import open_source

    if not name.startswith("synthetic"):
        raise ValueError("put the files into a folder")
    return open_source(name, **settings)


def test_an_experiment_without_all_its_data_runs_with_what_is_there(tmp_path, monkeypatch):
    monkeypatch.setattr(studies, "open_source", _no_images)
    studies._source.cache_clear()
    both = {"I": experiment().studies["I"], "images": Study("cifar10", {"ours": "optimistic"}, budget=10, trials=1)}
    partial = Experiment("fig-convergence", "A title", "It converges.", both, find, (LESS,), optional=True)
    (outcome,) = reproduce([partial], tmp_path, Options(trials=2))
    assert outcome.status == "done"
    assert list(outcome.absent) == ["images"]


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("dear")
    with pytest.raises(ValueError, match="holds no earlier reproduction"):
        reproduce([experiment()], tmp_path, Options())


@pytest.mark.parametrize(
    ("settings", "message"), [({"scale": "huge"}, "scale must be"), ({"trials": 0}, "trials must be 1")]
)
def test_bad_options(settings, message):
    with pytest.raises(ValueError, match=message):
        Options(**settings)


def test_every_figure_and_table_is_there():
    wanted = """fig-mixture-curve fig-convergence fig-over-exploration fig-adult fig-german fig-fashion-mixture fig-fashion
    fig-cifar fig-utkface fig-fashion-groups fig-cifar-groups fig-utkface-groups fig-trend table-final"""
    assert set(experiments()) == set(wanted.split())
    with pytest.raises(ValueError, match="did you mean 'fig-adult'"):
        choose(["fig-adlut"])

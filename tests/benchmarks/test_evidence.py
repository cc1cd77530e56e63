"""What the paper discusses, and image trials judged as the paper's claims."""

import json
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import evenhand as eh
from evenhand.experiments.catalogue import experiments

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "docs/results").glob("images-fashion-trials*.json"))


def test_more_of_v_helps_v_and_hurts_u(tmp_path):
    import_module("discussion").main(["--out", str(tmp_path), "--trials", "20", "--only", "bandits"])
    found = json.loads((tmp_path / "discussion.json").read_text())["bandits"]
    assert found["few_to_many"]["v"]["low"] > 0 > found["few_to_many"]["u"]["high"]
    assert len(set(found["arm_error"])) == 1
    assert (tmp_path / "discussion-bandits.png").stat().st_size > 1000
    # the last point by scikit-learn: the same examples, judged by a large sample
    from sklearn.linear_model import LogisticRegression

    model = eh.SyntheticModel1.instance("II")
    values = []
    for trial in range(3):
        stream = model.open(0, [trial])
        u, v = stream.draw(np.array([0]), np.array([50])), stream.draw(np.array([1]), np.array([1000]))
        fitted = LogisticRegression().fit(np.vstack([u.X, v.X]), np.concatenate([u.y, v.y]))
        fresh = model.open(1, [trial]).draw(np.array([0]), np.array([20_000]))
        values.append(np.mean(fitted.predict(fresh.X) == fresh.y))
    assert np.mean(values) == pytest.approx(found["accuracy"]["u"][-1], abs=0.05)


def test_image_trials_are_judged_by_their_own_numbers():
    claims = import_module("image_claims")
    runs = claims.records(claims.counted(FILES))
    ends = {}
    for file in FILES:
        for run in json.loads(file.read_text())["runs"]:
            ends[run["rule"], run["trial"]] = min(run["final"]["half"].values())
    trials = sorted(trial for rule, trial in ends if rule == "uniform" and ("A_opt", trial) in ends)
    trials = [trial for trial in trials if ("greedy", trial) in ends]
    # runs test different rounds: a curve has those that all of them tested, and no mean over some of the trials
    nothing = np.isnan(runs["FashionMNIST"]["A_opt"].accuracy)
    assert (nothing.any(axis=(1, 2)) == nothing.all(axis=(1, 2))).all()
    assert 1 < (~nothing.all(axis=(1, 2))).sum() < 25
    figure = experiments()["fig-fashion"]
    measured = figure.find(runs, "paper").measured
    for rule, label in (("A_opt", "A_opt"), ("greedy", "Greedy")):
        expected = [ends[rule, trial] - ends["uniform", trial] for trial in trials]
        values = measured[f"{label} beats Uniform on the worst group"].values
        assert values[f"{label} − Uniform at the end"] == pytest.approx(expected, abs=1e-5)
    for claim in figure.claims(measured):
        assert claim.verdict in ("holds", "open", "does not hold")
        assert f"100 of the paper's 500 rounds, {len(trials)} trials" in claim.evidence


def test_figures_and_table_go_into_the_folder_of_a_reproduction(tmp_path):
    import_module("image_claims").main(["--out", str(tmp_path), *map(str, FILES)])
    kept = json.loads((tmp_path / "results.json").read_text())["experiments"]
    assert set(kept) == {"fig-fashion", "fig-fashion-groups", "fig-fashion-mixture", "table-final"}
    assert [claim["text"] for claim in kept["table-final"]["claims"]] == ["FashionMNIST: A_opt ends ahead of Uniform"]
    # when and how long is the trials' own, not that of the judging
    runs = [run for file in FILES for run in json.loads(file.read_text())["runs"]]
    last = max(run["finished"] for run in runs).replace("T", " ")
    for entry in kept.values():
        assert entry["date"] == f"{last[:16]} UTC"
        assert entry["worker_seconds"] == pytest.approx(sum(run["cpu_seconds"] for run in runs))

"""Intervals on the pages, beside scipy's on the stored values."""

import json
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, t, ttest_1samp, ttest_rel

ROOT = Path(__file__).parents[1]


def stored(name):
    return json.loads((ROOT / "docs/results" / name).read_text(encoding="utf-8"))


@pytest.fixture
def made(monkeypatch):
    """Modules of docs/results and benchmarks by name."""
    monkeypatch.syspath_prepend(str(ROOT / "docs/results"))
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return import_module


def rows_of(text):
    """The rows of a rendered table by their first cell."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return {row[0]: row[1:] for row in rows}


def over_data_sets(pairs, *, real=False, digits=2):
    """Mean and interval by pandas and scipy: the data set of a source is told from its name."""
    frame = pd.DataFrame(pairs, columns=["source", "value"]).groupby("source")["value"].mean()
    means = frame.groupby(frame.index.str.replace(r" by age|, uneven|:I+$", "", regex=True)).mean()
    means = means[~means.index.str.startswith("synthetic")] if real else means
    assert len(means) == (7 if real else 9)
    low, high = ttest_1samp(means, 0).confidence_interval()
    return shown(means.mean(), low, high, digits)


def shown(mean, low, high, digits=1):
    return f"{mean:+.{digits}f} [{low:+.{digits}f}, {high:+.{digits}f}]".replace("-", "−")


def test_every_source_belongs_to_one_data_set(made):
    data_sets = made("blocks.data_sets")
    named = [source for sources in data_sets.DATA_SETS.values() for source in sources]
    measured = {cell["source"] for cell in stored("models.json")["boldness"]["found"]["cells"]}
    assert sorted(named) == sorted(made("model_runs.sources").SOURCES)
    assert set(named) == measured
    assert data_sets.counted(named) == "13 sources of 9 data sets"


def test_sources_of_a_data_set_are_averaged_first(made):
    cells = [("adult", 1.0), ("adult", 3.0), ("adult by age", 4.0), ("wine", 6.0), ("synthetic2", 9.0)]
    over = made("blocks.data_sets").over_data_sets
    for real, means in ((False, [3, 6, 9]), (True, [3, 6])):
        low, high = ttest_1samp(means, 0).confidence_interval()
        assert over(cells, real=real) == pytest.approx({"mean": np.mean(means), "low": low, "high": high})
    with pytest.raises(KeyError):
        over([("a new source", 1.0)])


@pytest.mark.parametrize("rule", ["A_opt", "Uniform", "Uncurated", "Greedy"])
def test_regrets_and_gains_of_rules(made, rule):
    part = stored("models.json")["boldness"]
    cells = part["found"]["cells"]
    own = [(cell["source"], cell["regret"][rule][0]) for cell in cells]
    row = rows_of(made("blocks.models").regrets(part))[rule]
    assert row[:2] == [over_data_sets(own), over_data_sets(own, real=True)]
    ahead = [(cell["source"], cell["regret"][rule][0] - cell["regret"]["A_opt"][0]) for cell in cells]
    assert row[2] == ("" if rule == "A_opt" else over_data_sets(ahead))
    ends = np.array([cell["regret"][rule][1:] for cell in cells])
    assert row[4] == f"{(ends[:, 0] > 0).sum()} / {(ends[:, 1] < 0).sum()}"
    gains = made("blocks.newcomers").buys(part)
    (first,) = (row[0] for title, row in rows_of(gains).items() if title.strip("*").startswith(rule))
    assert first == over_data_sets([(source, -value) for source, value in own])
    if rule == "A_opt":
        assert f"A_opt gains {over_data_sets([(source, -value) for source, value in own], real=True)}" in gains


def test_prices_substitutes_and_methods(made):
    models, found = made("blocks.models"), stored("models.json")
    rows = found["price"]["found"]["rows"]
    cells = [(row["source"], row[rule]["mean"]) for row in rows for rule in ("Uniform", "A_opt")]
    assert f"over data sets: **{over_data_sets(cells)} points**" in models.price(found["price"])
    both = [(row["source"], row["A_opt chosen over Uniform plain"]["mean"]) for row in rows]
    row = rows_of(models.substitutes(found["price"]))["both: A_opt, chosen − Uniform, plain"]
    assert row == [over_data_sets(both), over_data_sets(both, real=True)]
    ours = rows_of(models.methods(found["methods"]))
    for method in ("final_model", "Minimax"):
        gains = [(cell["source"], 100 * cell["gain"][method][0]) for cell in found["methods"]["found"]["cells"]]
        assert ours[method][0] == over_data_sets(gains)


def test_ways_to_train_are_compared_with_one_epoch(made):
    found = stored("image-settings.json")
    worst = pd.DataFrame(found["runs"]).set_index(["rule", "way", "trial"])["worst"].loc["A_opt"].unstack("way")
    rows = rows_of(made("blocks.image_settings").updates(found))
    for way in ("three epochs", "one epoch, crops and flips"):
        test = ttest_rel(worst[way], worst["one epoch"])
        low, high = 100 * np.array(test.confidence_interval())
        assert rows[way][6] == shown((low + high) / 2, low, high)
    assert (rows["one epoch"][6], rows["one step, as the paper"][5]) == ("", "")


def test_largest_shares_are_those_of_single_trials(made):
    """Half of the trials at one pair and half at another have no pair of a large mean share, and yet large shares."""
    way = made("blocks.image_settings").FIRST
    plus = "optimistic:c0=0.1,c1={},window=20"
    runs = []
    for trial, (top, other) in enumerate((("a", "b"), ("b", "a"), ("a", "b"))):
        for rule, gain, share in (
            ("A_opt", 0.0, 0.5),
            (plus.format("0.01"), -0.02 * trial, 0.6),
            (plus.format("0.03"), -0.1, 0.7),
            (plus.format("0.1"), -0.2, 0.9),
        ):
            mixture = {top: share + 0.01 * trial, other: 0.1}
            worst = 0.8 + gain + 0.001 * trial * (rule != "A_opt")
            runs.append({"way": way, "rule": rule, "trial": trial, "worst": worst, "mixture": mixture})
    made_by = {"command": "c", "date": "d", "cores": 1, "versions": {}, "rounds": 3, "labels": 30}
    text = made("blocks.image_settings").trend({"runs": runs, **made_by})
    rows = rows_of(text)
    assert rows["A_opt+, c1 = 0.1"][3] == "91 %: a in 2, b in 1"
    assert rows["A_opt, no trend term"][2:] == ["", "51 %: a in 2, b in 1"]
    assert "c0 = 0.1, window 20." in text
    assert "Beyond the interval behind A_opt: c1 = 0.03 and 0.1; ahead of A_opt: none." in text


def test_bars_of_the_grid_search(made):
    half = made("discussion").half_interval
    assert half(0.2, 25) == pytest.approx(t.interval(0.95, 24, 0, 0.2 / 5)[1])
    assert half(1.0, 10**6) == pytest.approx(norm.ppf(0.975) / 1000, rel=1e-4)

"""Image trials: killed and started again, kept one by one, compared in pairs."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_rel

from evenhand.engine.run import Settings
from evenhand.sources.images.images import Images
from image_trials import append, header_of, keep_finding, main, numbers, repeat, run_trials, summary

RULES = ["A_opt=optimistic:c0=0.1", "uniform"]
SETTINGS = Settings(240, batch=10, warmup=2, seed=0, evaluate=4)
STORED = Path(__file__).parents[2] / "docs" / "results" / "images-fashion-trials.json"
TIMES = ("started", "finished", "seconds", "cpu_seconds", "resumed")


def pictures() -> Images:
    rng = np.random.default_rng(0)
    y, group = rng.integers(0, 2, 300), np.array(["bright", "dark"])[np.arange(300) % 2]
    X = rng.integers(0, 100, (300, 8, 8)) + (np.where(group == "bright", 80, 20) * y)[:, None, None]
    return Images(X.astype(np.uint8), y, group, test=0.3, network="cnn1", name="small")


class Kill:
    """The process is killed after so many rounds."""

    def __init__(self, rounds: int) -> None:
        self.left = rounds

    def __call__(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


def runs_of(path: Path) -> list[dict[str, object]]:
    return json.loads(path.read_text(encoding="utf-8"))["runs"]


def test_killed_twice_and_started_again(tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole.json", tmp_path / "cut.json"
    run_trials(pictures(), RULES, [3], SETTINGS, out=whole, keep=tmp_path / "a")
    for rounds in (8, 17):
        with pytest.raises(KeyboardInterrupt):
            run_trials(pictures(), RULES, [3], SETTINGS, out=cut, keep=tmp_path / "b", every=3, tick=Kill(rounds))
    assert [(run["rule"], run["trial"]) for run in runs_of(cut)] == [("A_opt", 3)]
    for _ in range(2):
        run_trials(pictures(), RULES, [3], SETTINGS, out=cut, keep=tmp_path / "b", every=3)
    assert [run["resumed"] for run in runs_of(cut)] == [True, True]
    for one, other in zip(runs_of(whole), runs_of(cut), strict=True):
        assert {k: v for k, v in one.items() if k not in TIMES} == {k: v for k, v in other.items() if k not in TIMES}
    with pytest.raises(ValueError, match="name another file"):
        run_trials(pictures(), RULES, [3], Settings(300, batch=10, warmup=2), out=cut, keep=tmp_path / "b")


def test_a_file_has_the_form_of_the_stored_trials(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    run_trials(pictures(), ["uniform"], [0], SETTINGS, out=out, keep=tmp_path / "kept")
    stored, made = (json.loads(path.read_text(encoding="utf-8")) for path in (STORED, out))
    assert made.keys() == stored.keys() - {"code"}
    assert made["settings"].keys() == stored["settings"].keys()
    assert (made["about"], made["kinds"]) == (stored["about"], stored["kinds"])
    (run,) = made["runs"]
    assert list(run) == list(stored["runs"][0])
    assert run["labels"] == list(range(20, 241, 20))
    assert run["final"]["half"] == dict(zip(made["groups"], run["accuracy"][-1], strict=True))
    assert run["final_worst"]["all"] == min(run["final"]["all"].values())
    assert sum(value is not None for value in run["worst"]) == 4
    assert np.allclose(
        run["mixture"], np.array(run["counts"]) / np.sum(run["counts"], axis=1, keepdims=True), atol=1e-4
    )


def test_a_kept_trial_is_repeated_and_compared(tmp_path: Path) -> None:
    out, found = tmp_path / "out.json", tmp_path / "repeats.json"
    run_trials(pictures(), RULES, [1], SETTINGS, out=out, keep=tmp_path / "kept")
    for rule in ("A_opt", "uniform"):
        keep_finding(found, repeat(out, pictures(), rule, 1, 7))
    file = json.loads(out.read_text())
    # another choice, another loss: either is seen, in its round
    file["runs"][0]["chosen"][4] = 1 - file["runs"][0]["chosen"][4]
    file["runs"][0]["validation_loss"][5][0] += 1e-6
    out.write_text(json.dumps(file))
    keep_finding(found, changed := repeat(out, pictures(), "A_opt", 1, 7))
    assert (changed["same"], changed["differs_from"]) == (False, 5)
    assert changed["differs_in"] == ["chosen", "validation_loss"]
    assert [(one["rule"], one["same"]) for one in json.loads(found.read_text())["repeats"]] == [
        ("uniform", True),
        ("A_opt", False),
    ]
    # a whole trial has its final network compared too
    whole = repeat(out, pictures(), "uniform", 1, SETTINGS.rounds)
    assert whole["same"]
    assert whole["whole"]
    file["runs"][1]["final"]["all"]["dark"] += 0.01
    out.write_text(json.dumps(file))
    assert repeat(out, pictures(), "uniform", 1, SETTINGS.rounds)["differs_in"] == ["final"]
    with pytest.raises(ValueError, match="no trial 9"):
        repeat(out, pictures(), "A_opt", 9, 7)


def test_summary_agrees_with_scipy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(1)
    values = {rule: rng.uniform(0.7, 0.9, (6, 2)) for rule in ("A_opt", "uniform")}
    header = header_of(pictures(), SETTINGS)
    files = [tmp_path / "early.json", tmp_path / "late.json"]
    for rule, found in values.items():
        for trial, (half, everything) in enumerate(found.tolist()):
            run = {"rule": rule, "trial": trial, "final_worst": {"half": half, "all": everything}}
            append(files[trial // 3], header, run | {"worst": [None, 0.5, half]})
    rows = {(row["rule"], row["measure"]): row for row in summary(files, "uniform")}
    for i, measure in enumerate(("half", "all")):
        test = ttest_rel(values["A_opt"][:, i], values["uniform"][:, i])
        mean, low, high = rows["A_opt", measure]["difference"]
        assert (low, high) == pytest.approx(tuple(test.confidence_interval()))
        assert mean == pytest.approx((low + high) / 2)
    # two rounds were tested, equal in the first
    assert rows["A_opt", "rounds"]["difference"].mean == pytest.approx(rows["A_opt", "half"]["difference"].mean / 2)
    main(["summary", *map(str, files)])
    assert "6 trials" in capsys.readouterr().out
    with pytest.raises(ValueError, match="the rules are A_opt, uniform"):
        summary(files, "greedy")


def test_trial_numbers() -> None:
    assert numbers("0,3,5-7") == [0, 3, 5, 6, 7]

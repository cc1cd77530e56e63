"""Ways to train on images: stopped runs go on with their own dates, and runs of other settings are not mixed."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from evenhand.engine.run import Settings
from evenhand.errors import InputError
from evenhand.sources.images.images import Images
from image_settings import main, run_all
from provenance import commit, today

RESULTS = Path(__file__).parents[2] / "docs/results"
WAYS = {"one step": {"update": "step"}, "two steps": {"update": "step", "updates": 2}}
RULES = ["A_opt=optimistic:c0=0.1", "uniform"]
SETTINGS = Settings(120, batch=10, warmup=2, seed=0, evaluate=1)
COMMAND = "image_settings.py updates --rounds 6 --seed 0"


def pictures() -> Images:
    rng = np.random.default_rng(0)
    y, group = rng.integers(0, 2, 300), np.array(["bright", "dark"])[np.arange(300) % 2]
    X = rng.integers(0, 100, (300, 8, 8)) + (np.where(group == "bright", 80, 20) * y)[:, None, None]
    return Images(X.astype(np.uint8), y, group, test=0.3, network="cnn1", name="small")


def run(out: Path, trials: list[int]) -> dict[str, object]:
    run_all(pictures(), WAYS, RULES, trials, SETTINGS, command=COMMAND, out=out)
    return json.loads(out.read_text(encoding="utf-8"))


def test_a_file_grows_and_what_it_has_stays_as_it_is(tmp_path):
    out = tmp_path / "out.json"
    first = run(out, [0])
    assert [(one["way"], one["rule"]) for one in first["runs"]] == [
        (way, rule) for way in WAYS for rule in ("A_opt", "uniform")
    ]
    assert (first["rounds"], first["labels"], first["seed"], first["commit"]) == (6, 120, 0, commit())
    for one in first["runs"]:
        assert one["finished"].startswith("20")
        assert one["commit"] == commit()
        assert one["worst"] == min(one["accuracy"].values())
    text = out.read_bytes()
    run(out, [0])
    assert out.read_bytes() == text
    more = run(out, [0, 1])
    assert more["runs"][:4] == first["runs"]
    assert [one["trial"] for one in more["runs"][4:]] == 4 * [1]


def test_runs_of_an_earlier_day_keep_their_date(tmp_path):
    out = tmp_path / "out.json"
    kept = run(out, [0])
    # a file as it was before runs had dates
    bare = [{key: value for key, value in one.items() if key not in ("finished", "commit")} for one in kept["runs"]]
    out.write_text(json.dumps(kept | {"date": "2026-01-02", "runs": bare}), encoding="utf-8")
    days = [one["finished"][:10] for one in run(out, [0, 1])["runs"]]
    assert days[:4] == 4 * ["2026-01-02"]
    assert days[4:] == sorted(days[4:])
    assert days[4] > "2026-01-02"
    assert json.loads(out.read_text())["date"] in (days[-1], today())


@pytest.mark.parametrize(
    "other",
    [["trend", "--rounds", "7"], ["trend", "--seed", "5"], ["updates", "--rounds", "60"]],
    ids=lambda words: " ".join(words),
)
def test_runs_of_other_settings_are_refused(tmp_path, other):
    out = Path(shutil.copy(RESULTS / "image-trend.json", tmp_path))
    text = out.read_bytes()
    with pytest.raises(InputError, match="name another file"):
        main([*other, "--json", str(out), "--data-dir", str(tmp_path)])
    assert out.read_bytes() == text

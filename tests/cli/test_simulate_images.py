"""`evenhand simulate` on image files, run as a user runs it."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image


def evenhand(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from evenhand.cli import main; main()", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    """Forty small pictures with stripes, named by a table."""
    rng = np.random.default_rng(0)
    rows = []
    for i in range(40):
        picture = rng.integers(0, 100, (10, 10, 3))
        picture[2:5] += 100 * (i % 2)
        Image.fromarray(picture.astype(np.uint8)).save(tmp_path / f"{i}.png")
        rows.append({"path": f"{i}.png", "y": i % 2, "sex": "fm"[i // 2 % 2], "split": "test" if i >= 30 else "train"})
    pd.DataFrame(rows).to_csv(tmp_path / "images.csv", index=False)
    return tmp_path / "images.csv"


def test_a_manifest_needs_no_code(manifest: Path) -> None:
    common = ("simulate", manifest, "--label", "y", "--group", "sex", "--budget", 80, "--batch", 5, "--trials", 1)
    learner = f"network:update=epoch,checkpoint={manifest.parent / 'kept'},checkpoint_every=3"
    done = evenhand(*common, "--strategy", "uniform", "--learner", learner, "--out", manifest.parent / "out", "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["groups"] == ["f", "m"]
    assert summary["strategies"]["uniform"]["worst_group_accuracy"]["mean"] > 0.7
    trace = pd.read_parquet(manifest.parent / "out" / "trace.parquet")
    assert trace["round"].max() == 8
    assert len(list((manifest.parent / "kept").iterdir())) == 1


def test_what_is_wrong_is_said_without_a_traceback(manifest: Path) -> None:
    common = ("simulate", manifest, "--label", "y", "--group", "sex", "--budget", 80, "--batch", 5, "--trials", 1)
    wrong = {
        "network:device=cuda:7": "'cuda:7' was asked for, but PyTorch finds none",
        "network:speed=9": "speed",
    }
    for learner, message in wrong.items():
        done = evenhand(*common, "--learner", learner)
        assert (done.returncode, message in done.stderr, "Traceback" in done.stderr) == (2, True, False)
    for path in manifest.parent.glob("*.png"):
        if path.name != "0.png":
            path.write_bytes(b"no picture")
    done = evenhand(*common)
    assert done.returncode == 2
    assert "cannot be read" in done.stderr
    assert evenhand("simulate", "synthetic1:I", "--learner", "network").returncode == 2

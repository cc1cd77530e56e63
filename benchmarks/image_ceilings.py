"""What a network reaches that is trained on every image: of the worst-off group alone, and of all groups.

Run: python benchmarks/image_ceilings.py --json docs/results/image-ceilings.json          (`--only DATA …`, `--data-dir`)

No sampling rule beats these by much. A data set that is finished is not run again; with `--keep FILE` it is that file which grows,
and the other is its copy when all are there.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.arrays import Ints
from evenhand.learners.torch.learner import TorchModel
from evenhand.learners.torch.trainer import Trainer
from evenhand.sources.images.images import Images
from evenhand.sources.images.store import ImageRows
from image_trials import load
from provenance import about, write_json

SEED = 0


@dataclass(frozen=True)
class Case:
    """The groups of a data set that are trained on alone, and how long."""

    groups: tuple[str, ...]
    epochs: int


CASES = {
    "fashion-mnist": Case(("T-shirt/Shirt", "Pullover/Coat"), 12),
    "cifar10": Case(("bird/cat",), 8),
    "utkface": Case(("Asian",), 6),
    "utkface:crop_part1": Case(("Asian",), 6),
}


def training_rows(source: Images, group: str) -> Ints:
    """The images of a group that the first trial may draw, its test images left out."""
    z = source.groups.index(group)
    drawn = source.open(SEED, [0]).draw(np.array([z]), np.array([len(source.pool.y)]))
    return np.sort(drawn.rows)


def train(source: Images, rows: Ints, epochs: int) -> list[dict[str, float]]:
    """Test accuracy of every group after each epoch."""
    pool = source.pool
    trainer = Trainer(source.default_learner(update="epoch", threads=1), SEED)
    kept = trainer.new_set()
    kept.add(ImageRows(pool.store, rows), pool.y[rows], pool.group[rows])
    stream, found = source.open(SEED, [0]), []
    for _ in range(epochs):
        trainer.update([kept], source.groups)
        accuracy = stream.accuracies([TorchModel(trainer, source.classes)])[0]
        found.append({z: round(float(a), 4) for z, a in zip(source.groups, accuracy, strict=True)})
        print(found[-1], flush=True)
    return found


def measure(name: str, data_dir: Path | None) -> dict[str, Any]:
    """The ceilings of a data set."""
    case = CASES[name]
    # every image once, where trials draw from a half again and again
    source = load(name, data_dir, replace="never")
    spent = time.process_time()
    rows = {group: training_rows(source, group) for group in source.groups}
    sets = {group: rows[group] for group in case.groups} | {"everything": np.sort(np.concatenate([*rows.values()]))}
    ceilings = [
        {"trained_on": name, "images": len(part), "accuracy": train(source, part, case.epochs)}
        for name, part in sets.items()
    ]
    return {"groups": list(source.groups), "cpu_seconds": round(time.process_time() - spent), "ceilings": ceilings}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--keep", type=Path, help="the file that grows, unless it is that of --json")
    given = parser.parse_args()
    growing = given.keep or given.json
    found = json.loads(growing.read_text(encoding="utf-8")) if growing.exists() else {"data": {}}
    for name in given.only:
        if name in found["data"]:
            continue
        found["data"][name] = measure(name, given.data_dir)
        head = about(f"image_ceilings.py --json {given.json}", "torch", "numpy", seeds=[SEED])
        found = head | {"data": found["data"]}
        write_json(growing, found)
    write_json(given.json, found)


if __name__ == "__main__":
    main()

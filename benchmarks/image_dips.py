"""Full-batch Adam now and then throws a trained network off for some rounds: what mends the model that answers.

Run: python benchmarks/image_dips.py --json docs/results/image-dips.json          (`--trials`, `--rounds`, `--data-dir`)

FashionMNIST drawn uniformly, one full-batch step of Adam a round, as the paper's heuristic form has it. All ways are read off the
same training: the weights as they are, means of the last weights, and the weights of the last rounds with the smallest training loss.
"""

from __future__ import annotations

import argparse
import time
from collections import deque
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np

from evenhand import datasets
from evenhand.arrays import Floats
from evenhand.claims.paired import paired
from evenhand.learners.torch.learner import TorchModel
from evenhand.learners.torch.trainer import Trainer
from evenhand.sources.images.images import Images
from provenance import about, write_json

Weights = dict[str, Any]
LAST, BEST, MOVING = (5,), (5,), (0.8,)
HARD = "T-shirt/Shirt"
"""The worst pair of uniform draws; only its test images are looked at."""


class Ways:
    """The weights that each way would answer with, round by round."""

    def __init__(self) -> None:
        self.recent: deque[Weights] = deque(maxlen=max(LAST))
        self.losses: deque[float] = deque(maxlen=max(LAST))
        self.moving: dict[float, Weights] = {}

    def add(self, weights: Weights, loss: float) -> dict[str, Weights]:
        """Take the weights of a round; the weights of every way."""
        self.recent.append(deepcopy(weights))
        self.losses.append(loss)
        for decay in MOVING:
            old = self.moving.setdefault(decay, deepcopy(weights))
            # little is kept at first: the weights of the start would stay in the mean for long
            keep = min(decay, len(self.recent) / (1 + len(self.recent)))
            self.moving[decay] = {name: keep * old[name] + (1 - keep) * value for name, value in weights.items()}
        found = {"as it is": weights} | {f"moving mean, {decay}": kept for decay, kept in self.moving.items()}
        for size in LAST:
            last = list(self.recent)[-size:]
            found[f"mean of the last {size}"] = {name: sum(one[name] for one in last) / len(last) for name in weights}
        for size in BEST:
            last = list(self.losses)[-size:]
            found[f"best of the last {size}"] = list(self.recent)[-size:][int(np.argmin(last))]
        return found


def one_trial(source: Images, trial: int, given: argparse.Namespace) -> dict[str, Floats]:
    """Test accuracy of every way on the worst pair, from round `first` on every so many rounds."""
    hard = np.flatnonzero(source.test.group == source.groups.index(HARD))
    images, labels = source.test.store.read(hard), source.classes[source.test.y[hard]]
    stream = source.open(given.seed, [trial])
    trainer = Trainer(source.default_learner(update="step"), given.seed + trial)
    asked = Trainer(trainer.learner, 0)
    kept, ways, found = trainer.new_set(), Ways(), {}
    for number in range(given.rounds):
        drawn = stream.draw(np.array([number % len(source.groups)]), np.array([2 * given.batch]))
        trains = ~np.asarray(drawn.validation)
        kept.add(drawn.X[trains], drawn.y[trains], drawn.group[trains])
        trainer.update([kept])
        answers = ways.add(trainer.module.state_dict(), trainer.mean_loss([kept]))
        if number + 1 < given.first or (number + 1 - given.first) % given.every:
            continue
        for name, weights in answers.items():
            asked.module.load_state_dict(weights)
            right = TorchModel(asked, source.classes).predict(images) == labels
            found.setdefault(name, []).append(right.mean())
    return {name: np.array(values) for name, values in found.items()}


def judged(trials: list[dict[str, Floats]]) -> list[dict[str, Any]]:
    """A row for every way: mean over rounds, the worst round, how often it is two and ten points below its best so far."""
    rows = []
    plain = np.stack([found["as it is"] for found in trials])
    for name in trials[0]:
        own = np.stack([found[name] for found in trials])
        below = np.maximum.accumulate(own, axis=1) - own
        gain = paired(own.mean(axis=1), plain.mean(axis=1)) if name != "as it is" else None
        rows.append(
            {
                "way": name,
                "mean": round(float(own.mean()), 4),
                "last": round(float(own[:, -1].mean()), 4),
                "lowest": round(float(own.min(axis=1).mean()), 4),
                "dips": round(float((below > 0.02).mean()), 4),
                "deep": round(float((below > 0.1).mean()), 4),
                "gain": None if gain is None else {k: round(getattr(gain, k), 4) for k in ("mean", "low", "high")},
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=320, help="the first deep dips come after about 250")
    parser.add_argument("--batch", type=int, default=10, help="training images a round: few, so that rounds are cheap")
    parser.add_argument("--first", type=int, default=201, help="the first round that is tested")
    parser.add_argument("--every", type=int, default=2, help="rounds from one test to the next")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    source = datasets.load("fashion-mnist", data_dir=given.data_dir)
    spent = time.process_time()
    trials = [one_trial(source, trial, given) for trial in range(given.trials)]
    settings = {name: getattr(given, name) for name in ("trials", "rounds", "batch", "first", "every", "seed")}
    command = "image_dips.py " + " ".join(f"--{name} {value}" for name, value in settings.items())
    found = about(command, "torch", "numpy") | settings
    found |= {"cpu_seconds": round(time.process_time() - spent), "ways": judged(trials)}
    for row in found["ways"]:
        print(row)
    found["accuracy"] = {name: [one[name].round(4).tolist() for one in trials] for name in trials[0]}
    if given.json:
        write_json(given.json, found)


if __name__ == "__main__":
    main()

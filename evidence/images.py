"""Networks on images, beside the figures of `evenhand reproduce`: trials by group, ways to update a network, ceilings.

Hours; finished trials are kept, so that the same command goes on where it was stopped. Needs the data sets on this machine.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import evenhand as eh
from evenhand.learners.torch.learner import TorchModel
from evenhand.learners.torch.trainer import Trainer
from evenhand.learners.torch.transform import ImageTransform
from evenhand.sources.images.store import ImageRows

Found = dict[str, Any]
KEEP = Path(".venv/evidence-images")
A_OPT, PLUS = "A_opt=optimistic:c0=0.1", "A_opt+, c1 = {0}=optimistic:c0=0.1,c1={0},window=20"
RULES = [A_OPT, "Greedy=greedy", "ε-greedy=epsilon-greedy:epsilon=0.1", "Uniform=uniform"]
TRIALS = {
    "FashionMNIST": ("fashion-mnist", RULES, 100, 10),
    "CIFAR-10": ("cifar10", RULES, 100, 5),
    "UTKFace": ("utkface", [A_OPT, "Greedy=greedy", "Uniform=uniform", "Uncurated=uncurated"], 100, 4),
    "FashionMNIST, 500 rounds": ("fashion-mnist", [A_OPT, "Uniform=uniform"], 500, 2),
}
"""Data set, rules, rounds, trials."""
UPDATES: dict[str, Found] = {
    "one step, as the paper": {"update": "step"},
    "three steps": {"update": "step", "updates": 3},
    "one epoch": {"update": "epoch"},
    "one epoch, crops and flips": {"update": "epoch", "transform": ImageTransform(crop=28, padding=2, flip=0.5)},
    "three epochs": {"update": "epoch", "updates": 3},
}
CEILINGS = {
    "FashionMNIST": ("fashion-mnist", {}, ("T-shirt/Shirt", "Pullover/Coat"), 12),
    "CIFAR-10": ("cifar10", {}, ("bird/cat",), 8),
    "UTKFace": ("utkface", {}, ("Asian",), 6),
    "UTKFace, crop_part1": ("utkface", {"split": "crop_part1"}, ("Asian",), 6),
}
"""Data set, its settings, groups that are trained on alone, epochs."""


def runs(
    source: eh.Images,
    rules: list[str],
    rounds: int,
    trials: int,
    learner: Found,
    *,
    batch: int = 50,
    evaluate: int = 1,
    keep: Path | None = KEEP,
) -> list[Found]:
    """Every trial of every rule: accuracies and shares of the groups at the end, the worst group at the tested rounds."""
    trained = source.default_learner(threads=1, **learner)
    result = eh.simulate(
        source,
        rules,
        trained,
        budget=2 * batch * rounds,
        batch=batch,
        warmup=10,
        trials=trials,
        evaluate=evaluate,
        keep=keep,
    )
    tested = result.trace.dropna(subset="test_accuracy").groupby(["strategy", "trial", "round"], observed=True)
    worst = tested["test_accuracy"].min().round(6)
    seconds = {rule: found["seconds"] / trials for rule, found in result.summary()["strategies"].items()}
    found = []
    for (rule, trial), ends in result.final.set_index("group").groupby(["strategy", "trial"], observed=True):
        half, whole, share = (
            ends[name].round(6).to_dict() for name in ("test_accuracy", "final_test_accuracy", "mixture")
        )
        at = {str(number): value for number, value in worst[rule, trial].items()}
        own = {
            "rule": rule,
            "trial": trial,
            "rounds": rounds,
            "half": half,
            "all": whole,
            "mixture": share,
            "worst": at,
        }
        found.append({**own, "seconds": round(seconds[rule], 1)})
    return found


def ways(rounds: int, trials: int) -> list[Found]:
    """A_opt beside Uniform with each way to update the network."""
    source, rules = eh.datasets.load("fashion-mnist"), [A_OPT, "Uniform=uniform"]
    own = {
        way: runs(source, rules, rounds, trials, {"final_updates": 0, **learner}) for way, learner in UPDATES.items()
    }
    return [{"way": way, **run} for way, found in own.items() for run in found]


def dips(rounds: int, trials: int) -> list[Found]:
    """How deep rounds fall, with the last weights and with the mean of the last five."""
    source, rows = eh.datasets.load("fashion-mnist"), []
    for way, average in (("as it is", 1), ("mean of the last 5", 5)):
        learner = {"update": "step", "final_updates": 0, "average": average}
        own = runs(source, ["Uniform=uniform"], rounds, trials, learner, batch=10, evaluate=rounds // 2)
        late = np.array([[v for number, v in run["worst"].items() if int(number) > 0.6 * rounds] for run in own])
        below = np.maximum.accumulate(late, axis=1) - late
        row = {"mean": late.mean(), "lowest": late.min(axis=1).mean(), "dips": (below > 0.02).mean()}
        rows.append({"way": way, **row, "deep": (below > 0.1).mean()})
    return rows


def ceilings(name: str, settings: Found, groups: tuple[str, ...], epochs: int) -> list[Found]:
    """Test accuracy of every group, epoch by epoch, of a network of every image: of one group alone, and of all."""
    # every image once, where trials draw from a half again and again
    source = eh.datasets.load(name, replace="never", **settings)
    rows = {}
    for z, group in enumerate(source.groups):
        # the images that the first trial may draw, its test images left out
        rows[group] = np.sort(source.open(0, [0]).draw(np.array([z]), np.array([len(source.pool.y)])).rows)
    sets = {group: rows[group] for group in groups} | {"everything": np.sort(np.concatenate([*rows.values()]))}
    found = []
    for what, own in sets.items():
        trainer = Trainer(source.default_learner(update="epoch", threads=1), 0)
        kept, stream, accuracy = trainer.new_set(), source.open(0, [0]), []
        kept.add(ImageRows(source.pool.store, own), source.pool.y[own], source.pool.group[own])
        for _ in range(epochs):
            trainer.update([kept], source.groups)
            now = stream.accuracies([TorchModel(trainer, source.classes)])[0].round(4).tolist()
            accuracy.append(dict(zip(source.groups, now, strict=True)))
        found.append({"trained_on": what, "images": len(own), "accuracy": accuracy})
    return found


def measure(small: bool) -> Found:
    """All of it; small, a few rounds on made-up images."""
    step = {"update": "step"}
    if small:
        rng = np.random.default_rng(0)
        y, group = rng.integers(0, 2, 300), np.array(["bright", "dark"])[np.arange(300) % 2]
        X = rng.integers(0, 100, (300, 8, 8)) + (np.where(group == "bright", 80, 20) * y)[:, None, None]
        source = eh.Images(X.astype(np.uint8), y, group, test=0.3, network="cnn1")
        return {"trials": {"small": runs(source, RULES[:1], 12, 2, step, batch=5, evaluate=3, keep=None)}}
    trend = [A_OPT, *(PLUS.format(c1) for c1 in ("0.003", "0.01", "0.03", "0.1"))]
    return {
        "trials": {
            name: runs(
                eh.datasets.load(data), rules, rounds, trials, step, evaluate=rounds // 10 if rounds > 100 else 20
            )
            for name, (data, rules, rounds, trials) in TRIALS.items()
        },
        "updates": ways(30, 5),
        "trend": runs(eh.datasets.load("fashion-mnist"), trend, 60, 5, {**step, "final_updates": 0}),
        "dips": dips(320, 5),
        "ceilings": {name: ceilings(*case) for name, case in CEILINGS.items()},
    }


def draw(found: Found, folder: Path) -> None:
    """A_opt and Uniform at the paper's length."""
    figure = Figure(figsize=(7, 3.8), layout="constrained")
    axes, colours = figure.subplots(), {"A_opt": "#0072b2", "Uniform": "#009e73"}
    for run in found["trials"]["FashionMNIST, 500 rounds"]:
        curve = pd.Series(run["worst"])
        label, line = f"{run['rule']}, trial {run['trial']}", ("-", "--")[run["trial"] % 2]
        axes.plot(
            curve.index.astype(int), curve.to_numpy(), line, color=colours[run["rule"]], label=label, linewidth=1.2
        )
    axes.set(xlabel="round", ylabel="accuracy of the worst pair")
    axes.legend(frameon=False, fontsize=9)
    figure.savefig(folder / "images-fashion.png", dpi=100)

"""Whether a change kept the numbers: `python benchmarks/fingerprint.py [--save FILE | --compare FILE] [PART…]`.

One trial of every study, a campaign, a curated table, claims and a network, each as a digest of its values to the last bit. Run it
before a change that should move no number and after it. Digests belong to one machine and one set of package versions.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import evenhand as eh
from evenhand.engine.run import Record
from evenhand.experiments.catalogue import experiments
from evenhand.experiments.study import Study
from evenhand.simulation.blocks import run

_IN_RECORD = ("labels", "chosen", "kind", "counts", "validation_loss", "accuracy", "final_accuracy")
PAPERS = eh.Optimistic(c0=0.1)
_LONGEST = 500  # labels of a trial: enough for every rule to leave its warm-up far behind


def studies() -> dict[str, Study]:
    """One trial of every study of the experiments, images left out: they are not in the repository."""
    found: dict[str, Study] = {}
    for experiment in experiments().values():
        for name, study in experiment.at("quick", 1, None).items():
            short = replace(study, budget=min(study.budget, _LONGEST))
            if not study.of_images and short not in found.values():
                found[f"{experiment.id} {name}"] = short
    return found


def of_study(study: Study) -> Iterator[Any]:
    for block in study.blocks({label: list(study.numbers()) for label in study.strategies}):
        yield from of_record(run(block))


def of_record(record: Record) -> Iterator[Any]:
    for name in _IN_RECORD:
        yield getattr(record, name)


def of_mixture_curve() -> Iterator[Any]:
    """The one figure that has no study: it sweeps the mixture instead of running a strategy."""
    from evenhand.experiments.mixture_curve import curve

    table = curve(eh.SyntheticModel1.instance("I"), 11, 500)
    yield table.drop(columns="source").to_numpy(dtype=float)


def of_strategies() -> Iterator[Any]:
    """Settings of strategies that the studies do not use, with several trials in lockstep."""
    yield from of_rules(
        eh.Optimistic(c0=0.2, c1=0.3, window=5, xi=0.4), eh.EpsilonGreedy(epsilon=0.2, explore="uniform")
    )


def of_log_loss() -> Iterator[Any]:
    yield from of_rules(eh.Greedy(), PAPERS, risk="log")


def of_rules(*rules: eh.Optimistic | eh.EpsilonGreedy | eh.Greedy, risk: str = "error") -> Iterator[Any]:
    for batch, validation in ((1, 0.5), (2, 0.3)):
        source = eh.SyntheticModel1.instance("II")
        given = {"budget": 120, "trials": 3, "batch": batch, "validation": validation, "risk": risk}
        result = eh.simulate(source, dict(zip("ab", rules, strict=True)), **given)
        yield result.trace.select_dtypes("number").to_numpy(dtype=float)
        yield result.final.select_dtypes("number").to_numpy(dtype=float)


def of_simulate() -> Iterator[Any]:
    """German through `simulate`, and what the summary makes of it."""
    rules = {"optimistic": PAPERS, "uniform": eh.Uniform()}
    result = eh.simulate(eh.datasets.german(), rules, budget=100, trials=2)
    summary = result.summary()
    yield json.dumps([_untimed(summary["strategies"]), summary["differences"]], sort_keys=True)


def _untimed(strategies: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {label: {k: v for k, v in found.items() if k != "seconds"} for label, found in strategies.items()}


def of_campaign() -> Iterator[Any]:
    """Requests, scores and the model of a campaign that is told SyntheticModel1's examples."""
    for strategy in (PAPERS, eh.EpsilonGreedy(epsilon=0.3)):
        stream = eh.SyntheticModel1.instance("I").open(3, [0])
        drawn = {group: stream.draw(np.array([z]), np.array([200])) for z, group in enumerate("uv")}
        used = dict.fromkeys("uv", 0)
        campaign = eh.Campaign(["u", "v"], strategy, eh.Logistic(), budget=80, population={"u": 0.5, "v": 0.5}, seed=3)
        while not campaign.done:
            request = campaign.ask()
            rows = slice(used[request.group], used[request.group] + request.size)
            used[request.group] = rows.stop
            campaign.tell(request, drawn[request.group].X[rows], drawn[request.group].y[rows])
            yield f"{request.id} {request.group} {request.size} {request.decision.kind}"
        scored = campaign.status()["groups"]
        yield json.dumps(scored, sort_keys=True, default=str)
        model: Any = campaign.final_model()
        yield np.concatenate([model.coef_.ravel(), model.intercept_.ravel()])


def of_curate() -> Iterator[Any]:
    """The rows that `curate` chooses from a made table, with text, gaps and two group columns."""
    rng = np.random.default_rng(5)
    n = 1500
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n).astype(float),
            "kind": rng.choice(["a", "b", "c"], n),
            "score": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
            "sex": rng.choice(["f", "m"], n),
            "town": rng.choice(["north", "south"], n),
        }
    )
    frame["y"] = np.where(
        frame["age"] / 40 + np.where(frame["sex"] == "f", 1, -1) * rng.normal(size=n) > 1.1, "yes", "no"
    )
    curated = eh.curate(frame, label="y", groups=["sex", "town"], budget=120, strategy=PAPERS, compare=2, seed=1)
    yield curated.rows["row"].to_numpy(dtype=np.int64)
    yield curated.by_group[["accuracy", "count", "train"]].to_numpy(dtype=float)
    yield curated.result.final.select_dtypes("number").to_numpy(dtype=float)


def of_claims() -> Iterator[Any]:
    """What a certificate and a comparison rest on; the theorems' promises are left out, they follow a bound's constants."""
    from evenhand.claims.intervals import paired_difference
    from evenhand.claims.sequences import error_rate, running_half_width

    wrong, n = np.array([0, 3, 40, 200]), np.array([10, 50, 41, 1000])
    yield np.array(error_rate(wrong, n, 0.05))
    yield running_half_width(n)
    yield np.array(paired_difference([0.1, 0.2, 0.4], [0.3, 0.2, 0.1]))


def of_network() -> Iterator[Any]:
    """A small network on made pictures: the only part that needs torch."""
    from torch import nn

    def small() -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(25, 2))

    rng = np.random.default_rng(0)
    label, group = rng.integers(0, 2, 120), rng.integers(0, 2, 120)
    pictures = rng.integers(0, 120, (120, 5, 5)) + 100 * label[:, None, None] * (1 - 0.5 * group[:, None, None])
    source = eh.Images(pictures.astype(np.uint8), label, np.array(["a", "b"])[group], test=0.3)
    result = eh.simulate(source, [PAPERS], eh.TorchLearner(small), budget=40, batch=2, trials=1, evaluate=3)
    yield result.final.select_dtypes("number").to_numpy(dtype=float)


def parts() -> dict[str, Callable[[], Iterator[Any]]]:
    """Every part by name."""
    found: dict[str, Callable[[], Iterator[Any]]] = {
        name: lambda study=study: of_study(study) for name, study in studies().items()
    }
    return found | {
        "mixture curve": of_mixture_curve,
        "strategies": of_strategies,
        "log loss": of_log_loss,
        "simulate": of_simulate,
        "campaign": of_campaign,
        "curate": of_curate,
        "claims": of_claims,
        "network": of_network,
    }


def digest(values: Iterator[Any]) -> tuple[str, int]:
    """A short digest, and how many values went into it."""
    found, count = hashlib.sha256(), 0
    for value in values:
        if isinstance(value, str):
            found.update(value.encode())
            count += 1
        else:
            # shape and bytes alone: an integer may change its width without a number having changed
            array = np.ascontiguousarray(value, dtype=float)
            found.update(repr(array.shape).encode() + array.tobytes())
            count += array.size
    return found.hexdigest()[:16], count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help="only parts whose name has one of these words in it")
    parser.add_argument("--save", type=Path, help="write the digests here")
    parser.add_argument("--compare", type=Path, help="exit with 1 where a digest differs from those saved here")
    given = parser.parse_args()
    before: dict[str, str] = json.loads(given.compare.read_text()) if given.compare else {}
    warnings.simplefilter("ignore")
    started, total, found = time.perf_counter(), 0, {}
    for name, values in parts().items():
        if given.parts and not any(word in name for word in given.parts):
            continue
        since = time.perf_counter()
        found[name], count = digest(values())
        total += count
        differs = "  DIFFERS" if before.get(name, found[name]) != found[name] else ""
        print(f"{found[name]}  {count:>7,}  {name}, {time.perf_counter() - since:.1f} s{differs}", flush=True)
    print(f"{len(found)} parts, {total:,} values, {time.perf_counter() - started:.0f} s")
    if given.save:
        given.save.write_text(json.dumps(found, indent=1) + "\n")
    return int(any(before.get(name, value) != value for name, value in found.items()))


if __name__ == "__main__":
    sys.exit(main())

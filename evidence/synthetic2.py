"""How SyntheticModel2's numbers were found: a random search, then a few rounded settings, the first of which was kept."""

from collections.abc import Sequence
from typing import Any

import numpy as np

import evenhand as eh
from evenhand.engine.run import Settings, run_block

RULES = {"A_opt+": eh.Optimistic(c0=0.1, c1=0.1, window=20), "A_opt": eh.Optimistic(c0=0.1), "Greedy": eh.Greedy()}
BASE = {"start": -2.0, "shift": 2.0, "length": 3.5, "centre": 1.5, "sparse": 0.5, "far": 5.0, "weight": 0.15}
BASE |= {"spread": 0.4, "sparse_spread": 0.4, "theta": 75.0}
ROUNDED = (
    {},
    {"length": 4.0},
    {"far": 4.0},
    {"sparse": 0.4, "spread": 0.5, "sparse_spread": 0.25},
    {"start": -4.0, "shift": 3.0, "length": 6.0, "centre": 2.0, "sparse": 0.4, "far": 6.0, "spread": 0.6, "sparse_spread": 0.25},
    {"start": -4.0, "shift": 3.0, "length": 6.0, "centre": 2.0, "weight": 0.12, "spread": 0.6},
)  # fmt: skip


def model(s: dict[str, float]) -> eh.SyntheticModel2:
    """The model with these settings."""
    return eh.SyntheticModel2(
        starts=(s["start"], s["start"] + s["shift"]),
        length=s["length"],
        weights=(1 - 2 * s["weight"], s["weight"], s["weight"]),
        centres=((s["centre"], 0.0), (s["sparse"], s["far"]), (s["sparse"], -s["far"])),
        spreads=((s["spread"],) * 2, (s["sparse_spread"],) * 2, (s["sparse_spread"],) * 2),
        theta=s["theta"],
    )


FIRST_CHOICE = ROUNDED[1]


def tried(settings: dict[str, float], trials: Sequence[int]) -> dict[str, Any]:
    """Mean accuracy of each rule on u and v after 1,000 labels, and what A_opt+ gains on v."""
    found: dict[str, Any] = {"settings": settings, "trials": len(trials)}
    for label, rule in RULES.items():
        record = run_block(model(settings), rule, eh.Logistic(), Settings(budget=1000), trials)
        found[label] = dict(zip("uv", record.accuracy[-1].mean(axis=0).round(4).tolist(), strict=True))
    found["gain"] = round(found["A_opt+"]["v"] - max(found["A_opt"]["v"], found["Greedy"]["v"]), 4)
    on_u = [found[label]["u"] for label in RULES]
    found["score"] = round(found["gain"] - 3 * max(0.0, max(on_u) - min(on_u) - 0.006), 4)
    return found


def at_random(rng: np.random.Generator) -> dict[str, float]:
    """Settings from wide ranges."""
    length = rng.uniform(2, 10)
    shift = length * rng.uniform(0.1, 0.6)
    centre = rng.uniform(0.8, 3)
    return {
        "start": -(length + shift) / 2 + rng.uniform(-0.1, 0.1) * length,
        "shift": shift,
        "length": length,
        "centre": centre,
        "sparse": rng.uniform(0.2, 1.5),
        "far": rng.uniform(1.5, 8),
        "weight": rng.uniform(0.05, 0.2),
        "spread": min(rng.uniform(0.2, 0.8), centre / 2),
        "sparse_spread": rng.uniform(0.2, 1.0),
        "theta": rng.uniform(-180, 180),
    }


def nearby(settings: dict[str, float], rng: np.random.Generator) -> dict[str, float]:
    """The same settings, some of them moved a little."""
    moved = dict(settings)
    for name in moved:
        if rng.random() < 0.4:
            add = {"start": 0.3, "theta": 15.0}.get(name)
            moved[name] = moved[name] + add * rng.normal() if add else moved[name] * np.exp(0.25 * rng.normal())
    moved["shift"] = min(moved["shift"], 0.7 * moved["length"])
    moved["weight"] = min(moved["weight"], 0.2)
    return moved


def search(count: int, seed: int) -> list[dict[str, Any]]:
    """Try settings at random, and two times out of three near the best so far."""
    rng = np.random.default_rng(seed)
    found: list[dict[str, Any]] = []
    for _ in range(count):
        best = sorted(found, key=lambda one: -one["score"])[:6]
        anew = len(found) < 8 or rng.random() < 0.35
        found.append(
            tried(at_random(rng) if anew else nearby(best[rng.integers(len(best))]["settings"], rng), range(30))
        )
    return found


def measure(small: bool) -> dict[str, Any]:
    """The search on trials 0–29, the rounded settings on 0–99, and our first choice on those that made us leave it."""
    few, more = (range(2), range(2)) if small else (range(100), range(1000, 1100))
    found = [] if small else search(76, seed=1)
    return {
        "tried": len(found),
        "good": sum(one["score"] >= 0.05 for one in found),
        "best": max((one["score"] for one in found), default=0.0),
        "rounded": [tried(BASE | changes, few) for changes in ROUNDED[: 1 if small else None]],
        "first_choice": tried(BASE | FIRST_CHOICE, more),
    }

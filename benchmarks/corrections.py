"""What the rules on corrections cost an honest campaign: its certificate with and without labels corrected since.

    python benchmarks/corrections.py [--campaigns 200] [--json docs/results/corrections.json]

Real campaigns in memory on two groups with known errors. A share of the labels is first told wrong, noticed whatever the
model says of them, and corrected; the certificate counts the worse of both labellings. Also how often a certificate is
false under attack, by somebody who hides four fifths of the model's errors, looked at every eighth request.
"""

from __future__ import annotations

import argparse
import json
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import evenhand as eh

TRUE = {"u": 0.15, "v": 0.1}
ATTACKS = ("nothing", "correct", "withdraw", "erase", "abandon", "answer in part")


def draw(rng: np.random.Generator, group: str, n: int) -> tuple[Any, Any]:
    """x = ±1 with the label of its sign, flipped at the group's rate."""
    x = rng.choice([-1.0, 1.0], n)
    return x[:, None], np.where(rng.random(n) < TRUE[group], x < 0, x > 0).astype(int)


def certified(rng: np.random.Generator, seed: int, labels: int, batch: int) -> tuple[eh.Campaign, Any, float]:
    """A campaign with a frozen model, the model, and its true worst error."""
    c = eh.Campaign(list(TRUE), "uniform", "logistic", budget=10 * labels, batch=batch, seed=seed, classes=[0, 1])
    for k in range(6):
        r = c.ask()
        c.tell(r, *draw(rng, r.group, r.size), ids=[f"a{k}-{i}" for i in range(r.size)])
    c.certify()
    model = c.certified_model()
    follows = np.mean(model.predict([[-1.0], [1.0]]) == [0, 1])
    return c, model, max(follows * flip + (1 - follows) * (1 - flip) for flip in TRUE.values())


def honest(seed: int, labels: int, share: float) -> float:
    """`worst_at_most` after so many labels a group, a share of which was corrected."""
    rng = np.random.default_rng([seed, 1])
    c, _, _ = certified(rng, seed, labels, 25)
    for k in range(2 * labels // 50):
        r = c.ask()
        X, y = draw(rng, r.group, r.size)
        ids = [f"b{k}-{i}" for i in range(r.size)]
        slips = rng.random(r.size) < share
        c.tell(r, X, np.where(slips, 1 - y, y), ids=ids)
        if slips.any():
            c.correct({name: int(label) for name, label, slip in zip(ids, y, slips, strict=True) if slip})
    return c.certificate().worst_at_most


def forged(seed: int, attack: str, labels: int = 100) -> bool:
    """Whether a certificate is false at any look, when somebody hides the model's errors."""
    rng = np.random.default_rng([seed, 2])
    c, model, truth = certified(rng, seed, labels, 1)
    false, told, k = False, 0, 0
    while told < labels:
        r = c.ask()
        X, y = draw(rng, r.group, r.size)
        ids = [f"b{k}-{i}" for i in range(r.size)]
        guess = model.predict(X)
        wrong = guess != y
        if attack == "abandon" and wrong.any():
            c.abandon(r)
        elif attack == "answer in part" and wrong.sum() == 1:
            c.tell(r, X[~wrong], y[~wrong], ids=[name for name, w in zip(ids, wrong, strict=True) if not w])
            c.abandon(r)
        else:
            c.tell(r, X, y, ids=ids)
            told += r.size
            for name, right in [(n, int(g)) for n, g, w in zip(ids, guess, wrong, strict=True) if w]:
                if rng.random() < 0.8:
                    {"correct": lambda n=name, g=right: c.correct(n, g), "withdraw": lambda n=name: c.withdraw(n),
                     "erase": lambda n=name: c.erase(n)}.get(attack, lambda: None)()  # fmt: skip
        k += 1
        if k % 8 == 0:
            false |= c.certificate().worst_at_most < truth
        if k > 20 * labels:
            break
    return bool(false or c.certificate().worst_at_most < truth)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--campaigns", type=int, default=200)
    parser.add_argument("--forged", type=int, default=2000, help="campaigns over all attacks")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    cost = []
    for labels in (250, 1000):
        runs = max(given.campaigns * 250 // labels, 20)
        means = {share: float(np.mean([honest(s, labels, share) for s in range(runs)])) for share in (0.0, 0.01, 0.02)}
        cost.append({"labels_a_group": labels, "campaigns": runs, "worst_at_most": means})
        print(json.dumps(cost[-1]), flush=True)
    attacks = []
    each = max(given.forged // len(ATTACKS), 1)
    for attack in ATTACKS:
        false = sum(forged(seed, attack) for seed in range(each))
        attacks.append({"attack": attack, "campaigns": each, "false": false})
        print(json.dumps(attacks[-1]), flush=True)
    found = {
        "command": f"python benchmarks/corrections.py --campaigns {given.campaigns} --forged {given.forged}",
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "versions": {name: version(name) for name in ("evenhand", "numpy")},
        "true": TRUE,
        "cost": cost,
        "attacks": attacks,
    }
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

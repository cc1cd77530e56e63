"""What the rules on corrections cost an honest campaign: its certificate with and without labels corrected since.

Real campaigns in memory on two groups with known errors. A share of the labels is first told wrong, noticed whatever the
model says of them, and corrected; the certificate counts the worse of both labellings. Also how often a certificate is
false at any look under attack, by somebody who hides the model's errors. As a positive control the same campaigns are
looked at by the naive rule too: labels as they are now, what was taken back simply gone, what never came not counted. An
attack that forges nothing under the naive rule would show nothing about ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

import evenhand as eh
from evenhand.claims.certificates import Evidence

Rates = Mapping[str, float]
TRUE = {"u": 0.15, "v": 0.1}
ATTACKED = {"u": 0.25, "v": 0.15}


class Attack(NamedTuple):
    """What is done to which share of the errors; how many labels are told after the freeze, in requests of which size."""

    name: str
    verb: str
    share: float
    labels: int
    batch: int


ATTACKS = (
    Attack("nothing", "nothing", 0.0, 140, 1),
    Attack("correct four fifths", "correct", 0.8, 140, 1),
    Attack("correct a fifth", "correct", 0.2, 2000, 50),
    Attack("withdraw four fifths", "withdraw", 0.8, 140, 1),
    Attack("erase four fifths", "erase", 0.8, 140, 1),
    Attack("abandon every request that holds one", "abandon", 1.0, 140, 1),
    Attack("answer the rest of the request only", "answer in part", 1.0, 140, 1),
)


def draw(rng: np.random.Generator, group: str, n: int, rates: Rates) -> tuple[Any, Any]:
    """x = ±1 with the label of its sign, flipped at the group's rate."""
    x = rng.choice([-1.0, 1.0], n)
    return x[:, None], np.where(rng.random(n) < rates[group], x < 0, x > 0).astype(int)


def certified(
    rng: np.random.Generator, seed: int, labels: int, batch: int, rates: Rates
) -> tuple[eh.Campaign, Any, float]:
    """A campaign with a frozen model, the model, and its true worst error."""
    c = eh.Campaign(list(rates), "uniform", "logistic", budget=10 * labels, batch=batch, seed=seed, classes=[0, 1])
    for k in range(6):
        r = c.ask()
        c.tell(r, *draw(rng, r.group, r.size, rates), ids=[f"a{k}-{i}" for i in range(r.size)])
    c.certify()
    model = c.certified_model()
    follows = np.mean(model.predict([[-1.0], [1.0]]) == [0, 1])
    return c, model, max(follows * flip + (1 - follows) * (1 - flip) for flip in rates.values())


def honest(seed: int, labels: int, share: float) -> float:
    """`worst_at_most` after so many labels a group, a share of which was corrected."""
    rng = np.random.default_rng([seed, 1])
    c, _, _ = certified(rng, seed, labels, 25, TRUE)
    for k in range(2 * labels // 50):
        r = c.ask()
        X, y = draw(rng, r.group, r.size, TRUE)
        ids = [f"b{k}-{i}" for i in range(r.size)]
        slips = rng.random(r.size) < share
        c.tell(r, X, np.where(slips, 1 - y, y), ids=ids)
        if slips.any():
            c.correct({name: int(label) for name, label, slip in zip(ids, y, slips, strict=True) if slip})
    return c.certificate().worst_at_most


class Looks:
    """A campaign looked at by our rules and by the naive one: whether either is false at any look."""

    def __init__(self, campaign: eh.Campaign, truth: float) -> None:
        self.campaign, self.truth = campaign, truth
        self.naive = Evidence(tuple(campaign.groups))
        self.false, self.naive_false = False, False

    def count(self, group: str, labels: int, errors: int) -> None:
        """Labels that stand as they are now, for the naive rule."""
        z = self.naive.groups.index(group)
        self.naive.n[z] += labels
        self.naive.total[z] += errors

    def look(self) -> None:
        """Look at both certificates now."""
        self.false |= self.campaign.certificate().worst_at_most < self.truth
        self.naive_false |= self.naive.certificate().worst_at_most < self.truth


def forged(seed: int, attack: Attack) -> Looks:
    """A campaign in which somebody hides the model's errors."""
    rng = np.random.default_rng([seed, 2])
    c, model, truth = certified(rng, seed, attack.labels, attack.batch, ATTACKED)
    looks, told, k, every = Looks(c, truth), 0, 0, max(8 // attack.batch, 1)
    while told < attack.labels and k < 20 * attack.labels:
        r = c.ask()
        X, y = draw(rng, r.group, r.size, ATTACKED)
        ids = [f"b{k}-{i}" for i in range(r.size)]
        guess = model.predict(X)
        wrong = guess != y
        hidden = wrong & (rng.random(r.size) < attack.share)
        if attack.verb == "abandon" and hidden.any():
            c.abandon(r)
        elif attack.verb == "answer in part" and hidden.any():
            if not hidden.all():
                c.tell(r, X[~hidden], y[~hidden], ids=[name for name, h in zip(ids, hidden, strict=True) if not h])
            c.abandon(r)
            looks.count(r.group, int((~hidden).sum()), 0)
            told += int((~hidden).sum())
        else:
            c.tell(r, X, y, ids=ids)
            told += r.size
            names = [name for name, h in zip(ids, hidden, strict=True) if h]
            if names and attack.verb == "correct":
                c.correct(dict(zip(names, guess[hidden].tolist(), strict=True)))
            elif names and attack.verb in ("withdraw", "erase"):
                getattr(c, attack.verb)(names)
            gone = len(names) if attack.verb in ("withdraw", "erase") else 0
            looks.count(r.group, r.size - gone, int((wrong & ~hidden).sum()))
        k += 1
        if k % every == 0:
            looks.look()
    looks.look()
    return looks


def cost(campaigns: int, labels: int) -> dict[str, Any]:
    """What a certificate says on average after so many labels a group, a share of which was corrected."""
    means = {
        f"{share:g}": float(np.mean([honest(s, labels, share) for s in range(campaigns)])) for share in (0, 0.01, 0.02)
    }
    return {"labels_a_group": labels, "campaigns": campaigns, "worst_at_most": means}


def attacked(attack: Attack, campaigns: int) -> dict[str, Any]:
    """In how many campaigns an attack makes either rule claim less than the truth."""
    runs = [forged(seed, attack) for seed in range(campaigns)]
    found = {"false": sum(run.false for run in runs), "naive_false": sum(run.naive_false for run in runs)}
    what = {"attack": attack.name, "labels": attack.labels, "share": attack.share}
    return {**what, "campaigns": campaigns, **{name: int(count) for name, count in found.items()}}


def measure(small: bool) -> dict[str, Any]:
    """What corrections cost an honest campaign, and what attacks gain."""
    attacks = [attack._replace(labels=20) for attack in ATTACKS if attack.batch == 1] if small else ATTACKS
    return {
        "true": TRUE,
        "attacked": ATTACKED,
        "cost": [cost(1, 50)] if small else [cost(200, 250), cost(50, 1000)],
        "attacks": [attacked(attack, 1 if small else 285) for attack in attacks],
    }

"""Whether proofs hold, and how many labels they take.

*False certificates*: real campaigns with known risks, by every risk, looked at after every delivery. Somebody who sees
the frozen model's errors corrects some of them, abandons requests that hold one, or leaves them open; half of the campaigns
freeze a second model. A campaign is false if any look at any version claims less than the truth.

*Every label*: the bounds behind the certificates, on long runs without campaigns around them, looked at after every label.

*Power*: two groups with risks .113 and .05 and a target of .155: how often a proof ends certified within 1.6 times the
labels at which the expected counts would do. And how proofs of a target below the truth end, and what they cost.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np

import evenhand as eh
from evenhand.claims.certificates import Evidence, spent_by
from evenhand.claims.intervals import wilson
from evenhand.risks import as_risk

RISKS: dict[str, dict[str, Any]] = {
    "error": {},
    "fnr": {"risk": "fnr", "positive": 1},
    "fpr": {"risk": "fpr", "positive": 1},
    "balanced": {"risk": "balanced"},
    "costs": {"risk": eh.Costs([[0, 1], [5, 0]])},
}
BEHAVIOURS = ("honest", "correct", "abandon", "leave open")
EXPECTED = 986 + 107
"""Labels of both groups at which rounded expected counts are certified at half of δ = .05."""


class Rates(NamedTuple):
    """How often x has the wrong sign for a negative and for a positive example."""

    negative: float
    positive: float


class World:
    """x = ±1 with the sign of the label, turned round at the rate of its group and class: every risk is known exactly."""

    def __init__(self, rng: np.random.Generator, groups: dict[str, Rates]) -> None:
        self.rng, self.groups, self.made = rng, groups, 0

    def draw(self, group: str, n: int) -> tuple[Any, Any, list[str]]:
        """Features, labels and ids of new examples."""
        y = self.rng.integers(0, 2, n)
        turned = self.rng.random(n) < np.array(self.groups[group])[y]
        self.made += n
        x = np.where((y == 1) != turned, 1.0, -1.0)
        return x[:, None], y, [f"e{self.made - n + k}" for k in range(n)]

    def tell(self, c: eh.Campaign, request: eh.Request) -> None:
        """Answer a request."""
        X, y, ids = self.draw(request.group, request.size)
        c.tell(request, X, y, ids=ids)

    def worst(self, model: Any, risk: str) -> float:
        """The worst group's risk under a model, from what it says of −1 and of 1."""
        says = np.asarray(model.predict([[-1.0], [1.0]]))
        found = []
        for rates in self.groups.values():
            # the chance that a class k is taken for the other one: x = −1 where a positive is turned round
            missed = rates.positive * (says[0] != 1) + (1 - rates.positive) * (says[1] != 1)
            raised = rates.negative * (says[1] != 0) + (1 - rates.negative) * (says[0] != 0)
            by_risk = {"fnr": missed, "fpr": raised, "costs": (raised + 5 * missed) / 2 / 5}
            found.append(float(by_risk.get(risk, (missed + raised) / 2)))
        return max(found)


def begun(world: World, seed: int, *, labels: int, **settings: Any) -> eh.Campaign:
    """A campaign that has learned from so many labels."""
    given = {"budget": 100_000, "classes": [0, 1], "seed": seed, **settings}
    c = eh.Campaign(list(world.groups), "uniform", "logistic", **given)
    while c.labels_used < labels:
        world.tell(c, c.ask())
    return c


def is_false(seed: int, risk: str, behaviour: str, labels: int = 90) -> bool:
    """Whether any look at a campaign claims less than the truth."""
    rng = np.random.default_rng([seed, 3])
    world = World(rng, {"u": Rates(0.25, 0.2), "v": Rates(0.15, 0.25)})
    c = begun(world, seed, labels=24, batch=int(rng.integers(1, 4)), **RISKS[risk])
    c.certify(0.3 if rng.random() < 0.5 else None)
    again = labels // 2 if rng.random() < 0.5 else None
    told, false, k = 0, False, 0
    while told < labels and k < 2 * labels:
        k += 1
        try:
            request = c.ask()
        except eh.NothingToAsk as nothing:
            if nothing.reason == "waiting for open requests":
                break
            c.change(stop=None)  # the proof has ended: sampling goes on, and so do the looks
            continue
        X, y, ids = world.draw(request.group, request.size)
        guess = np.asarray(c.certified_model().predict(X))
        hidden = (guess != y) & (rng.random(len(y)) < 0.7)
        if hidden.any() and behaviour in ("abandon", "leave open"):
            if behaviour == "abandon":
                c.abandon(request)
            continue
        c.tell(request, X, y, ids=ids)
        told += len(y)
        if hidden.any() and behaviour == "correct":
            c.correct({name: int(g) for name, g, h in zip(ids, guess, hidden, strict=True) if h})
        if again is not None and told >= again:
            c.certify()
            again = None
        false |= c.certificate().worst_at_most < world.worst(c.certified_model(), risk) - 1e-12
    return bool(false)


class Sign:
    """The model that reads the class off the sign of x."""

    def predict(self, X: Any) -> Any:
        """1 where x is positive."""
        return (np.asarray(X)[:, 0] > 0).astype(np.int64)


class Misses(NamedTuple):
    """In how many runs something that was said after any of the labels was wrong."""

    worst: int
    intervals: int
    ordinary: int


def every_label(risk: str, runs: int, labels: int, seed: int = 0) -> Misses:
    """Runs of so many labels a group in which any look at the bound on the worst group, or at the intervals, is wrong.

    *Ordinary*: the same bound by Wilson's upper ends at 95 %, which are meant for one look.
    """
    # one group is clearly the worst: where both are alike a bound that fails on one is saved by the other
    world = World(np.random.default_rng([seed, 5]), {"u": Rates(0.02, 0.03), "v": Rates(0.2, 0.25)})
    truth = {group: World(world.rng, {group: rates}).worst(Sign(), risk) for group, rates in world.groups.items()}
    spent, most = spent_by(1, 0.05), max(truth.values()) - 1e-12
    wrong = np.zeros((3, runs), dtype=bool)
    for rows in np.array_split(np.arange(runs), max(1, runs // 100)):
        worst, ordinary = np.zeros((2, len(rows) * labels))
        for group, true in truth.items():
            looks = _looks(world, group, risk, len(rows), labels)
            worst = np.maximum(worst, looks.upper(spent))
            low, high = (bound(spent / len(truth)) for bound in (looks.lower, looks.upper))
            missed = (low > true + 1e-12) | (high < true - 1e-12)
            wrong[1, rows] |= missed.reshape(-1, labels).any(axis=1)
            ordinary = np.maximum(ordinary, wilson(looks.total, looks.n)[1].mean(axis=1))
        for place, bound in ((0, worst), (2, ordinary)):
            wrong[place, rows] = (bound < most).reshape(-1, labels).any(axis=1)
    return Misses(*wrong.sum(axis=1).tolist())


def _looks(world: World, group: str, risk: str, runs: int, labels: int) -> Evidence:
    """The evidence on a group after every label of every run, as if each look were a group of its own."""
    given = RISKS[risk]
    measure = as_risk(given.get("risk", "error"), given.get("positive")).for_classes([0, 1])
    X, y, _ = world.draw(group, runs * labels)
    found = measure.of_codes(y, Sign().predict(X))
    looks = Evidence(("",) * (runs * labels), measure.strata)
    for k in range(measure.strata):
        counted = found.relevant & (found.stratum == k)
        for sums, values in ((looks.n, counted), (looks.total, counted * found.values)):
            sums[:, k] = np.cumsum(values.reshape(runs, labels), axis=1).ravel()
    return looks


def proof(seed: int, rates: dict[str, float], target: float, budget: int = 6000) -> tuple[str, int, bool]:
    """How a proof of the error ends, how many labels it took, and whether what it claims is false."""
    world = World(np.random.default_rng([seed, 4]), {group: Rates(rate, rate) for group, rate in rates.items()})
    c = begun(world, seed, labels=100, batch=5, budget=budget)
    before = c.labels_used
    c.certify(target)
    while True:
        try:
            request = c.ask()
        except eh.NothingToAsk as nothing:
            claim = c.certificate().worst_at_most < world.worst(c.certified_model(), "error") - 1e-12
            return nothing.reason, c.labels_used - before, bool(claim)
        world.tell(c, request)


POWER = (({"u": 0.113, "v": 0.05}, 0.155), ({"u": 0.113, "v": 0.05}, 0.10), ({"u": 0.3, "v": 0.05}, 0.155))
"""True risks and targets."""


def coverage(campaigns: int, labels: int) -> list[dict[str, Any]]:
    """False certificates by every risk and behaviour, of so many campaigns each."""
    rows = []
    for r, risk in enumerate(RISKS):
        row: dict[str, Any] = {"risk": risk, "campaigns": campaigns * len(BEHAVIOURS)}
        for b, behaviour in enumerate(BEHAVIOURS):
            row[behaviour] = sum(is_false(1000 * (4 * r + b) + s, risk, behaviour, labels) for s in range(campaigns))
        rows.append(row)
    return rows


def power(campaigns: int) -> list[dict[str, Any]]:
    """How proofs end, and what they cost."""
    rows = []
    for rates, target in POWER:
        runs = [proof(s, rates, target) for s in range(campaigns)]
        spent = [labels for _, labels, _ in runs]
        rows.append({
            "rates": rates, "target": target, "campaigns": campaigns, "outcomes": dict(Counter(o for o, _, _ in runs)),
            "within": sum(o == "certified" and labels <= 1.6 * EXPECTED for o, labels, _ in runs),
            "false": sum(false for *_, false in runs),
            "labels": {"median": int(np.median(spent)), "p80": int(np.quantile(spent, 0.8)), "most": max(spent)},
        })  # fmt: skip
    return rows


def measure(small: bool) -> dict[str, Any]:
    """All three."""
    runs, labels = (20, 50) if small else (2000, 1000)
    looked = [
        {"risk": risk, "runs": runs, "labels": labels, **every_label(risk, runs, labels)._asdict()} for risk in RISKS
    ]
    campaigns, told = (1, 20) if small else (100, 90)
    return {
        "expected": EXPECTED,
        "coverage": coverage(campaigns, told),
        "every_label": looked,
        "power": power(1 if small else 200),
    }

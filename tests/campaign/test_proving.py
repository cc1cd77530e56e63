"""The certify phase: whom it asks, how it ends, and that nobody can steer its outcome."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

import evenhand as eh
from evenhand.claims.certificates import Evidence, spent_by
from evenhand.claims.findings import Answered, Findings
from evenhand.claims.planning import labels_for_width
from evenhand.claims.sequences import error_rate
from evenhand.claims.stopping import ErrorBelow, LabelsSpent

RATES = {"u": 0.113, "v": 0.05}


class World:
    """x = ±1 with the label of its sign, flipped at the group's rate: a logistic model's risks are known exactly."""

    def __init__(self, seed: int, rates: Mapping[str, float] = RATES) -> None:
        self.rng, self.rates, self.made, self.name = np.random.default_rng(seed), rates, 0, f"e{seed}"

    def draw(self, group: str, n: int) -> tuple[Any, Any, list[str]]:
        x = self.rng.choice([-1.0, 1.0], n)
        y = np.where(self.rng.random(n) < self.rates[group], x < 0, x > 0).astype(int)
        self.made += n
        return x[:, None], y, [f"{self.name}/{self.made - n + i}" for i in range(n)]

    def tell(self, c: eh.Campaign, r: eh.Request) -> None:
        X, y, ids = self.draw(r.group, r.size)
        c.tell(r, X, y, ids=ids)

    def worst(self, model: Any) -> float:
        follows = float(np.mean(np.asarray(model.predict([[-1.0], [1.0]])) == [0, 1]))
        return max(follows * flip + (1 - follows) * (1 - flip) for flip in self.rates.values())


def begun(world: World, labels: int = 100, **settings: Any) -> eh.Campaign:
    """A campaign that has learned from so many labels."""
    given = {"budget": 4000, "batch": 5, "classes": [0, 1], **settings}
    c = eh.Campaign(list(world.rates), "uniform", "logistic", **given)
    while c.labels_used < labels:
        world.tell(c, c.ask())
    return c


def play(c: eh.Campaign, world: World) -> str:
    """Answer every request until there is none; gives the reason."""
    while True:
        try:
            r = c.ask()
        except eh.NothingToAsk as nothing:
            return nothing.reason
        world.tell(c, r)


def power(seed: int) -> tuple[str, int, float]:
    """How a proof of .155 ends, after how many labels, and what it claims."""
    world = World(seed)
    c = begun(world, seed=seed, batch=10)
    before = c.labels_used
    c.certify(0.155)
    outcome = play(c, world)
    found = c.certificate()
    assert outcome != "certified" or found.worst_at_most <= 0.155
    return outcome, c.labels_used - before, found.worst_at_most - world.worst(c.certified_model())


EXPECTED = 986 + 107
"""Validation labels of both groups at which rounded expected counts are certified at half of δ."""


def test_the_expected_counts_are_certified_there() -> None:
    for rate, n in ((0.113, 986), (0.05, 107)):
        assert error_rate(round(rate * n), n, 0.025)[1] <= 0.155
        assert error_rate(round(rate * (n - 1)), n - 1, 0.025)[1] > 0.155


def test_a_proof_has_power() -> None:
    found = [power(seed) for seed in range(3)]
    assert sum(o == "certified" and n <= 1.6 * EXPECTED for o, n, _ in found) >= 2


@pytest.mark.soak
def test_a_proof_has_power_in_80_percent() -> None:
    found = [power(seed) for seed in range(1000, 1200)]
    within = sum(o == "certified" and n <= 1.6 * EXPECTED for o, n, _ in found)
    false = sum(gap < 0 for o, _, gap in found if o == "certified")
    assert within >= 160
    assert binomtest(false, 200, 0.05, alternative="greater").pvalue > 0.001


def test_requests_are_of_kind_certify_and_stand_outside_the_share() -> None:
    world = World(1)
    c, plain = begun(world, seed=3), begun(World(1), seed=3)
    c.certify(0.3)
    r = c.ask()
    assert (r.decision.kind, r.size) == ("certify", 10)
    world.tell(c, r)
    status = c.status()
    assert status["groups"][r.group]["certify"] == 10
    assert status["proof"]["running"]
    roles = {e["facts"]["roles"] for e in c.events() if e["kind"] == "told" and e["request"] == r.id}
    assert roles == {"c" * 10}
    assert "where the proof lacks most" in c.explain(r)["words"]
    # later ordinary examples get the role they would have had without the phase
    c.certify()
    for other in (c, plain):
        a = other.ask()
        while a.group != r.group:
            other.abandon(a)
            other.retire(a.group)
            a = other.ask()
        X, y, _ = World(9).draw(a.group, a.size)
        other.tell(a, X, y, ids=[f"z{k}" for k in range(a.size)])
    told = [[e["facts"]["roles"] for e in x.events() if e["kind"] == "told"][-1] for x in (c, plain)]
    assert told[0] == told[1]
    assert c.verify().ok


def test_certify_labels_score_and_train_later_models() -> None:
    world = World(2)
    c = begun(world)
    c.refit()
    before = c.status()["groups"]
    c.certify(0.3)
    for _ in range(4):
        world.tell(c, c.ask())
    c.certify()  # ordinary sampling goes on
    c.refit()
    after = c.status()["groups"]
    assert sum(g["n"] for g in after.values()) == sum(g["n"] for g in before.values()) + 40
    assert sum(c.counts.values()) == sum(g["training"] for g in before.values())


def test_it_asks_where_the_bound_stands_furthest_above() -> None:
    world = World(3)
    c = begun(world)
    c.certify(0.155)
    for _ in range(40):
        r = c.ask()
        above = r.decision.terms["above the target"]
        assert r.group == r.decision.groups[int(np.argmax(above))] or np.ptp(above) == 0
        world.tell(c, r)
    n = c.certificate().n
    assert n[0] > n[1]  # v is easier: its bound falls faster


def test_fifty_collectors_are_spread() -> None:
    c = begun(World(4), batch=1)
    c.certify(0.2)
    groups = [r.group for r in c.ask_many(50)]
    assert 10 < groups.count("u") < 40


def test_refuted() -> None:
    world = World(5, {"u": 0.35, "v": 0.05})
    c = begun(world)
    c.certify(0.1)
    reason = play(c, world)
    assert reason in ("refuted", "not reached")
    assert c.labels_used < 1500  # a hopeless group does not eat the budget
    proof = c.status()["proof"]
    assert (proof["outcome"], proof["target"]) == (reason, 0.1)
    assert "u" in proof["why"]


def test_a_group_whose_lower_bound_is_above_the_target_is_refuted() -> None:
    world = World(6, {"u": 0.4, "v": 0.05})
    c = begun(world, batch=25)
    c.certify()
    for _ in range(12):
        world.tell(c, c.ask())
    assert c.certificate().low[0] > 0.1
    c.certify(0.1)  # the evidence there is decides at once
    assert play(c, world) == "refuted"
    assert c.certificate().version == 1
    assert c.status()["proof"]["group"] == "u"


def test_not_reached() -> None:
    world = World(7)
    c = begun(world, budget=300)
    c.certify(0.155)
    assert play(c, world) == "not reached"
    assert "further labels" in c.status()["proof"]["why"]
    c = begun(world)
    c.certify(0.155, most=200)
    assert play(c, world) == "not reached"
    c = begun(world)
    c.certify(0.3)
    c.ask()
    c.retire("u")
    for r in c.open_requests:
        world.tell(c, r)
    assert play(c, world) == "not reached"
    assert "'u' is retired" in c.status()["proof"]["why"]


def test_after_an_outcome_nothing_is_asked_until_somebody_says_so() -> None:
    world = World(8, {"u": 0.02, "v": 0.02})
    c = begun(world)
    c.certify(0.2)
    assert play(c, world) == "certified"
    assert c.done
    with pytest.raises(eh.NothingToAsk, match="certified"):
        c.ask()
    bound = c.certificate().worst_at_most
    assert bound <= 0.2
    c.change(stop=None)
    assert c.ask().decision.kind != "certify"
    evidence = c.certificate()
    c.certify(0.1)  # the same model may be proved further: it keeps its evidence
    again = c.certificate()
    assert again.version == evidence.version
    assert again.n == evidence.n
    facts = next(e["facts"] for e in reversed(c.events()) if e["kind"] == "proving")
    assert facts["expected_kept"] <= facts["expected_anew"]


def test_a_better_model_is_frozen_anew() -> None:
    world = World(9, {"u": 0.05, "v": 0.02})
    c = begun(world, batch=10)
    X, y, _ = world.draw("v", 200)
    c.certify(model=eh.Logistic().fit(X, 1 - y))  # a model that is mostly wrong
    for _ in range(6):
        world.tell(c, c.ask())
    c.certify(0.2)
    assert c.certificate().version == 2
    assert c.certificate().n == (0, 0)
    facts = next(e["facts"] for e in reversed(c.events()) if e["kind"] == "proving")
    assert facts["expected_kept"] is None
    assert facts["expected_anew"] > 0


def test_a_phase_goes_on_in_another_process(tmp_path: Path) -> None:
    url, world, twin = f"sqlite:///{tmp_path / 'c.db'}", World(10), World(10)
    settings: dict[str, Any] = {"budget": 3000, "batch": 5, "classes": [0, 1]}
    kept = eh.Campaign.create(url, "survey", list(RATES), "uniform", "logistic", **settings)
    memory = eh.Campaign(list(RATES), "uniform", "logistic", **settings)
    for k in range(40):
        for c, w in ((kept, world), (memory, twin)):
            w.tell(c, c.ask())
        if k == 10:
            kept.certify(0.17)
            memory.certify(0.17)
        if k % 5 == 0:
            kept.release()
            kept = eh.Campaign.open(url, "survey")
        assert kept.events()[-2]["facts"].get("decision") == memory.events()[-2]["facts"].get("decision")
    assert kept.verify().ok
    assert kept.certificate() == memory.certificate()


def test_a_target_as_a_stopping_rule() -> None:
    world = World(11, {"u": 0.04, "v": 0.02})
    c = begun(world, 2, stop=ErrorBelow(0.2))
    assert play(c, world) == "stopping rule"
    assert c.certificate().worst_at_most <= 0.2
    assert world.worst(c.certified_model()) <= 0.2
    assert "above 0.2" in c.status()["stopped"]
    # joined with another rule the campaign samples on after the proof
    c = begun(World(11, {"u": 0.04, "v": 0.02}), 2, stop=ErrorBelow(0.2) & LabelsSpent(1000))
    assert play(c, World(12, {"u": 0.04, "v": 0.02})) == "stopping rule"
    assert c.labels_used >= 1000


def test_a_failed_proof_of_a_rule_lets_the_campaign_go_on() -> None:
    world = World(12, {"u": 0.14, "v": 0.02})
    c = begun(world, 2, stop=ErrorBelow(0.13), budget=1500)
    assert play(c, world) in ("budget spent", "stopping rule")
    outcomes = [e["facts"]["outcome"] for e in c.events() if e["kind"] == "concluded"]
    assert len(outcomes) <= 6  # each waits until the labels have doubled


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"target": 1.5}, "target"),
        ({"target": 0.2, "most": 0}, "most"),
        ({"most": 10}, "needs a target"),
        ({"target": 0.2, "delta": 0.0}, "delta"),
        ({"target": 0.2, "model": "best"}, "model must be"),
    ],
)
def test_bad_input(given: dict[str, Any], message: str) -> None:
    c = begun(World(0), 20)
    with pytest.raises(eh.InputError, match=message):
        c.certify(**given)
    assert c.certificate() is None


# ---------------------------------------------------------------- the least bound, in the order of asking


def findings(requests: list[tuple[int, int, int]], groups: int = 2) -> Findings:
    """Requests as (group, labels, errors)."""
    found = Findings(tuple("uvw"[:groups]))
    for z, n, errors in requests:
        found.answered.append(Answered(z, np.array([n]), np.array([float(errors)])))
        found.first.add([z] * n, [1.0] * errors + [0.0] * (n - errors))
        found.now.add([z] * n, [1.0] * errors + [0.0] * (n - errors))
    return found


def test_the_least_bound_is_that_of_the_best_look() -> None:
    requests = [(0, 50, 1), (1, 50, 2), (0, 50, 0), (1, 50, 1), (0, 50, 20), (1, 10, 5)]
    looks = []
    for k in range(len(requests) + 1):
        evidence = Evidence(("u", "v"))
        for z, n, errors in requests[:k]:
            evidence.add([z] * n, [1.0] * errors + [0.0] * (n - errors))
        looks.append(float(evidence.upper(0.025).max()))
    found = findings(requests)
    assert found.least(0.025) == pytest.approx(min(looks))
    assert found.certificate(1, 0.05, "error").worst_at_most == pytest.approx(max(min(looks), looks[-1]))


def test_what_is_open_counts_as_an_error_where_it_was_asked() -> None:
    good = findings([(0, 60, 1), (1, 60, 1)])
    late = findings([(0, 60, 1), (1, 60, 1)])
    late.answered.append(
        Answered(0, np.array([10]), np.array([10.0]))
    )  # asked last and open: the look before it stands
    late.open[0] = 10
    early = findings([(0, 60, 1), (1, 60, 1)])
    early.answered.insert(0, Answered(0, np.array([10]), np.array([10.0])))
    early.open[0] = 10
    spent = spent_by(1, 0.05)
    assert late.worst_at_most(spent) == pytest.approx(good.worst_at_most(spent))
    assert early.worst_at_most(spent) > good.worst_at_most(spent)


def selected(seed: int) -> bool:
    """Whether a certificate is false where every request that holds an error is left open."""
    world = World(seed, {"u": 0.25, "v": 0.15})
    c = begun(world, 30, batch=1, seed=seed, budget=800, lease=None)
    c.certify(0.2)
    model, false = c.certified_model(), False
    truth = world.worst(model)
    for k in range(150):
        try:
            r = c.ask()
        except eh.NothingToAsk:
            break
        X, y, ids = world.draw(r.group, r.size)
        if (np.asarray(model.predict(X)) == y).all():
            c.tell(r, X, y, ids=ids)
        if k % 10 == 9:
            false |= c.certificate().worst_at_most < truth
    return false or c.certificate().worst_at_most < truth


def test_who_leaves_errors_open_forges_nothing() -> None:
    assert sum(selected(seed) for seed in range(5)) <= 1


# -------------------------------------------------------------------- the confidence


def outcome(c: eh.Campaign) -> dict[str, Any]:
    found: dict[str, Any] = c.status()["proof"]
    return found


def test_every_outcome_says_how_sure_it_is() -> None:
    world = World(8, {"u": 0.02, "v": 0.02})
    c = begun(world)
    c.certify(0.2, delta=0.01)
    assert play(c, world) == "certified"
    assert outcome(c)["why"] == "no group's risk is above 0.2, with 99 % confidence"
    with pytest.raises(eh.NothingToAsk, match="99 % confidence"):
        c.ask()
    c.certify(0.001, most=10)
    assert play(c, world) == "not reached"
    assert outcome(c)["why"].endswith("0.001 is not proven with 99 % confidence"), (
        "that of the freeze, if none is given"
    )
    assert "99 % confidence" in str(c.certificate())
    world = World(9, {"u": 0.3, "v": 0.02})
    c = begun(world)
    c.certify(0.29, delta=0.001)
    c.certify(0.1, delta=0.001)
    assert play(c, world) in ("refuted", "not reached")
    assert outcome(c)["why"].endswith("with 99.9 % confidence")
    assert "99.9 % confidence" in str(c.certificate()), "and not 100 %"


def test_nothing_is_proven_with_less_confidence_than_the_freeze_had() -> None:
    """Else `certify(delta=.01)` and then `certify(.2, delta=.5)` would call certified what is half sure."""
    world = World(8, {"u": 0.02, "v": 0.02})
    c = begun(world)
    c.certify(delta=0.01)
    with pytest.raises(eh.InputError, match=r"frozen with 99 % confidence.*delta=0\.01"):
        c.certify(0.2, delta=0.5)
    assert outcome(c) is None
    c.certify(0.2, delta=0.001)
    assert play(c, world) == "certified"
    assert outcome(c)["why"].endswith("with 99.9 % confidence"), "more is allowed"


def test_the_claims_of_a_campaign_share_its_delta() -> None:
    world = World(8, {"u": 0.02, "v": 0.02})
    c = begun(world)
    seen = []
    for _ in range(3):
        c.certify()
        for _ in range(10):
            world.tell(c, c.ask())
        found = c.certificate()
        errors = [round(mean * n) for mean, n in zip(found.mean, found.n, strict=True)]
        share = 0.05 / (found.version * (found.version + 1))
        bounds = [float(error_rate(e, n, share)[1]) for e, n in zip(errors, found.n, strict=True)]
        seen.append((found.version, found.worst_at_most == pytest.approx(max(bounds))))
    assert seen == [(1, True), (2, True), (3, True)], "δ/2, δ/6, δ/12: each is dearer than the one before"
    assert sum(spent_by(k, 0.05) for k in range(1, 2000)) == pytest.approx(0.05, abs=1e-4)


@pytest.mark.parametrize("delta", [0.9, 0.51, 0, 1, -0.1, float("nan")])
def test_a_claim_is_more_likely_true_than_false(delta: float) -> None:
    world = World(8)
    c = begun(world, 40)
    c.certify()
    for refused in (
        lambda: c.certify(delta=delta),
        lambda: c.certificate(delta),
        lambda: c.running(delta),
        lambda: ErrorBelow(0.2, confidence=1 - delta),
        lambda: labels_for_width(0.1, 0.05, delta=delta),
    ):
        with pytest.raises(eh.InputError, match=r"delta must be above 0 and at most 0\.5|confidence must"):
            refused()


def test_a_rule_is_as_sure_as_the_freeze() -> None:
    world = World(8, {"u": 0.02, "v": 0.02})
    c = begun(world, 40, budget=2000)
    c.certify(delta=0.01)
    c.change(stop="target=0.2")
    while c.status()["nothing_to_ask"] is None:
        with suppress(eh.NothingToAsk):
            world.tell(c, c.ask())
    assert outcome(c)["outcome"] == "certified"
    assert outcome(c)["delta"] <= 0.05
    frozen = [e["facts"]["delta"] for e in c.events() if e["kind"] in ("frozen", "proving")]
    assert frozen == sorted(frozen, reverse=True), "never at more than its freeze"

"""Certificates and stopping rules in a campaign whose truth is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.claims.stopping import ErrorBelow, LabelsSpent, NoImprovement

MODEL = eh.SyntheticModel1.instance("I")


def campaign(**settings: Any) -> eh.Campaign:
    given = {"budget": 600, "distinct": True, **settings}
    return eh.Campaign(MODEL.groups, eh.Optimistic(), eh.Logistic(), **given)


def play(c: eh.Campaign, stream: Any, until: int | None = None) -> str | None:
    """Answer asks from the stream until nothing is left to ask, or so many labels are used."""
    while not c.done and (until is None or c.labels_used < until):
        try:
            r = c.ask()
        except eh.NothingToAsk as nothing:
            return nothing.reason
        draw = stream.draw(np.array([c.groups.index(r.group)]), np.array([r.size]))
        c.tell(r, draw.X, draw.y)
    return None


def test_only_examples_after_the_freeze_count() -> None:
    c, stream = campaign(), MODEL.open(0, [0])
    play(c, stream, until=200)
    before = {*c.training_set().ids.tolist(), *c.validation_set().ids.tolist()}
    assert c.certify().n == (0, 0)
    frozen = c.certified_model()
    play(c, stream)
    found = c.certificate()
    wrong: dict[str, list[bool]] = {group: [] for group in c.groups}
    for part in (c.training_set(), c.validation_set()):  # labels of either role
        guesses = np.asarray(frozen.predict(part.X)) != part.y
        for name, group, is_wrong in zip(part.ids.tolist(), part.groups.tolist(), guesses.tolist(), strict=True):
            if name not in before:
                wrong[group].append(is_wrong)
    assert sum(found.n) == c.labels_used - 200
    for z, group in enumerate(c.groups):
        assert found.n[z] == len(wrong[group])
        assert found.mean[z] == pytest.approx(np.mean(wrong[group]))


def test_every_validation_example_is_scored_by_the_model_before() -> None:
    c, stream = campaign(budget=200), MODEL.open(0, [0])
    play(c, stream)
    c.refit()
    first = c.events()
    told = [e["seq"] for e in first if e["kind"] in ("told", "labelled")]
    scored = [e["seq"] for e in first if e["kind"] == "scored"]
    # those of the first delivery came before there was a model
    early = sum(
        e["facts"]["roles"].count("v") for e in first if e["kind"] in ("told", "labelled") and e["seq"] < scored[0]
    )
    assert told[0] < scored[0]
    assert sum(c.running().n) == len(c.validation_set().y) - early


def test_data_one_already_has_is_no_evidence() -> None:
    c, stream = campaign(), MODEL.open(0, [0])
    play(c, stream, until=100)
    c.refit()
    c.certify()
    before = c.running()
    draw = stream.draw(np.array([0]), np.array([50]))
    c.add(draw.X, draw.y, ["u"] * 50)
    c.refit()
    assert c.certificate().n == (0, 0)
    assert c.running() == before


def test_a_target_stops_the_campaign() -> None:
    c = campaign(budget=6000, stop=ErrorBelow(0.25))
    assert play(c, MODEL.open(0, [0])) in ("stopping rule", None)
    assert c.done
    assert "above 0.25" in c.status()["stopped"]
    assert c.labels_used < 6000
    found, frozen = c.certificate(), c.certified_model()
    assert found.worst_at_most <= 0.25
    truth = MODEL.group_risk(frozen.coef_[0], frozen.intercept_[0])
    assert truth.max() <= found.worst_at_most


def test_other_rules_stop_too() -> None:
    c = campaign(stop=LabelsSpent(100) | NoImprovement(10_000))
    play(c, MODEL.open(0, [0]))
    assert c.labels_used == 100
    with pytest.raises(eh.NothingToAsk, match="stopping rule"):
        c.ask()


def test_there_is_nothing_to_certify_before_the_first_example() -> None:
    with pytest.raises(ValueError, match="no model"):
        campaign().certify()


def test_saved_and_opened_it_goes_on_with_its_certificate(tmp_path: Path) -> None:
    whole, stream = campaign(), MODEL.open(0, [0])
    play(whole, stream, until=200)
    whole.certify()
    play(whole, stream, until=300)
    whole.save(tmp_path / "c.db")
    with eh.Campaign.open(f"sqlite:///{tmp_path / 'c.db'}", whole.name) as half:
        assert half.certificate() == whole.certificate()
        play(whole, stream)
        again = MODEL.open(0, [0])
        for group, n in enumerate(MODEL.groups):
            used = half.counts[n] + int(np.sum(half.validation_set().groups == n))
            again.draw(np.array([group]), np.array([used]))
        play(half, again)
        assert half.certificate() == whole.certificate()
        assert half.running() == whole.running()
        assert half.verify().problems == []

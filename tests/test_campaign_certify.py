"""Certificates and stopping rules in a campaign."""

import numpy as np
import pytest

import evenhand as eh
from evenhand.stopping import LabelsSpent, NoImprovement, TargetError

MODEL = eh.SyntheticModel1.instance("I")


def campaign(**settings):
    return eh.Campaign(MODEL.groups, eh.Optimistic(), eh.Logistic(), **{"budget": 600, **settings})


def play(c, stream, until=None):
    """Answer asks from the stream until nothing is left to ask, or so many labels are used."""
    while not c.done and (until is None or c.labels_used < until):
        try:
            r = c.ask()
        except eh.NothingToAsk as nothing:
            return nothing.reason
        draw = stream.draw(np.array([c.groups.index(r.group)]), np.array([r.size]))
        c.tell(r, draw.X, draw.y)
    return None


def test_only_examples_after_the_freeze_count():
    c, stream = campaign(), MODEL.open(0, [0])
    play(c, stream, until=200)
    frozen, held = c.model, len(c.validation_set().y)
    assert c.certify().n == (0, 0)
    play(c, stream)
    later = c.validation_set()
    wrong = frozen.losses(later.X[held:], later.y[held:])
    found = c.monitor.certificate()
    for z, group in enumerate(c.groups):
        mine = wrong[later.groups[held:] == group]
        assert found.n[z] == len(mine)
        assert found.mean[z] == pytest.approx(mine.mean())
    # the first example came before there was a model
    assert sum(c.monitor.running().n) == len(later.y) - 1


def test_data_one_already_has_is_no_evidence():
    c, stream = campaign(), MODEL.open(0, [0])
    play(c, stream, until=100)
    c.certify()
    before = c.monitor.running()
    draw = stream.draw(np.array([0]), np.array([50]))
    c.add(draw.X, draw.y, ["u"] * 50)
    assert c.monitor.certificate().n == (0, 0)
    assert c.monitor.running() == before


def test_a_target_stops_the_campaign():
    c = campaign(budget=6000, stop=TargetError(0.25))
    assert play(c, MODEL.open(0, [0])) in ("stopping rule", None)
    assert c.done
    assert "above 0.25" in c.monitor.stopped
    assert c.labels_used < 6000
    found = c.monitor.certificate()
    assert found.worst_at_most <= 0.25
    truth = MODEL.group_risk(c.monitor.frozen.coef_[0], c.monitor.frozen.intercept_[0])
    assert truth.max() <= found.worst_at_most


def test_other_rules_stop_too():
    c = campaign(stop=LabelsSpent(100) | NoImprovement(10_000))
    play(c, MODEL.open(0, [0]))
    assert c.labels_used == 100
    with pytest.raises(eh.NothingToAsk, match="stopping rule"):
        c.ask()


def test_there_is_nothing_to_certify_before_the_first_example():
    with pytest.raises(ValueError, match="no model"):
        campaign().certify()


def test_saved_and_loaded_goes_on_with_its_certificate(tmp_path):
    whole, stream = campaign(), MODEL.open(0, [0])
    play(whole, stream, until=200)
    whole.certify()
    play(whole, stream, until=300)
    whole.save(tmp_path)
    half = eh.Campaign.load(tmp_path)
    assert half.monitor.certificate() == whole.monitor.certificate()
    play(whole, stream)
    again = MODEL.open(0, [0])
    for group, n in enumerate(MODEL.groups):
        used = half.counts[n] + int(np.sum(half.validation_set().groups == n))
        again.draw(np.array([group]), np.array([used]))
    play(half, again)
    assert half.monitor.certificate() == whole.monitor.certificate()
    assert half.monitor.running() == whole.monitor.running()

import json
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pytest

import evenhand.stopping as stop
from evenhand.monitor import Monitor
from evenhand.standing import Standing

GROUPS = ("u", "v")


class Fixed:
    """A model that is wrong where the feature says so."""

    def losses(self, X, y, kind="zero_one"):
        return np.asarray(X)[:, 0].astype(float)


def look(monitor, losses, labels, n=(100, 100)):
    """A look at a campaign whose groups have these losses on validation sets of these sizes."""
    n = np.array(n)
    window = np.full((2, 20), np.nan)
    window[:, :2] = np.where(n > 0, 1 - np.array(losses), np.nan)[:, None]
    none = np.zeros(2, dtype=int)
    standing = Standing(
        groups=GROUPS, counts=n, pending=none, validated=n, pending_validation=none, loss_sum=np.array(losses) * n,
        accuracies=window, trend=np.zeros(2), available=n >= 0, starting=np.array(False),
    )  # fmt: skip
    return monitor.look(Fixed(), standing, labels)


def feed(monitor, errors, n):
    for z, (s, k) in enumerate(zip(errors, n, strict=True)):
        X = np.array([[1.0]] * s + [[0.0]] * (k - s))
        monitor.score(Fixed(), X, np.zeros(k), [z] * k)


def test_target_error_freezes_and_then_stops():
    monitor = Monitor(GROUPS, stop.TargetError(0.2))
    assert look(monitor, (0.3, 0.1), 40) is None
    assert look(monitor, (0.1, 0.1), 40, n=(10, 100)) is None
    assert monitor.version == 0
    assert look(monitor, (0.05, 0.05), 60) is None
    assert monitor.version == 1
    feed(monitor, (1, 2), (30, 30))
    assert look(monitor, (0.05, 0.05), 90) is None
    assert monitor.version == 1
    feed(monitor, (2, 1), (90, 90))
    reason = look(monitor, (0.05, 0.05), 110)
    assert "above 0.2" in reason
    assert monitor.certificate().worst_at_most <= 0.2
    # stopped stays stopped
    assert look(monitor, (0.9, 0.9), 120) == reason


def test_target_error_freezes_again_when_the_labels_have_doubled():
    monitor = Monitor(GROUPS, stop.TargetError(0.2))
    look(monitor, (0.05, 0.05), 60)
    feed(monitor, (15, 15), (30, 30))
    look(monitor, (0.05, 0.05), 119)
    assert monitor.version == 1
    look(monitor, (0.05, 0.05), 120)
    assert monitor.version == 2
    assert monitor.certificate().n == (0, 0)


def test_a_group_without_score_is_not_on_target():
    monitor = Monitor(GROUPS, stop.TargetError(0.2))
    look(monitor, (0.0, 0.0), 60, n=(10, 0))
    assert monitor.version == 0


def test_no_improvement():
    monitor = Monitor(GROUPS, stop.NoImprovement(3, by=0.01))
    losses = [(0.5, 0.5), (0.4, 0.5), (0.4, 0.45), (0.395, 0.45), (0.395, 0.5), (0.395, 0.5)]
    found = [look(monitor, x, 10 * k) for k, x in enumerate(losses)]
    assert found[:5] == [None] * 5
    assert found[5] == "no group improved for 3 rounds"


def test_labels_and_deadline():
    monitor = Monitor(GROUPS, stop.LabelsSpent(100))
    assert look(monitor, (0.5, 0.5), 99) is None
    assert look(monitor, (0.5, 0.5), 100) == "100 labels are spent"
    past = datetime.now(UTC) - timedelta(hours=1)
    for when in (past, past.isoformat(), date(2020, 1, 1), "2020-01-01", datetime(2020, 1, 1)):
        assert "past" in look(Monitor(GROUPS, stop.Deadline(when)), (0.5, 0.5), 10)
    assert look(Monitor(GROUPS, stop.Deadline("2999-01-01")), (0.5, 0.5), 10) is None


def test_any_and_all():
    spent, late = stop.LabelsSpent(50), stop.Deadline("2020-01-01")
    assert look(Monitor(GROUPS, spent | late), (0.5, 0.5), 10) is not None
    assert look(Monitor(GROUPS, spent & late), (0.5, 0.5), 10) is None
    both = look(Monitor(GROUPS, spent & late), (0.5, 0.5), 50)
    assert " and " in both
    nested = stop.Any([stop.NoImprovement(7), stop.TargetError(0.2) & late])
    assert nested.rounds_back == 7
    monitor = Monitor(GROUPS, nested)
    look(monitor, (0.05, 0.05), 10)
    assert monitor.version == 1


def test_without_a_rule_nothing_stops():
    monitor = Monitor(GROUPS)
    assert look(monitor, (0.0, 0.0), 10**9) is None
    assert monitor.certificate() is None


def test_examples_are_scored_by_the_model_before_and_by_the_frozen_one():
    monitor = Monitor(GROUPS)
    monitor.score(None, np.ones((3, 1)), np.zeros(3), [0, 0, 1])
    assert monitor.running().n == (0, 0)
    feed(monitor, (1, 2), (4, 4))
    monitor.freeze(Fixed(), labels=8, trained_on=4)
    feed(monitor, (3, 0), (3, 1))
    assert monitor.running().n == (7, 5)
    assert monitor.certificate().n == (3, 1)
    assert monitor.certificate().mean == (1.0, 0.0)


def test_the_frozen_model_is_a_copy():
    class Moving:
        wrong = 0.0

        def losses(self, X, y, kind="zero_one"):
            return np.full(len(y), self.wrong)

    model, monitor = Moving(), Monitor(GROUPS)
    monitor.freeze(model, labels=10, trained_on=5)
    model.wrong = 1.0
    monitor.score(model, np.zeros((5, 1)), np.zeros(5), [0] * 5)
    assert monitor.certificate().mean[0] == 0
    assert monitor.running().mean[0] == 1


def test_a_repeated_example_counts_once():
    monitor = Monitor(GROUPS, repeats=True)
    monitor.score(Fixed(), np.zeros((3, 1)), np.zeros(3), [0, 0, 1], ids=["a", "b", "a"])
    monitor.score(Fixed(), np.zeros((2, 1)), np.zeros(2), [0, 1], ids=["b", "c"])
    assert monitor.running().n == (2, 1)
    with pytest.raises(ValueError, match="ids"):
        monitor.score(Fixed(), np.zeros((1, 1)), np.zeros(1), [0])


def test_saved_and_restored_equals_uninterrupted():
    rule = stop.TargetError(0.2) | stop.NoImprovement(4)
    one, two = Monitor(GROUPS, rule), Monitor(GROUPS, rule)
    look(one, (0.05, 0.05), 60)
    feed(one, (1, 2), (30, 30))
    two.restore(json.loads(json.dumps(one.as_dict())), one.frozen)
    for monitor in (one, two):
        feed(monitor, (2, 1), (20, 20))
    assert one.certificate() == two.certificate()
    assert one.running() == two.running()
    assert [look(m, (0.05, 0.05), 80) for m in (one, two)] == [None, None]
    assert one.as_dict() == two.as_dict()


def test_without_its_model_a_certificate_stands_still():
    one, two = Monitor(GROUPS), Monitor(GROUPS)
    one.freeze(Fixed(), labels=10, trained_on=5, own=True)
    feed(one, (1, 2), (30, 30))
    two.restore(json.loads(json.dumps(one.as_dict())), None)
    assert two.own
    feed(two, (5, 5), (30, 30))
    assert two.certificate() == one.certificate()
    two.freeze(Fixed(), labels=20, trained_on=10)
    assert two.certificate().version == 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: stop.TargetError(0.0), "target"),
        (lambda: stop.TargetError(0.1, confidence=1.0), "confidence"),
        (lambda: stop.NoImprovement(0), "rounds"),
        (lambda: stop.LabelsSpent(0), "labels"),
        (lambda: stop.Deadline("soon"), "soon"),
        (lambda: stop.Any([]), "at least one"),
        (lambda: stop.All(["x"]), "at least one"),
        (lambda: Monitor(GROUPS, stop="never"), "stopping rule"),
        (lambda: Monitor(GROUPS).freeze(None, labels=0, trained_on=0), "no model"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()

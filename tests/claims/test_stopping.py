"""Stopping rules on what they look at; how campaigns keep them is in `campaign/test_stopping.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

import evenhand.claims.stopping as stop
from evenhand.claims.certificates import Evidence
from evenhand.claims.stopping import Seen, parse_stop

GROUPS = ("u", "v")


def evidence(errors: Sequence[int], n: Sequence[int]) -> Callable[[], Evidence]:
    found = Evidence(GROUPS)
    for z, (s, k) in enumerate(zip(errors, n, strict=True)):
        found.add([z] * k, [1.0] * s + [0.0] * (k - s))
    return lambda: found


def seen(errors: Sequence[float] = (0.5, 0.5), labels: int = 10, n: Sequence[int] = (100, 100), **more: Any) -> Seen:
    """A look at a campaign whose groups have these errors on validation sets of these sizes."""
    return Seen(GROUPS, labels=labels, errors=errors, validated=n, **more)


def test_target_error_freezes_and_then_stops() -> None:
    rule = stop.ErrorBelow(0.2)
    assert rule.needs_certificate
    assert not rule.freeze(seen((0.3, 0.1), 40))
    assert not rule.freeze(seen((0.1, 0.1), 40, n=(10, 100)))
    hopeful = seen((0.05, 0.05), 60)
    assert rule.freeze(hopeful)
    assert rule.reason(hopeful) is None  # what steers is no evidence
    frozen = replace(hopeful, version=1, frozen_labels=60)
    assert rule.reason(replace(frozen, labels=90, evidence=evidence((1, 2), (30, 30)))) is None
    enough = evidence((3, 3), (120, 120))
    reason = rule.reason(replace(frozen, labels=110, evidence=enough))
    assert reason is not None
    assert "above 0.2" in reason
    assert enough().certificate(1).worst_at_most <= 0.2
    # what is certified does not depend on the scores since
    assert rule.reason(seen((0.9, 0.9), 120, version=1, evidence=enough)) == reason


def test_a_later_version_needs_more_evidence() -> None:
    rule = stop.ErrorBelow(0.2)
    enough = next(n for n in range(10, 500) if evidence((0, 0), (n, n))().certificate(1).worst_at_most <= 0.2)
    found = [rule.reason(seen(version=k, evidence=evidence((0, 0), (enough, enough)))) for k in (1, 9)]
    assert found[0] is not None
    assert found[1] is None


def test_both_groups_have_to_be_certified() -> None:
    rule = stop.ErrorBelow(0.2)
    assert rule.reason(seen(version=1, evidence=evidence((0, 60), (200, 200)))) is None
    assert rule.reason(seen(version=1, evidence=evidence((0, 0), (200, 0)))) is None


def test_target_error_freezes_again_when_the_labels_have_doubled() -> None:
    rule = stop.ErrorBelow(0.2)
    frozen = seen((0.05, 0.05), version=1, frozen_labels=60, evidence=evidence((15, 15), (30, 30)))
    assert not rule.freeze(replace(frozen, labels=119))
    assert rule.freeze(replace(frozen, labels=120))


def test_a_group_without_score_is_not_on_target() -> None:
    assert not stop.ErrorBelow(0.2).freeze(seen((0.0, 0.0), 60, n=(10, 0)))
    assert not stop.ErrorBelow(0.2).freeze(seen((0.0, 0.0), 60, n=(1000, 0)))


def test_no_improvement() -> None:
    rule = stop.NoImprovement(3, by=0.01)
    losses = [(0.5, 0.5), (0.4, 0.5), (0.4, 0.45), (0.395, 0.45), (0.395, 0.5), (0.395, 0.5)]
    found = [rule.reason(seen(scores=losses[: k + 1])) for k in range(len(losses))]
    assert found[:5] == [None] * 5
    assert found[5] == "no group improved for 3 rounds"
    assert rule.reason(seen(scores=losses[-1 - rule.rounds_back :])) == found[5]  # that is all it looks at
    assert rule.reason(seen(scores=[(0.4, None), *[(0.4, 0.5)] * 3])) is None  # a group that was not scored yet


def test_labels_and_deadline() -> None:
    rule = stop.LabelsSpent(100)
    assert rule.reason(seen(labels=99)) is None
    assert rule.reason(seen(labels=100)) == "100 labels are spent"
    now = datetime(2027, 1, 1, 12, tzinfo=UTC)
    past = now - timedelta(hours=1)
    for when in (past, past.isoformat(), now, date(2020, 1, 1), "2020-01-01", datetime(2020, 1, 1), "2027-01-01"):
        assert "past" in (stop.Deadline(when).reason(seen(now=now)) or "")
    for when in ("2999-01-01", now + timedelta(seconds=1), "2027-01-01T12:00:01", "2027-01-01T11:30:00-01:00"):
        assert stop.Deadline(when).reason(seen(now=now)) is None


def test_any_and_all() -> None:
    now = datetime(2027, 1, 1, tzinfo=UTC)
    spent, late = stop.LabelsSpent(50), stop.Deadline("2020-01-01")
    assert (spent | late).reason(seen(now=now)) is not None
    assert (spent & late).reason(seen(now=now)) is None
    assert " and " in ((spent & late).reason(seen(labels=50, now=now)) or "")
    nested = stop.AnyOf([stop.NoImprovement(7), stop.ErrorBelow(0.2) & late])
    assert nested.rounds_back == 7
    assert nested.needs_certificate
    assert nested.freeze(seen((0.05, 0.05)))
    assert not (spent | late).needs_certificate
    assert not (spent | late).freeze(seen((0.05, 0.05)))


@pytest.mark.parametrize(
    "rule",
    [
        stop.ErrorBelow(0.1),
        stop.ErrorBelow(0.125, 0.9),
        stop.NoImprovement(5),
        stop.NoImprovement(5, 0.01),
        stop.LabelsSpent(70),
        stop.Deadline("2027-03-01T12:00:00+01:00"),
        stop.LabelsSpent(70) | stop.ErrorBelow(0.1) | stop.NoImprovement(2),
        stop.AnyOf([stop.LabelsSpent(70) & stop.Deadline("2027-03-01"), stop.ErrorBelow(0.1)]),
    ],
)
def test_the_text_of_a_rule_says_all_of_it(rule: stop.Rule) -> None:
    again = parse_stop(str(rule))
    assert str(again) == str(rule)
    looks = [
        seen(labels=labels, version=1, now=datetime(2027, 1, 1, tzinfo=UTC) + timedelta(days=days), scores=scores,
             evidence=evidence((errors, errors), (200, 200)))
        for labels in (10, 70) for days in (0, 300) for errors in (0, 9, 40) for scores in ([], [(0.5, 0.5)] * 9)
    ]  # fmt: skip
    assert again is not None
    assert [again.reason(look) for look in looks] == [rule.reason(look) for look in looks]
    assert (again.rounds_back, again.needs_certificate) == (rule.rounds_back, rule.needs_certificate)


def test_all_within_any_and_the_other_way_round() -> None:
    """Text has no brackets: a rule that cannot be written so must not be read as another one."""
    rule = (stop.LabelsSpent(5) | stop.LabelsSpent(7)) & stop.LabelsSpent(9)
    again = parse_stop(str(rule))
    assert again != rule or again.reason(seen(labels=6)) == rule.reason(seen(labels=6))


def test_without_a_rule() -> None:
    assert parse_stop(None) is None
    assert parse_stop([]) is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: stop.ErrorBelow(0.0), "target"),
        (lambda: stop.ErrorBelow(0.1, confidence=1.0), "confidence"),
        (lambda: stop.NoImprovement(0), "rounds"),
        (lambda: stop.LabelsSpent(0), "labels"),
        (lambda: stop.Deadline("soon"), "soon"),
        (lambda: stop.AnyOf([]), "at least one"),
        (lambda: stop.AllOf(["x"]), "at least one"),
        (lambda: parse_stop("never"), "cannot read the stopping rule 'never'"),
        (lambda: parse_stop("labels="), "cannot read the stopping rule 'labels='"),
        (lambda: parse_stop([3]), "stop must be stopping rules"),
        (lambda: parse_stop("target=nan"), "cannot read the stopping rule 'target=nan'"),
    ],
)
def test_bad_input(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()

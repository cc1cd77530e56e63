"""Stopping rules on what they look at; how campaigns keep them is in `campaign/test_stopping.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

import evenhand.claims.stopping as stop
from evenhand.claims.sequences import error_rate
from evenhand.claims.stopping import Seen, parse_stop

GROUPS = ("u", "v")


def certified(target: float, delta: float = 0.05, outcome: str = "certified") -> dict[str, Any]:
    return {"outcome": outcome, "target": target, "delta": delta}


def seen(rates: Sequence[float] = (0.5, 0.5), labels: int = 10, n: Sequence[int] = (100, 100), **more: Any) -> Seen:
    """A look at a campaign whose groups have these risks on validation sets of these sizes."""
    return Seen(GROUPS, **{"labels": labels, "rates": rates, "validated": n, "left": 1000, **more})


def test_a_target_asks_for_a_proof_and_stops_on_its_outcome() -> None:
    rule = stop.ErrorBelow(0.2)
    assert rule.needs_certificate
    assert rule.to_prove(seen((0.3, 0.1), 40)) is None  # not good enough
    hopeful = seen((0.05, 0.05), 60)
    assert rule.to_prove(hopeful) == rule
    assert rule.reason(hopeful) is None  # what steers is no evidence
    reason = rule.reason(replace(hopeful, outcome=certified(0.2)))
    assert reason is not None
    assert "above 0.2" in reason
    assert rule.reason(replace(hopeful, outcome=certified(0.15, 0.01))) == reason  # more than was asked for
    for short in (certified(0.25), certified(0.2, 0.1), certified(0.2, outcome="refuted")):
        assert rule.reason(replace(hopeful, outcome=short)) is None


def test_a_proof_begins_only_if_the_labels_left_would_do() -> None:
    rule = stop.ErrorBelow(0.155)
    # 1,008 and 116 labels by the beta-binomial sequence at half of δ, where the first version has half
    needed = sum(
        next(n for n in range(1, 2000) if error_rate(rate * n, n, 0.025)[1] <= 0.155) for rate in (0.113, 0.05)
    )
    look = seen((0.113, 0.05), 400, left=needed)
    assert rule.to_prove(look) == rule
    assert rule.to_prove(replace(look, left=needed - 1)) is None
    assert rule.to_prove(replace(look, version=3)) is None  # a later version has less of δ


def test_the_next_proof_begins_when_the_labels_have_doubled() -> None:
    rule = stop.ErrorBelow(0.2)
    failed = seen((0.05, 0.05), version=1, frozen_labels=60, outcome=certified(0.2, outcome="not reached"))
    assert rule.to_prove(replace(failed, labels=119)) is None
    assert rule.to_prove(replace(failed, labels=120)) == rule


def test_a_group_without_score_is_not_on_target() -> None:
    assert stop.ErrorBelow(0.2).to_prove(seen((0.0, 0.0), 60, n=(10, 0))) is None
    assert stop.ErrorBelow(0.2).to_prove(seen((0.0, 0.0), 60, n=(1000, 0))) is None


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
    assert nested.to_prove(seen((0.05, 0.05))) == stop.ErrorBelow(0.2)
    assert not (spent | late).needs_certificate
    assert (spent | late).to_prove(seen((0.05, 0.05))) is None


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
             outcome=certified(target, 0.1))
        for labels in (10, 70) for days in (0, 300) for target in (0.1, 0.125) for scores in ([], [(0.5, 0.5)] * 9)
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

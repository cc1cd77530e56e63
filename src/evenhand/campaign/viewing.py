"""What a campaign's page and report show, gathered from its status, its next decision and its past."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from evenhand.campaign.requests import as_time
from evenhand.campaign.words import explain, reason, term_names
from evenhand.errors import InputError, NothingToAsk
from evenhand.report.view import Alert, CampaignView, Collector, GroupRow, Next, colours_for, written
from evenhand.risks import RATES
from evenhand.strategies.decision import Decision

if TYPE_CHECKING:
    from evenhand.campaign.history import Past
    from evenhand.campaign.looking import Looking

__all__ = ["RATES", "SOON", "colours_of", "view_of", "why_of"]

_DAY = 86400.0
_PACE_DAYS = 7
SOON = 0.1
"""A lease is said to end soon when no more than this share of it is left."""
_LATEST = 300
"""How many of the last events are searched for new classes."""


def view_of(campaign: Looking, past: Past | None) -> CampaignView:
    """The campaign as it stands now; without `past`, its past is left out."""
    from evenhand.campaign.status import running

    status = campaign.status()
    with campaign.store.moment() as (reader, state):
        now, recent = reader.now, reader.events(max(state.seq - _LATEST, 0), kinds=("told",))[-8:]
        labels = Counter(row.label for event in recent for row in reader.told_by(event.seq) if row.counts)
        # a union bound over the groups, so that the worst one may be picked out
        average = running(state, 0.05 / max(len(state.groups), 1)).as_dict()["groups"]
        last, population = as_time(state.at), state.settings["population"]
    risk, is_rate = campaign.store.parts.risk.title, status["risk"] in RATES
    coming = _next(campaign, status)
    rows = _groups(status, average, population, coming)
    known = [row for row in rows if row.risk is not None]
    left = status["budget"] - status["used"]
    pace = None if past is None else past.pace(now)
    on = status["closed"] is None and pace is not None and pace > 0 and left > 0
    return CampaignView(
        name=campaign.name,
        status=status,
        now=now,
        risk=risk,
        is_rate=is_rate,
        next=coming,
        groups=rows,
        worst=max(known, key=lambda row: row.risk or 0.0) if known else None,
        terms=term_names(risk),
        points=None if past is None else past.points,
        pace=pace,
        finish=as_time(now + min(left / pace, 36500.0) * _DAY) if on and pace else None,
        collectors=_collectors(status, past, now),
        decisions=[] if past is None else list(past.decisions),
        deliveries=[] if past is None else list(past.deliveries),
        alerts=_alerts(status, labels, now),
        last=last,
    )


def _next(campaign: Looking, status: dict[str, Any]) -> Next | None:
    try:
        proposal = campaign.propose()
    except (NothingToAsk, InputError):  # the user's own strategy may be missing here
        return None
    decision = proposal.decision
    plain, kind = decision.as_dict(), decision.kind
    available = [group["available"] for group in status["groups"].values()]
    unscored = status["scores"]["labels_behind"] if status["learner"] and kind in ("warm-up", "forced", "score") else 0
    return Next(
        plain["group"], proposal.size, kind, why_of(campaign, plain, status),
        explain(decision, campaign.store.parts.risk.title, available=available),
        unscored, plain["terms"], plain["probability"],
    )  # fmt: skip


def why_of(campaign: Looking, decision: dict[str, Any], status: dict[str, Any] | None = None) -> str:
    """Why a decision's group is chosen, in one sentence that stands below its name; with `status` its newest risk is said."""
    found = None if status is None else status["groups"][decision["group"]]["mean_loss"]
    shown = None if found is None else written(found, campaign.settings["risk"] in RATES)
    return reason(Decision.from_dict(campaign.groups, decision), campaign.store.parts.risk.title, shown)


def _groups(
    status: dict[str, Any], average: dict[str, Any], population: list[float] | None, coming: Next | None
) -> list[GroupRow]:
    colours, certificate, found = colours_of(status), status["certificate"], []
    for z, (name, group) in enumerate(status["groups"].items()):
        proven = None if certificate is None else certificate["groups"][name]
        found.append(
            GroupRow(
                name=name,
                colour=colours[name],
                training=group["training"],
                validation=group["validation"],
                evidence=group["certify"] + group["test"],
                pending=group["pending"],
                share=group["share"],
                population=None if population is None else population[z],
                risk=group["mean_loss"],
                n=group["relevant"],
                running=_statement(average[name]),
                certified=None if proven is None else _statement(proven),
                classes=group["classes"],
                left=group.get("left"),
                retired=group["retired"],
                next=coming is not None and coming.group == name,
            )
        )
    return found


def colours_of(status: dict[str, Any]) -> dict[str, int]:
    """The colour of every group; where there are many, the worst-off have their own."""
    names = list(status["groups"])
    return colours_for(names, sorted(names, key=lambda g: -(status["groups"][g]["mean_loss"] or 0.0)))


def _statement(about: dict[str, Any]) -> tuple[int, float | None, float, float]:
    return about["n"], about["mean"], about["low"], about["high"]


def _collectors(status: dict[str, Any], past: Past | None, now: float) -> list[Collector]:
    found, today = [], int(now // _DAY)
    # as the pace of the whole campaign: over the last days, or since the first moment
    age = _PACE_DAYS if past is None or not past.points else (now - past.points[0].at) / _DAY
    for name, totals in status["collectors"].items():
        known = {} if past is None else past.collectors.get(name, {})
        days = dict(known.get("days", {}))
        late = sum(n for day, n in days.items() if day > today - _PACE_DAYS)
        found.append(
            Collector(
                name, totals["requests"], totals["labels"], known.get("left_out", 0), known.get("late", 0),
                late / max(1.0, min(_PACE_DAYS, age)), totals["last"], days,
            )
        )  # fmt: skip
    return sorted(found, key=lambda c: (-c.labels, c.name))


def _alerts(status: dict[str, Any], labels: Counter[str | None], now: float) -> list[Alert]:
    """What needs somebody's attention, worst first."""
    found = []
    if status["learner_failed"]:
        found.append(
            Alert(
                "bad", f"The learner failed, and asks go on with the last scores: {status['learner_failed']['message']}"
            )
        )
    if status["stopped"] and status["closed"] is None:
        found.append(Alert("good", f"The stopping rule is met: {status['stopped']}."))
    proof = status["proof"]
    if proof is not None and not proof["running"]:
        found.append(
            Alert(
                "good" if proof["outcome"] == "certified" else "warn",
                f"The proof of {proof['target']:g} ended: {proof['outcome']}, {proof['why']}.",
            )
        )
    soon = [r["request"] for r in status["open"] if _ends_soon(r["until"], status["lease_seconds"], now)]
    if soon:
        found.append(Alert("warn", f"{_requests(soon)} will expire soon: deliver, or extend the lease."))
    if status["expired"]:
        late = [r["request"] for r in status["expired"]]
        found.append(
            Alert(
                "warn",
                f"{_requests(late)} expired before all labels came; late labels are still taken while the budget lasts.",
            )
        )
    totals: Counter[str] = Counter()
    for group in status["groups"].values():
        totals.update(group["classes"])
    if sum(totals.values()) > sum(labels.values()):
        new = sorted(str(name) for name, n in labels.items() if name is not None and totals[name] <= n)
        found += [Alert("warn", f"A class never seen before came with the last deliveries: {name}.") for name in new]
    if status["certificate"] and status["certificate"]["equal"]:
        found.append(
            Alert("warn", f"{status['certificate']['equal']:,} rows equal an earlier one in all features and label.")
        )
    used_up = (status["pool"] or {}).get("used_up", [])
    if used_up and status["closed"] is None:
        found.append(Alert("warn", f"The pool has nothing left of {_some(used_up)}."))
    return found + [Alert("warn", f"{text[0].upper()}{text[1:]}.") for text in status["warnings"]]


def _ends_soon(until: str | None, lease: float | None, now: float) -> bool:
    if until is None:
        return False
    left = datetime.strptime(until, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp() - now
    return left < SOON * (lease or _DAY)


def _requests(numbers: list[int]) -> str:
    return f"Request {numbers[0]}" if len(numbers) == 1 else f"Requests {_some([str(n) for n in numbers])}"


def _some(names: list[str], most: int = 5) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"

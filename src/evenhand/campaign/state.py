"""The state of a campaign after its events, which are folded without fitting anything."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from evenhand.campaign.facts import Facts
from evenhand.campaign.features import columns_of
from evenhand.errors import LedgerError
from evenhand.ledger.base import Event
from evenhand.notation import JsonMapping, JsonObject
from evenhand.risks import TREND_IS_ACCURACY

__all__ = ["LETTERS", "MADE", "OUTSIDE", "ROLES", "State"]

ROLES = {"t": "train", "v": "validate", "c": "certify", "x": "test"}
"""Roles as the events write them."""
LETTERS = {role: letter for letter, role in ROLES.items()}
OUTSIDE = {"certify": "c", "test": "x"}
"""Kinds of requests whose labels are outside the validation share, and the role these all have."""
# which of the three lists of `held` a role counts in;
# certify labels score, so they stand with validation
_HELD = {"t": 0, "v": 1, "c": 1, "x": 2}

MADE = re.compile(r"[ar]\d+-\d+")
"""What the ids look like that the campaign makes."""


class State(Facts):
    """What the ledger says of one campaign: the fold of its events."""

    def fold(self, events: Iterable[Event]) -> State:
        """Take in events, in order; returns itself."""
        for event in events:
            if event.seq != self.seq + 1:
                raise LedgerError(
                    f"event {event.seq} does not follow event {self.seq}: the ledger has a hole; restore a backup"
                )
            how = _HOW.get(event.kind)
            if how is None:
                raise LedgerError(f"event {event.seq} is {event.kind!r}, which this version does not know: upgrade")
            try:
                how(self, event)
            except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
                # whatever a fact that was tampered with raises: the ledger is at fault then, not the code
                raise LedgerError(
                    f"event {event.seq} ({event.kind}) is damaged: {error!r}; restore a backup"
                ) from error
            self.seq, self.at = event.seq, event.at
            if "once" in event.facts:
                key, of, first = event.facts["once"]
                self.remember(key, of, first, event.seq)
            # a certify phase weighs its evidence again only after an event that can change it
            if event.kind in _EVIDENCE:
                self.evidenced = event.seq
        return self

    def expire(self, now: float) -> State:
        """Treat requests whose lease has ended as expired, though no event says so yet; returns itself."""
        for number in self.overdue(now):
            self._expire(number)
        return self

    # ---------------------------------------------------------------- one method a kind of event

    def _created(self, event: Event) -> None:
        self.settings = dict(event.facts)
        self.created_at = event.at
        self.columns = columns_of(self.settings["features"])
        self._begin()

    def _begin(self) -> None:
        m = len(self.groups)
        names = (
            "train", "validate", "certify", "test", "dealt", "scored", "relevant", "arrived", "rests_on", "promised",
            "given_up",
        )  # fmt: skip
        for name in names:
            setattr(self, name, [0] * m)
        self.held = [[0] * m for _ in range(3)]
        self.loss_sum, self.accuracy = [0.0] * m, [None] * m
        self.recent, self.running = [[] for _ in range(m)], [[0, 0] for _ in range(m)]

    def _asked(self, event: Event) -> None:
        facts = event.facts
        self.asked += 1
        self.asked_outside += facts["decision"]["kind"] in OUTSIDE
        self.open[int(event.request or 0)] = {
            **{name: facts[name] for name in ("size", "until")},
            "group": facts["decision"]["group"],
            "kind": facts["decision"]["kind"],
            "told": 0,
            "by": event.actor,
            "event": event.seq,
            "at": event.at,
        }
        if "ids" in facts:
            z = self.groups.index(facts["decision"]["group"])
            self.open[int(event.request or 0)]["left"] = dict(zip(facts["ids"], facts["roles"], strict=True))
            # only those handed out for the first time: one that comes
            # back from an expired request keeps the role it has
            self.dealt[z] += facts["new"]
            self._fill_pool(z, -len(facts["ids"]))
        self._wait_for(self.open[int(event.request or 0)], 1)
        self._note(event, "requests", 1)

    def _told(self, event: Event) -> None:
        facts, number = event.facts, int(event.request or 0)
        request = self.open.get(number) or self.expired.get(number)
        z = self.groups.index(facts["group"])
        if "roles" in facts:
            self._deal(z, facts["roles"], event.seq)
        else:
            self._deal(z, "v" * facts["validating"] + "t" * (facts["rows"] - facts["validating"]), event.seq)
        if "from_pool" in facts:
            # roles of a pool are drawn when examples are handed out, so these were counted then
            self.dealt[z] -= facts["dealt_before"]
            self._fill_pool(z, -facts["from_pool"])
        self.labels_used += facts["rows"]
        self.added += facts["surplus"]
        # it was counted as lost when its request expired, but has come after all
        for name in facts.get("ids", ()) if self.lost else ():
            self.lost.pop(name, None)
        if self.frozen is not None and facts["surplus"]:  # whoever tells more may choose what is the answer
            if "from_pool" in facts:
                self.lost |= dict.fromkeys(facts["ids"], z)
            elif number > self.frozen["asked"]:
                self.given_up[z] += facts["surplus"]
        if request is not None:
            self._wait_for(request, -1 if number in self.open else 0)
            filled = facts["rows"] - facts["surplus"]
            request["told"] += filled
            for name in facts["ids"] if "left" in request else ():
                request["left"].pop(name, None)
            if request.get("given_up"):
                self.given_up[z] -= filled
            self._wait_for(request, 1 if number in self.open else 0)
            # a count of rows closes its request whatever the
            # number: nobody will tell the rest one by one
            if facts.get("closes") or request["told"] >= request["size"]:
                self._end(number, request)

        self._learn(facts)
        self._note(event, "labels", facts["rows"])

    def _wait_for(self, request: JsonMapping, sign: int) -> None:
        """Count what an open request waits for, or with a sign of -1 stop counting it."""
        z = self.groups.index(request["group"])
        # examples that are named have their roles already; of others
        # only the number is known, and roles follow from places
        if "left" in request:
            for role in request["left"].values():
                self.held[_HELD[role]][z] += sign
        elif request["kind"] in OUTSIDE:
            self.held[_HELD[OUTSIDE[request["kind"]]]][z] += sign * (request["size"] - request["told"])
        else:
            self.promised[z] += sign * (request["size"] - request["told"])

    def _end(self, number: int, request: JsonObject) -> None:
        if number in self.open:
            self._give_up(self._close(number))
        self.expired.pop(number, None)
        self.answered += 1

    def _added(self, event: Event) -> None:
        facts = event.facts
        for z, role in zip(facts["groups"], facts["roles"], strict=True):
            self._deal(z, role, event.seq)
        self.labels_used += facts["charged"]
        self.added += len(facts["groups"]) - facts["charged"]
        self._learn(facts)

    def _deal(self, z: int, roles: str, seq: int) -> None:
        """Count examples by the letters of their roles; only ordinary ones affect the role of the next."""
        for letter, name in ROLES.items():
            getattr(self, name)[z] += roles.count(letter)
        self.dealt[z] += roles.count("t") + roles.count("v")
        if set(roles) != {"x"}:  # test labels train and score nothing, so no refit is due for them
            self.arrived[z] = seq

    def _learn(self, facts: JsonMapping) -> None:
        """Columns and kind of label come with the first rows."""
        self.lookalikes |= not facts.get("made", True) and any(map(MADE.fullmatch, facts["ids"]))
        self.columns = facts.get("columns", self.columns)
        self.label_kind = facts.get("label_kind", self.label_kind)

    def _scored(self, event: Event) -> None:
        facts = event.facts
        self._take_scores(facts["groups"], set(facts["fresh"]))
        self.rests_on = [facts["rests_on"]] * len(self.groups)
        self.scored_at, self.scored_examples, self.failure = event.at, facts["examples"], None
        for group, (n, errors) in facts["running"].items():
            sums = self.running[self.groups.index(group)]
            sums[0] += n
            sums[1] += errors

    def _losses(self, event: Event) -> None:
        reported = event.facts["groups"]
        self._take_scores(reported, set(self.fresh) & reported.keys())
        for group in reported:
            self.rests_on[self.groups.index(group)] = event.seq
        self.scored_at, self.scored_examples = event.at, self.examples

    def _take_scores(self, scores: JsonMapping, fresh: set[str]) -> None:
        window = self.settings["window"]
        for group, score in scores.items():
            z = self.groups.index(group)
            self.loss_sum[z], self.scored[z], self.accuracy[z] = score["loss_sum"], score["n"], score["accuracy"]
            self.relevant[z] = score.get("relevant", score["n"])
            # the trend is over new information only: a refit that brought a group nothing adds no point to its line
            if group in fresh and self.relevant[z]:
                by_accuracy = self.settings["risk"] in TREND_IS_ACCURACY
                good = score["accuracy"] if by_accuracy else 1 - score["loss_sum"] / self.relevant[z]
                self.recent[z] = [*self.recent[z], good][-window:]
        if rounds := self.settings.get("rounds_back"):
            row = [x / n if n else None for x, n in zip(self.loss_sum, self.relevant, strict=True)]
            self.history = [*self.history, row][-1 - rounds :]

    def _failed(self, event: Event) -> None:
        self.failure = {"error": event.facts["error"], "at": event.at, "rests_on": event.facts["rests_on"]}

    def _frozen(self, event: Event) -> None:
        self.frozen = {**event.facts, "event": event.seq, "asked": self.asked}
        self.proving = self.weighed = self.outcome = None
        # evidence on the new model starts from nothing: what was given up before says nothing about it
        self.given_up, self.lost = [0] * len(self.groups), {}
        for request in self.expired.values():
            request["given_up"] = False

    def _proving(self, event: Event) -> None:
        self.proving = {**event.facts, "event": event.seq, "labels": self.labels_used}
        self.outcome = None

    def _weighed(self, event: Event) -> None:
        self.weighed = dict(event.facts)

    def _concluded(self, event: Event) -> None:
        by_rule = bool(self.proving and self.proving["by_rule"])
        self.outcome = {**event.facts, "event": event.seq, "by_rule": by_rule}
        self.proving = None

    def _abandoned(self, event: Event) -> None:
        request = self._close(int(event.request or 0))
        self._return(request)
        self._give_up(request)
        self.abandoned += 1

    def _expired(self, event: Event) -> None:
        self._expire(int(event.request or 0))

    def _expire(self, number: int) -> None:
        request = self.expired[number] = self._close(number)
        self._return(request)
        self._give_up(request)
        request["given_up"] = self._is_evidence(request) and "left" not in request

    def _close(self, number: int) -> JsonObject:
        """Remove a request from the open ones and return its facts."""
        request = self.open.pop(number)
        self._wait_for(request, -1)
        return request

    def _give_up(self, request: JsonMapping) -> None:
        """What a request still waits for will not come: that counts against a frozen model."""
        if not self._is_evidence(request):
            return
        z = self.groups.index(request["group"])
        if "left" in request:
            self.lost |= dict.fromkeys(request["left"], z)
        else:
            self.given_up[z] += request["size"] - request["told"]

    def _is_evidence(self, request: Mapping[str, object]) -> bool:
        """Whether labels of a request are evidence about the frozen model: only if it was made after the freeze.

        What was asked before may have been known to whoever froze the model, or be answered by somebody who sees its errors.
        """
        return self.frozen is not None and bool(request["event"] > self.frozen["event"])

    def _return(self, request: JsonMapping) -> None:
        """Examples that were not labelled go back to the pool."""
        self._fill_pool(self.groups.index(request["group"]), len(request.get("left", ())))

    def _fill_pool(self, z: int, count: int) -> None:
        if self.pool is not None:
            self.pool[z] += count

    def _pooled(self, event: Event) -> None:
        facts = event.facts
        if not self.groups:
            self.settings |= {name: facts[name] for name in ("groups", "population")}
            self._begin()
        started, before = self.has_rows, self.pool or [0] * len(self.groups)
        self.pool = [n + more for n, more in zip(before, facts["counts"], strict=True)]
        if self.frozen is not None:
            # other examples than those of the freeze: whoever changes a pool may choose what is asked for
            self.given_up = [n + more for n, more in zip(self.given_up, facts["removed"], strict=True)]
        self.columns = self.columns if started else facts["columns"]
        self.settings |= {"id": facts["id"]}
        self.lookalikes |= facts["lookalikes"]
        self.files, self.last_row = facts["files"], facts["last_row"]

    def _skipped(self, event: Event) -> None:
        self.skipped += 1
        self._leave(event.facts["id"], event.facts)

    def _leave(self, name: str, facts: JsonMapping) -> None:
        """An example without a label leaves its request, which shrinks, or the pool."""
        z, number = facts["group"], facts["request"]
        if number is not None:
            request = self.open[number]
            self._wait_for(request, -1)
            del request["left"][name]
            request["size"] -= 1
            self._wait_for(request, 1)
            if request["told"] >= request["size"]:
                self._end(number, request)
        elif facts["in_pool"]:
            self._fill_pool(z, -1)
        if self.frozen is not None:  # handed out or not: it would have been, so nobody may pick it out
            self.lost[name] = z

    def _disagreed(self, event: Event) -> None:
        self.disagreements[str(event.actor)] = dict(event.facts)

    def _extended(self, event: Event) -> None:
        self.open[int(event.request or 0)]["until"] = event.facts["until"]

    def _corrected(self, event: Event) -> None:
        self.altered = event.seq
        self.taken["corrected"] += len(event.facts["ids"])
        for z in event.facts["groups"]:
            self.arrived[z] = event.seq

    def _withdrawn(self, event: Event) -> None:
        facts = event.facts
        self.altered = event.seq
        self.taken[event.kind] += len(facts["ids"])
        for z, role in zip(facts["groups"], facts["roles"], strict=True):
            if role != "-":
                getattr(self, ROLES[role])[z] -= 1
                # a test label that is gone changes no model and no score
                self.arrived[z] = event.seq if role != "x" else self.arrived[z]
        self.labels_used -= facts.get("refund", 0)
        if not self.has_rows and self.frozen is None:
            self._forget_columns()

    def _forget_columns(self) -> None:
        """Nothing is left of the rows that fixed the columns: the next ones may have others. Their scores go with them."""
        self.columns, self.label_kind = columns_of(self.settings["features"]), None
        m = len(self.groups)
        self.arrived, self.rests_on, self.scored, self.relevant = [0] * m, [0] * m, [0] * m, [0] * m
        self.loss_sum, self.accuracy, self.recent, self.history = [0.0] * m, [None] * m, [[] for _ in range(m)], []
        self.scored_at, self.scored_examples, self.failure = None, 0, None

    def _erased(self, event: Event) -> None:
        self._withdrawn(event)
        for name, facts in event.facts["unlabelled"].items():
            self._leave(name, facts)

    def _changed(self, event: Event) -> None:
        facts = dict(event.facts)
        self.retired = facts.pop("retired", self.retired)
        self.settings |= facts
        if facts.get("order") == "copy":  # what was proven is said of the campaign itself
            self.frozen = self.proving = self.weighed = self.outcome = None
        if "stop" in facts:
            self.outcome = None
        if "learner" in facts:
            # the scores are those of another learner: every group that has examples is due
            self.failure = None
            self.arrived = [event.seq if came else 0 for came in self.arrived]

    def _closed(self, event: Event) -> None:
        self.closed = event.facts["reason"]
        self.choice = event.facts.get("choice")
        if self.proving is not None:
            bound = 1.0 if self.weighed is None else self.weighed["worst_at_most"]
            about = {"target": self.proving["target"], "delta": self.proving["delta"], "worst_at_most": bound}
            about |= {"labels": self.labels_used - self.proving["labels"], "event": event.seq, "by_rule": False}
            self.outcome = {"outcome": "not reached", "why": "the campaign was closed before it was proven", **about}
            self.proving = None
        for number in list(self.open):
            self._give_up(self._close(number))

    def _note(self, event: Event, what: str, count: int) -> None:
        if event.actor is not None:
            totals = self.collectors.setdefault(event.actor, {"requests": 0, "labels": 0, "last": event.at})
            totals[what] += count
            totals["last"] = event.at


_KINDS = (
    "created", "asked", "told", "added", "scored", "losses", "failed", "abandoned", "expired", "extended", "corrected",
    "withdrawn", "erased", "pooled", "skipped", "changed", "frozen", "proving", "weighed", "concluded", "closed",
    "disagreed",
)  # fmt: skip
_EVIDENCE = frozenset(_KINDS) - {
    "asked",
    "extended",
    "scored",
    "losses",
    "failed",
    "proving",
    "weighed",
    "concluded",
    "disagreed",
}
_HOW: dict[str, Callable[[State, Event], None]] = {kind: getattr(State, f"_{kind}") for kind in _KINDS}

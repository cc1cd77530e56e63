"""The state of a campaign: what its events add up to, folded without fitting anything."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Self, TypedDict, TypeVar, cast

from evenhand.campaign import events as kinds
from evenhand.campaign.events import (
    Answer,
    Closed,
    ColumnFacts,
    Concluded,
    Disagreed,
    Failed,
    Frozen,
    Kind,
    Leaving,
    NoFacts,
    PoolFile,
    Proving,
    Roles,
    Score,
    Settings,
    Weighed,
)
from evenhand.campaign.examples import columns_of
from evenhand.errors import LedgerError
from evenhand.ledger.base import Event
from evenhand.ledger.text import as_text, from_text
from evenhand.notation import JsonValue
from evenhand.risks import TREND_IS_ACCURACY

ORDER_BY_SEED = (
    "in this campaign the seed decides the order of a pool's rows, so whoever named the rows may have chosen which come "
    "late; make the campaign without seed= if it is to prove something"
)

# raised whenever a field changes: older snapshots are
# then ignored, and the events are folded from the first
_FORMAT = 6
_KEYS = 1000
# JSON has text keys only, so these two are converted both ways
_BY_NUMBER = ("open", "expired")


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


class OpenRequest(TypedDict):
    """A request that waits for labels, or whose lease ended before they came.

    `left`: the examples it still waits for with their roles, where it names them; else None. `given_up`: whether what it
    lacked when its lease ended was counted against the frozen model.
    """

    group: str
    kind: str
    size: int
    until: float | None
    told: int
    by: str | None
    event: int
    at: float
    left: dict[str, str] | None
    given_up: bool


class FrozenRecord(Frozen):
    """A frozen model, with the event that froze it and the requests made before."""

    event: int
    asked: int


class Phase(Proving):
    """A certify phase, with the event that began it and the labels there were."""

    event: int
    labels: int


class Outcome(Concluded):
    """How a certify phase ended, with the event that ended it, and whether a stopping rule had begun it."""

    event: int
    by_rule: bool


class Failure(Failed):
    """How the learner failed, and when."""

    at: float


class Collector(TypedDict):
    """What one collector was given and brought, and the last activity."""

    requests: int
    labels: int
    last: float


F = TypeVar("F", bound=Mapping[str, object])
_HOW: dict[str, Callable[[State, Event], None]] = {}


def _folds(kind: Kind[F]) -> Callable[[Callable[[State, Event, F], None]], Callable[[State, Event, F], None]]:
    """Fold events of this kind by the method below."""

    def register(how: Callable[[State, Event, F], None]) -> Callable[[State, Event, F], None]:
        _HOW[kind.name] = lambda state, event: how(state, event, kind.facts(event))
        return how

    return register


@dataclass
class State:
    """What the ledger says of one campaign; lists are in the order of the groups.

    Attributes:
        seq, at: the last event folded in, and when that was.
        settings: what the campaign was created with, as changed since.
        closed: why it was closed; None while it is open.
        choice: the model to deploy as it was chosen when the campaign was closed.
        asked: requests made so far; asked_outside: those for test labels and in certify phases.
        labels_used: labels charged to the budget.
        added: examples that were there before, and surplus: what can be told is budget plus these.
        train, validate: examples of each role, those taken back left out.
        certify, test: examples outside the validation share: labels of a certify phase, and test labels.
        dealt: ordinary examples so far, those taken back included: the next one's role is drawn from this.
        scored: validation examples that the newest scores are about.
        relevant, loss_sum, accuracy: those the risk is about, their losses, the accuracy on all.
        recent: recent accuracies (another risk than the error: 1 − risk), oldest first.
        history: mean losses at the last scores, as far back as the stopping rule looks.
        arrived: the last event that brought or changed examples of a group.
        rests_on: the last event a group's scores rest on.
        scored_at, scored_examples: when the newest scores came, and how many examples there were for them.
        failure: how the learner failed since then: the kind of error, when, and on which examples.
        open: requests waiting for labels, by number.
        promised: labels of each group that open requests wait for, those of named examples left out.
        held: labels of each group that open requests wait for and whose role is known: training, validation, test.
        expired: requests whose lease ended before all their labels came.
        abandoned, answered: how many requests ended that way.
        retired: groups that have nothing left to give.
        columns, label_kind: what rows look like, known from the first delivery on, or since the campaign was made.
        collectors: requests, labels and last activity of every collector.
        running: validation examples and errors of the models so far, each on examples told after it was fitted.
        frozen: the frozen model: version, event, labels, and so on.
        proving: the certify phase that is under way: target, delta, most, and so on.
        weighed: the evidence that the phase decides on, as of an event.
        outcome: how the last phase ended; None once something else was decided since.
        evidenced: the last event that may have changed what is known of the frozen model.
        given_up: labels asked for since the freeze, without naming examples, that will not come; and examples of pools
            replaced since.
        lost: examples of pools that left without a label when it was their turn, and their groups: given back, skipped,
            erased, or told as extra.
        altered: the last event that changed or took back an example.
        taken: how many labels were corrected, withdrawn and erased.
        pool: how many examples of each group can be handed out; None without a pool.
        files, last_row: the Parquet files that rows of the pool lie in, and the last row number given to one.
        skipped: examples that nobody can label.
        disagreements: examples whose answers in a labelling tool contradict each other, by the tool: their number, and ids.
        lookalikes: whether an id that somebody gave looks like one that we make.
        keys: the newest idempotency keys: what each was used for, and the first and last event of its step.
    """

    seq: int = 0
    at: float = 0.0
    settings: Settings = field(default_factory=lambda: cast(Settings, {}))
    created_at: float = 0.0
    closed: str | None = None
    choice: dict[str, JsonValue] | None = None
    asked: int = 0
    asked_outside: int = 0
    labels_used: int = 0
    added: int = 0
    train: list[int] = field(default_factory=list)
    validate: list[int] = field(default_factory=list)
    certify: list[int] = field(default_factory=list)
    test: list[int] = field(default_factory=list)
    dealt: list[int] = field(default_factory=list)
    scored: list[int] = field(default_factory=list)
    relevant: list[int] = field(default_factory=list)
    loss_sum: list[float] = field(default_factory=list)
    accuracy: list[float | None] = field(default_factory=list)
    recent: list[list[float]] = field(default_factory=list)
    history: list[list[float | None]] = field(default_factory=list)
    arrived: list[int] = field(default_factory=list)
    rests_on: list[int] = field(default_factory=list)
    scored_at: float | None = None
    scored_examples: int = 0
    failure: Failure | None = None
    open: dict[int, OpenRequest] = field(default_factory=dict)
    promised: list[int] = field(default_factory=list)
    held: list[list[int]] = field(default_factory=list)
    expired: dict[int, OpenRequest] = field(default_factory=dict)
    abandoned: int = 0
    answered: int = 0
    retired: list[str] = field(default_factory=list)
    columns: ColumnFacts | None = None
    label_kind: str | None = None
    collectors: dict[str, Collector] = field(default_factory=dict)
    running: list[list[float]] = field(default_factory=list)
    frozen: FrozenRecord | None = None
    proving: Phase | None = None
    weighed: Weighed | None = None
    outcome: Outcome | None = None
    evidenced: int = 0
    given_up: list[int] = field(default_factory=list)
    lost: dict[str, int] = field(default_factory=dict)
    altered: int = 0
    taken: dict[str, int] = field(default_factory=lambda: {"corrected": 0, "withdrawn": 0, "erased": 0})
    pool: list[int] | None = None
    files: list[PoolFile] = field(default_factory=list)
    last_row: int = 0
    skipped: int = 0
    disagreements: dict[str, Disagreed] = field(default_factory=dict)
    lookalikes: bool = False
    keys: dict[str, tuple[str, int, int]] = field(default_factory=dict)

    @property
    def groups(self) -> list[str]:
        """The names of the groups."""
        return self.settings["groups"]

    @property
    def examples(self) -> int:
        """How many examples train or score models; test labels do neither."""
        return sum(self.train) + sum(self.validate) + sum(self.certify)

    @property
    def scores_rest_on(self) -> int:
        """The last event that the newest scores rest on; 0 without scores."""
        return max(self.rests_on, default=0)

    @property
    def has_rows(self) -> bool:
        """Whether there is a pool, or an example that was not taken back."""
        return self.pool is not None or self.examples + sum(self.test) > 0

    @property
    def fresh(self) -> list[str]:
        """Groups that received examples since they were last scored."""
        return [g for g, came, rests in zip(self.groups, self.arrived, self.rests_on, strict=True) if came > rests]

    @property
    def outstanding(self) -> int:
        """Labels that open requests still wait for."""
        return sum(self.promised) + sum(map(sum, self.held))

    @property
    def missing(self) -> list[int]:
        """Labels of every group asked for since the model was frozen that will not come."""
        found = list(self.given_up)
        for z in self.lost.values():
            found[z] += 1
        return found

    @property
    def unproven(self) -> str | None:
        """Why nothing can be proven here; None where it can."""
        order = self.settings["order"]
        if order == "copy":
            return (
                "this is a copy, in which everything can be tried until it looks well: certify in the campaign itself"
            )
        return ORDER_BY_SEED if order == "seed" and self.pool is not None else None

    @property
    def unspent(self) -> int:
        """Labels neither spent nor promised to an open request."""
        return self.settings["budget"] - self.labels_used - self.outstanding

    def remember(self, key: str, of: str, first: int, last: int) -> None:
        """Remember a step by its idempotency key while it is among the newest: retries come soon or never."""
        self.keys[key] = (of, first, last)
        if len(self.keys) > _KEYS:
            del self.keys[next(iter(self.keys))]

    def overdue(self, now: float) -> list[int]:
        """Open requests whose lease has ended."""
        return [number for number, r in self.open.items() if r["until"] is not None and r["until"] <= now]

    def copy(self) -> Self:
        """An independent copy of the state."""
        # through the text of a snapshot: one way to write all fields,
        # four times as quick as deepcopy, and every copy tests it
        found = self.from_text(self.as_text())
        if found is None:
            raise AssertionError("a state reads its own text")
        return found

    def as_text(self) -> str:
        """The state as text, for a snapshot."""
        named = {name: {str(number): facts for number, facts in getattr(self, name).items()} for name in _BY_NUMBER}
        return as_text({"format": _FORMAT, **vars(self), **named})

    @classmethod
    def from_text(cls, text: str) -> Self | None:
        """The state of a snapshot; None for one of another version, which is as good as none."""
        found = from_text(text)
        if found.pop("format") != _FORMAT:
            return None
        found |= {name: {int(number): facts for number, facts in found[name].items()} for name in _BY_NUMBER}
        found["keys"] = {key: tuple(known) for key, known in found["keys"].items()}
        return cls(**found)

    # ---------------------------------------------------------------- folding

    def fold(self, events: Iterable[Event]) -> State:
        """Take in events, in order; returns itself."""
        for event in events:
            if event.seq != self.seq + 1:
                raise LedgerError(
                    f"event {event.seq} does not follow event {self.seq}: the ledger has a hole; restore a backup"
                )
            kind = kinds.KINDS.get(event.kind)
            if kind is None:
                raise LedgerError(f"event {event.seq} is {event.kind!r}, which this version does not know: upgrade")
            try:
                if kind.folded:
                    _HOW[kind.name](self, event)
            except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
                # whatever a fact that was tampered with raises: the ledger is at fault then, not the code
                raise LedgerError(
                    f"event {event.seq} ({event.kind}) is damaged: {error!r}; restore a backup"
                ) from error
            self.seq, self.at = event.seq, event.at
            if kinds.ONCE in event.facts:
                key, of, first = cast("tuple[str, str, int]", event.facts[kinds.ONCE])
                self.remember(key, of, first, event.seq)
            # a certify phase weighs its evidence again only after an event that can change it
            if kind.evidence:
                self.evidenced = event.seq
        return self

    def expire(self, now: float) -> State:
        """Treat requests whose lease has ended as expired, though no event says so yet; returns itself."""
        for number in self.overdue(now):
            self._expire(number)
        return self

    def waiting(self, number: int | None) -> OpenRequest | None:
        """A request that labels may still answer, open or expired; None for another."""
        return self.open.get(number or 0) or self.expired.get(number or 0)

    # ---------------------------------------------------------------- one method a kind of event

    @_folds(kinds.CREATED)
    def _created(self, event: Event, facts: Settings) -> None:
        self.settings = cast(Settings, dict(facts))
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

    @_folds(kinds.POOLED)
    def _pooled(self, event: Event, facts: kinds.Pooled) -> None:
        if not self.groups:
            self.settings["groups"], self.settings["population"] = facts["groups"], facts["population"]
            self._begin()
        started, before = self.has_rows, self.pool or [0] * len(self.groups)
        self.pool = [n + more for n, more in zip(before, facts["counts"], strict=True)]
        if self.frozen is not None:
            # other examples than those of the freeze: whoever changes a pool may choose what is asked for
            self.given_up = [n + more for n, more in zip(self.given_up, facts["removed"], strict=True)]
        self.columns = self.columns if started else facts["columns"]
        self.settings["id"] = facts["id"]
        self.lookalikes |= facts["lookalikes"]
        self.files, self.last_row = facts["files"], facts["last_row"]

    # ---------------------------------------------------------------- requests

    @_folds(kinds.ASKED)
    def _asked(self, event: Event, facts: kinds.Asked) -> None:
        self._open(event, facts, None)

    @_folds(kinds.NAMED)
    def _named(self, event: Event, facts: kinds.Named) -> None:
        z = self.groups.index(facts["decision"]["group"])
        # only those handed out for the first time: one that comes
        # back from an expired request keeps the role it has
        self.dealt[z] += facts["new"]
        self._fill_pool(z, -len(facts["ids"]))
        self._open(event, facts, dict(zip(facts["ids"], facts["roles"], strict=True)))

    def _open(self, event: Event, facts: kinds.Asked, left: dict[str, str] | None) -> None:
        decision = facts["decision"]
        self.asked += 1
        self.asked_outside += decision["kind"] in OUTSIDE
        request = self.open[int(event.request or 0)] = {
            "group": decision["group"], "kind": decision["kind"], "size": facts["size"], "until": facts["until"],
            "told": 0, "by": event.actor, "event": event.seq, "at": event.at, "left": left, "given_up": False,
        }  # fmt: skip
        self._wait_for(request, 1)
        self._note(event, "requests", 1)

    @_folds(kinds.EXTENDED)
    def _extended(self, event: Event, facts: kinds.Extended) -> None:
        self.open[int(event.request or 0)]["until"] = facts["until"]

    @_folds(kinds.ABANDONED)
    def _abandoned(self, event: Event, facts: NoFacts) -> None:
        request = self._close(int(event.request or 0))
        self._return(request)
        self._give_up(request)
        self.abandoned += 1

    @_folds(kinds.EXPIRED)
    def _expired(self, event: Event, facts: NoFacts) -> None:
        self._expire(int(event.request or 0))

    def _expire(self, number: int) -> None:
        request = self.expired[number] = self._close(number)
        self._return(request)
        self._give_up(request)
        request["given_up"] = self._is_evidence(request) and request["left"] is None

    def _wait_for(self, request: OpenRequest, sign: int) -> None:
        """Count what an open request waits for, or with a sign of -1 stop counting it."""
        z = self.groups.index(request["group"])
        # examples that are named have their roles already; of others
        # only the number is known, and roles follow from places
        if request["left"] is not None:
            for role in request["left"].values():
                self.held[_HELD[role]][z] += sign
        elif request["kind"] in OUTSIDE:
            self.held[_HELD[OUTSIDE[request["kind"]]]][z] += sign * (request["size"] - request["told"])
        else:
            self.promised[z] += sign * (request["size"] - request["told"])

    def _end(self, number: int) -> None:
        if number in self.open:
            self._give_up(self._close(number))
        self.expired.pop(number, None)
        self.answered += 1

    def _close(self, number: int) -> OpenRequest:
        """Remove a request from the open ones and return it."""
        request = self.open.pop(number)
        self._wait_for(request, -1)
        return request

    def _give_up(self, request: OpenRequest) -> None:
        """What a request still waits for will not come: that counts against a frozen model."""
        if not self._is_evidence(request):
            return
        z = self.groups.index(request["group"])
        if request["left"] is not None:
            self.lost |= dict.fromkeys(request["left"], z)
        else:
            self.given_up[z] += request["size"] - request["told"]

    def _is_evidence(self, request: OpenRequest) -> bool:
        """Whether labels of a request are evidence about the frozen model: only if it was made after the freeze.

        What was asked before may have been known to whoever froze the model, or be answered by somebody who sees its errors.
        """
        return self.frozen is not None and request["event"] > self.frozen["event"]

    def _return(self, request: OpenRequest) -> None:
        """Examples that were not labelled go back to the pool."""
        self._fill_pool(self.groups.index(request["group"]), len(request["left"] or ()))

    def _fill_pool(self, z: int, count: int) -> None:
        if self.pool is not None:
            self.pool[z] += count

    # ---------------------------------------------------------------- labels

    @_folds(kinds.TOLD)
    def _told(self, event: Event, facts: kinds.Told) -> None:
        self._find(facts["ids"])
        self._give_up_surplus(event, facts)
        self._answer(event, facts, facts["roles"], facts["ids"])
        self._learn(facts)

    @_folds(kinds.LABELLED)
    def _labelled(self, event: Event, facts: kinds.Labelled) -> None:
        z = self.groups.index(facts["group"])
        self._find(facts["ids"])
        if self.frozen is not None and facts["surplus"]:  # whoever tells more may choose what is the answer
            self.lost |= dict.fromkeys(facts["ids"], z)
        self._answer(event, facts, facts["roles"], facts["ids"])
        # roles of a pool are drawn when examples are handed out, so these were counted then
        self.dealt[z] -= facts["dealt_before"]
        self._fill_pool(z, -facts["from_pool"])
        self.label_kind = facts["label_kind"] or self.label_kind

    @_folds(kinds.COUNTED)
    def _counted(self, event: Event, facts: kinds.Counted) -> None:
        roles = "".join(
            LETTERS[name] * n
            for name, n in (
                ("train", facts["train"]), ("validate", facts["validate"]), ("certify", facts["certify"]),
                ("test", facts["test"]),
            )
        )  # fmt: skip
        self._give_up_surplus(event, facts)
        # a count of rows closes its request whatever the number: nobody will tell the rest one by one
        self._answer(event, facts, roles, (), closes=True)

    def _answer(self, event: Event, facts: Answer, roles: Roles, ids: Iterable[str], *, closes: bool = False) -> None:
        """Count labels in, and stop waiting for them; a request that has all of its own ends."""
        z, number = self.groups.index(facts["group"]), int(event.request or 0)
        self._deal(z, roles, event.seq)
        self.labels_used += facts["rows"]
        self.added += facts["surplus"]
        request = self.waiting(number)
        if request is not None:
            self._wait_for(request, -1 if number in self.open else 0)
            filled = facts["rows"] - facts["surplus"]
            request["told"] += filled
            if request["left"] is not None:
                for name in ids:
                    request["left"].pop(name, None)
            if request["given_up"]:
                self.given_up[z] -= filled
            self._wait_for(request, 1 if number in self.open else 0)
            if closes or request["told"] >= request["size"]:
                self._end(number)
        self._note(event, "labels", facts["rows"])

    def _find(self, ids: Iterable[str]) -> None:
        """Examples that were counted as lost when their request expired, but have come after all."""
        for name in ids if self.lost else ():
            self.lost.pop(name, None)

    def _give_up_surplus(self, event: Event, facts: Answer) -> None:
        """Rows beyond those asked for count against a frozen model: whoever tells more may choose what is the answer."""
        if self.frozen is not None and int(event.request or 0) > self.frozen["asked"]:
            self.given_up[self.groups.index(facts["group"])] += facts["surplus"]

    @_folds(kinds.ADDED)
    def _added(self, event: Event, facts: kinds.Added) -> None:
        for z, role in zip(facts["groups"], facts["roles"], strict=True):
            self._deal(z, role, event.seq)
        self.labels_used += facts["charged"]
        self.added += len(facts["groups"]) - facts["charged"]
        self._learn(facts)

    def _deal(self, z: int, roles: Roles, seq: int) -> None:
        """Count examples by the letters of their roles; only ordinary ones affect the role of the next."""
        for letter, name in ROLES.items():
            getattr(self, name)[z] += roles.count(letter)
        self.dealt[z] += roles.count("t") + roles.count("v")
        if set(roles) != {"x"}:  # test labels train and score nothing, so no refit is due for them
            self.arrived[z] = seq

    def _learn(self, facts: kinds.Rows) -> None:
        """ColumnFacts and kind of label come with the first rows."""
        self.lookalikes |= not facts["made"] and any(map(MADE.fullmatch, facts["ids"]))
        self.columns = facts["columns"] or self.columns
        self.label_kind = facts["label_kind"] or self.label_kind

    # ---------------------------------------------------------------- labels changed or taken back

    @_folds(kinds.CORRECTED)
    def _corrected(self, event: Event, facts: kinds.Corrected) -> None:
        self.altered = event.seq
        self.taken["corrected"] += len(facts["ids"])
        for z in facts["groups"]:
            self.arrived[z] = event.seq

    @_folds(kinds.WITHDRAWN)
    def _withdrawn(self, event: Event, facts: kinds.Withdrawn) -> None:
        self._take_back(event, facts, facts["roles"])
        self.labels_used -= facts["refund"]

    @_folds(kinds.ERASED)
    def _erased(self, event: Event, facts: kinds.Erased) -> None:
        self._take_back(event, facts, facts["roles"])
        for name, leaves in facts["unlabelled"].items():
            self._leave(name, leaves)

    def _take_back(self, event: Event, facts: kinds.Altered, roles: Roles) -> None:
        self.altered = event.seq
        self.taken[event.kind] += len(facts["ids"])
        for z, role in zip(facts["groups"], roles, strict=True):
            if role != "-":
                getattr(self, ROLES[role])[z] -= 1
                # a test label that is gone changes no model and no score
                self.arrived[z] = event.seq if role != "x" else self.arrived[z]
        if not self.has_rows and self.frozen is None:
            self._forget_columns()

    def _forget_columns(self) -> None:
        """Nothing is left of the rows that fixed the columns: the next ones may have others. Their scores go with them."""
        self.columns, self.label_kind = columns_of(self.settings["features"]), None
        m = len(self.groups)
        self.arrived, self.rests_on, self.scored, self.relevant = [0] * m, [0] * m, [0] * m, [0] * m
        self.loss_sum, self.accuracy, self.recent, self.history = [0.0] * m, [None] * m, [[] for _ in range(m)], []
        self.scored_at, self.scored_examples, self.failure = None, 0, None

    @_folds(kinds.SKIPPED)
    def _skipped(self, event: Event, facts: kinds.Skipped) -> None:
        self.skipped += 1
        self._leave(facts["id"], facts)

    def _leave(self, name: str, facts: Leaving) -> None:
        """An example without a label leaves its request, which shrinks, or the pool."""
        z, number = facts["group"], facts["request"]
        if number is not None:
            request = self.open[number]
            self._wait_for(request, -1)
            if request["left"] is not None:
                del request["left"][name]
            request["size"] -= 1
            self._wait_for(request, 1)
            if request["told"] >= request["size"]:
                self._end(number)
        elif facts["in_pool"]:
            self._fill_pool(z, -1)
        if self.frozen is not None:  # handed out or not: it would have been, so nobody may pick it out
            self.lost[name] = z

    @_folds(kinds.DISAGREED)
    def _disagreed(self, event: Event, facts: Disagreed) -> None:
        self.disagreements[str(event.actor)] = facts

    # ---------------------------------------------------------------- models

    @_folds(kinds.SCORED)
    def _scored(self, event: Event, facts: kinds.Scored) -> None:
        self._take_scores(facts["groups"], set(facts["fresh"]))
        self.rests_on = [facts["rests_on"]] * len(self.groups)
        self.scored_at, self.scored_examples, self.failure = event.at, facts["examples"], None
        for group, (n, errors) in facts["running"].items():
            sums = self.running[self.groups.index(group)]
            sums[0] += n
            sums[1] += errors

    @_folds(kinds.LOSSES)
    def _losses(self, event: Event, facts: kinds.Losses) -> None:
        reported = facts["groups"]
        self._take_scores(reported, set(self.fresh) & reported.keys())
        for group in reported:
            self.rests_on[self.groups.index(group)] = event.seq
        self.scored_at, self.scored_examples = event.at, self.examples

    def _take_scores(self, scores: Mapping[str, Score], fresh: set[str]) -> None:
        window = self.settings["window"]
        for group, score in scores.items():
            z = self.groups.index(group)
            self.loss_sum[z], self.scored[z], self.accuracy[z] = score["loss_sum"], score["n"], score["accuracy"]
            self.relevant[z] = score["relevant"]
            # the trend is over new information only: a refit that brought a group nothing adds no point to its line
            if group in fresh and self.relevant[z]:
                by_accuracy = self.settings["risk"] in TREND_IS_ACCURACY
                good = score["accuracy"] if by_accuracy else 1 - score["loss_sum"] / self.relevant[z]
                self.recent[z] = [*self.recent[z], good][-window:]
        if rounds := self.settings["rounds_back"]:
            row = [x / n if n else None for x, n in zip(self.loss_sum, self.relevant, strict=True)]
            self.history = [*self.history, row][-1 - rounds :]

    @_folds(kinds.FAILED)
    def _failed(self, event: Event, facts: Failed) -> None:
        self.failure = {**facts, "at": event.at}

    @_folds(kinds.FROZEN)
    def _frozen(self, event: Event, facts: Frozen) -> None:
        self.frozen = {**facts, "event": event.seq, "asked": self.asked}
        self.proving = self.weighed = self.outcome = None
        # evidence on the new model starts from nothing: what was given up before says nothing about it
        self.given_up, self.lost = [0] * len(self.groups), {}
        for request in self.expired.values():
            request["given_up"] = False

    @_folds(kinds.PROVING)
    def _proving(self, event: Event, facts: Proving) -> None:
        self.proving = {**facts, "event": event.seq, "labels": self.labels_used}
        self.outcome = None

    @_folds(kinds.WEIGHED)
    def _weighed(self, event: Event, facts: Weighed) -> None:
        self.weighed = facts

    @_folds(kinds.CONCLUDED)
    def _concluded(self, event: Event, facts: Concluded) -> None:
        by_rule = self.proving is not None and self.proving["by_rule"]
        self.outcome = {**facts, "event": event.seq, "by_rule": by_rule}
        self.proving = None

    # ---------------------------------------------------------------- running it

    @_folds(kinds.CHANGED)
    def _changed(self, event: Event, facts: kinds.Changed) -> None:
        self.settings = {**self.settings, **facts["changes"]}
        if "stop" in facts["changes"]:
            self.outcome = None
        if "learner" in facts["changes"]:
            # the scores are those of another learner: every group that has examples is due
            self.failure = None
            self.arrived = [event.seq if came else 0 for came in self.arrived]

    @_folds(kinds.RETIRED)
    def _retired(self, event: Event, facts: kinds.Retired) -> None:
        self.retired = facts["groups"]

    @_folds(kinds.COPIED)
    def _copied(self, event: Event, facts: NoFacts) -> None:
        self.settings["order"] = "copy"
        # what was proven is said of the campaign itself
        self.frozen = self.proving = self.weighed = self.outcome = None

    @_folds(kinds.CLOSED)
    def _closed(self, event: Event, facts: Closed) -> None:
        self.closed, self.choice = facts["reason"], facts["choice"]
        if self.proving is not None:
            self.outcome = {
                "outcome": "not reached",
                "why": "the campaign was closed before it was proven",
                "group": None,
                "target": self.proving["target"],
                "delta": self.proving["delta"],
                "worst_at_most": 1.0 if self.weighed is None else self.weighed["worst_at_most"],
                "labels": self.labels_used - self.proving["labels"],
                "event": event.seq,
                "by_rule": False,
            }
            self.proving = None
        for number in list(self.open):
            self._give_up(self._close(number))

    def _note(self, event: Event, what: Literal["requests", "labels"], count: int) -> None:
        if event.actor is not None:
            totals = self.collectors.setdefault(event.actor, {"requests": 0, "labels": 0, "last": event.at})
            totals[what] += count
            totals["last"] = event.at


if missing := {kind.name for kind in kinds.KINDS.values() if kind.folded} - _HOW.keys():
    raise AssertionError(f"no method folds {', '.join(sorted(missing))}")

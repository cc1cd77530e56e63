"""What a campaign's events add up to: plain numbers and lists, as a snapshot keeps them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

from evenhand.ledger.text import as_text, from_text
from evenhand.notation import JsonObject

__all__ = ["ORDER_BY_SEED", "Facts"]

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


@dataclass
class Facts:
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
    settings: dict[str, Any] = field(default_factory=dict)
    created_at: float = 0.0
    closed: str | None = None
    choice: JsonObject | None = None
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
    failure: JsonObject | None = None
    open: dict[int, JsonObject] = field(default_factory=dict)
    promised: list[int] = field(default_factory=list)
    held: list[list[int]] = field(default_factory=list)
    expired: dict[int, JsonObject] = field(default_factory=dict)
    abandoned: int = 0
    answered: int = 0
    retired: list[str] = field(default_factory=list)
    columns: JsonObject | None = None
    label_kind: str | None = None
    collectors: dict[str, JsonObject] = field(default_factory=dict)
    running: list[list[float]] = field(default_factory=list)
    frozen: JsonObject | None = None
    proving: JsonObject | None = None
    weighed: JsonObject | None = None
    outcome: JsonObject | None = None
    evidenced: int = 0
    given_up: list[int] = field(default_factory=list)
    lost: dict[str, int] = field(default_factory=dict)
    altered: int = 0
    taken: dict[str, int] = field(default_factory=lambda: {"corrected": 0, "withdrawn": 0, "erased": 0})
    pool: list[int] | None = None
    files: list[JsonObject] = field(default_factory=list)
    last_row: int = 0
    skipped: int = 0
    disagreements: dict[str, JsonObject] = field(default_factory=dict)
    lookalikes: bool = False
    keys: dict[str, tuple[str, int, int]] = field(default_factory=dict)

    @property
    def groups(self) -> list[str]:
        """The names of the groups."""
        found: list[str] = self.settings["groups"]
        return found

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
        return int(self.settings["budget"]) - self.labels_used - self.outstanding

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

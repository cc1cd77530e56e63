"""The kinds of events: what each says, as a typed record.

To add a kind: a record and its `Kind` here, and a method of `State` where it adds something to the state. Every key of a record is always there;
None says that there is nothing. Records are plain dictionaries, as the ledger keeps them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, Literal, NamedTuple, TypedDict, TypeVar, cast

from evenhand.ledger.base import Event, Writer
from evenhand.notation import JsonValue
from evenhand.strategies.decision import DecisionFacts

Roles = str
"""Roles of examples, a letter each: `t`rain, `v`alidate, `c`ertify, `x` for test; `-` for one that does not count."""
ColumnFacts = dict[str, JsonValue]
"""What rows look like: the schema of a table, or the type of an array."""


class NoFacts(TypedDict):
    """Of an event whose kind, request and actor say all."""


class LimitFacts(TypedDict):
    """What one person may hold."""

    labels: int
    lease: float | None
    streams: int


class RiskSettings(TypedDict):
    """What "worse off" means."""

    risk: str
    positive: str | int | bool | None


class LearnerSetting(TypedDict):
    """What is trained; None where somebody else trains."""

    learner: str | None


class StopSettings(TypedDict):
    """When the asking ends, and how many scores back that looks."""

    stop: str | None
    rounds_back: int


class Settings(RiskSettings, LearnerSetting, StopSettings):
    """What a campaign was created with, as changed since; the user's own objects stand as `own:Name`."""

    groups: list[str]
    strategy: str
    window: int
    budget: int
    batch: int
    warmup: int | None
    validation: float
    classes: list[str | int | bool] | None
    population: list[float] | None
    seed: str
    trial: int
    refit: str | int
    lease: float | None
    distinct: bool
    test_labels: int
    label: str
    group: str
    id: str
    features: dict[str, str] | list[str] | None
    limits: LimitFacts
    order: Literal["secret", "seed", "copy"]


class Changes(TypedDict, total=False):
    """Settings that can change while a campaign runs: those that do."""

    budget: int
    learner: str | None
    lease: float | None
    stop: str | None
    rounds_back: int
    refit: str | int
    limits: LimitFacts


class Changed(TypedDict):
    """Settings that are others from here on."""

    changes: Changes


class Retired(TypedDict):
    """All groups that have nothing left to give."""

    groups: list[str]


class Asked(TypedDict):
    """A request: the decision, its size, when its lease ends, and the scores it rests on."""

    decision: DecisionFacts
    size: int
    until: float | None
    rests_on: int
    scored_at: float | None
    behind: int


class Named(Asked):
    """A request that names examples of the pool, with their roles; `new` of them are handed out for the first time."""

    ids: list[str]
    roles: Roles
    new: int


class Extended(TypedDict):
    """When the lease of a request ends now."""

    until: float | None


class Answer(TypedDict):
    """What every answer to a request says: rows of a group, how many more than were asked for, and whether late."""

    group: str
    rows: int
    surplus: int
    late: bool


class Rows(TypedDict):
    """Labelled rows of a delivery: roles, ids and whether we made these, digests, and which rows were left out and why.

    `columns` and `label_kind` are there in the first delivery of all, which decides them.
    """

    roles: Roles
    ids: list[str]
    made: bool
    digests: list[str]
    given: int
    left_out: list[int]
    why: dict[str, int]
    columns: ColumnFacts | None
    label_kind: str | None


class Told(Answer, Rows):
    """Rows that answer a request."""


class Labelled(Answer):
    """Labels of pool examples by id: `from_pool` of them were not handed out, `dealt_before` had their roles drawn then."""

    roles: Roles
    ids: list[str]
    digests: list[str]
    why: dict[str, int]
    label_kind: str | None
    dealt_before: int
    from_pool: int


class RoleCounts(TypedDict):
    """How many rows have each role."""

    train: int
    validate: int
    certify: int
    test: int


class Counted(Answer, RoleCounts):
    """How many rows came, where somebody else keeps them; it closes its request."""


class Added(Rows):
    """Labelled rows that were there before: the group of each by its number, and how many are charged."""

    rows: int
    groups: list[int]
    charged: int


class Stamp(TypedDict):
    """What shows whether a file has changed."""

    size: int
    mtime: int


class FileFacts(Stamp):
    """A Parquet file or a folder of them."""

    path: str
    digest: str


class PoolFile(FileFacts):
    """A file that rows of the pool lie in: the number of its first row in the pool, and how many it has."""

    first: int
    rows: int
    columns: ColumnFacts


class Pooled(TypedDict):
    """Examples of a table, by the change of each group's number; `removed` were replaced since the last table."""

    groups: list[str]
    population: list[float] | None
    counts: list[int]
    removed: list[int]
    columns: ColumnFacts
    read: str
    files: list[PoolFile]
    id: str
    last_row: int
    lookalikes: bool


class Leaving(TypedDict):
    """What an example without a label leaves: its request, or the pool; `group` by its number."""

    group: int
    request: int | None
    in_pool: bool


class Skipped(Leaving):
    """An example that nobody can label."""

    id: str
    reason: str | None


class Altered(TypedDict):
    """Examples that were changed or taken back, the group of each by its number, and why."""

    ids: list[str]
    groups: list[int]
    reason: str | None


class Corrected(Altered):
    """Other labels, by their digests."""

    digests: list[str]


class Withdrawn(Altered):
    """Examples taken back, and how many labels go back to the budget."""

    roles: Roles
    refund: int


class Erased(Altered):
    """Examples deleted for good, and what those without a label leave."""

    roles: Roles
    unlabelled: dict[str, Leaving]


class Disagreed(TypedDict):
    """Examples whose answers in a labelling tool contradict each other: their number, and the first ids."""

    count: int
    ids: list[str]


class Score(TypedDict):
    """A group's validation examples, those that the risk is about, the sum of their losses, and the accuracy on all."""

    n: int
    relevant: int
    loss_sum: float
    accuracy: float


class Losses(TypedDict):
    """Losses that somebody reports who trains elsewhere."""

    groups: dict[str, Score]


class Scored(TypedDict):
    """Scores of a refit: the last event they rest on, and every group's, with what fitted and how much it trained on.

    `running`: validation examples and errors of the model before, on examples told after it was fitted.
    """

    rests_on: int
    examples: int
    fresh: list[str]
    trained: int
    running: dict[str, list[float]]
    risk: str
    learner: str
    groups: dict[str, Score]


class Failed(TypedDict):
    """A learner that failed: the kind of error, and the last event that had brought examples."""

    error: str
    rests_on: int


class Frozen(TypedDict):
    """A frozen model: its number, the labels there were, its bytes' digest and form, how sure, and what made it."""

    version: int
    labels: int
    digest: str
    format: str
    delta: float
    distinct: bool
    versions: dict[str, str]
    model: str


class Proving(TypedDict):
    """A certify phase that begins: its target, and the labels expected with the old model and with one frozen anew."""

    target: float
    delta: float
    most: int | None
    by_rule: bool
    expected_kept: int | None
    expected_anew: int | None


class Counts(TypedDict):
    """Evidence of every group in every stratum: examples, and the sum of their losses."""

    n: list[list[int]]
    total: list[list[float]]


class Weighed(TypedDict):
    """The evidence that a certify phase decides on: by first labels and by those now, and the bound on the worst group."""

    first: Counts
    now: Counts
    labels: list[int]
    doubtful: list[int]
    worst_at_most: float
    rests_on: int


class Concluded(TypedDict):
    """How a certify phase ended: a word, why, the group that refutes the target, and the labels it took."""

    outcome: str
    why: str
    group: str | None
    target: float
    delta: float
    worst_at_most: float
    labels: int


class Closed(TypedDict):
    """Why a campaign ended, and how the model to deploy was chosen."""

    reason: str
    choice: dict[str, JsonValue] | None


F = TypeVar("F", bound=Mapping[str, object])


class Draft(NamedTuple):
    """An event about to be appended; made by `Kind.draft`, which checks its facts."""

    kind: str
    facts: Mapping[str, object]

    def append(self, writer: Writer, *, request: int | None = None, actor: str | None = None) -> Event:
        """Append it."""
        return writer.append(self.kind, self.facts, request=request, actor=actor)


@dataclass(frozen=True)
class Kind(Generic[F]):
    """A kind of event and its record.

    Attributes:
        name: how the ledger calls it.
        evidence: whether it may change what is known of a frozen model: a certify phase then weighs its evidence again.
        folded: whether it adds something to the state; others are only kept.
    """

    name: str
    evidence: bool = True
    folded: bool = True

    def draft(self, facts: F) -> Draft:
        """An event of this kind, not appended yet."""
        return Draft(self.name, facts)

    def append(self, writer: Writer, facts: F, *, request: int | None = None, actor: str | None = None) -> Event:
        """Append an event of this kind."""
        return writer.append(self.name, facts, request=request, actor=actor)

    def facts(self, event: Event) -> F:
        """What an event of this kind says."""
        return cast(F, event.facts)


CREATED = Kind[Settings]("created")
POOLED = Kind[Pooled]("pooled")
ASKED = Kind[Asked]("asked", evidence=False)
NAMED = Kind[Named]("named", evidence=False)
TOLD = Kind[Told]("told")
LABELLED = Kind[Labelled]("labelled")
COUNTED = Kind[Counted]("counted")
ADDED = Kind[Added]("added")
SCORED = Kind[Scored]("scored", evidence=False)
LOSSES = Kind[Losses]("losses", evidence=False)
FAILED = Kind[Failed]("failed", evidence=False)
ABANDONED = Kind[NoFacts]("abandoned")
EXPIRED = Kind[NoFacts]("expired")
EXTENDED = Kind[Extended]("extended", evidence=False)
CORRECTED = Kind[Corrected]("corrected")
WITHDRAWN = Kind[Withdrawn]("withdrawn")
ERASED = Kind[Erased]("erased")
SKIPPED = Kind[Skipped]("skipped")
DISAGREED = Kind[Disagreed]("disagreed", evidence=False)
CHANGED = Kind[Changed]("changed")
RETIRED = Kind[Retired]("retired")
COPIED = Kind[NoFacts]("copied")
FROZEN = Kind[Frozen]("frozen")
PROVING = Kind[Proving]("proving", evidence=False)
WEIGHED = Kind[Weighed]("weighed", evidence=False)
CONCLUDED = Kind[Concluded]("concluded", evidence=False)
CLOSED = Kind[Closed]("closed")

KINDS = {kind.name: kind for kind in tuple(globals().values()) if isinstance(kind, Kind)}
"""All kinds by name, in the order of a campaign's life."""
REQUESTS = (ASKED.name, NAMED.name)
ANSWERS = (TOLD.name, LABELLED.name, COUNTED.name)
ROWS = (TOLD.name, LABELLED.name, ADDED.name)
"""Kinds that bring labelled rows."""

ONCE = "once"
"""The one key beside a record: the idempotency key of a step on its last event, what it was used for, its first event."""


def request_in(event: Event) -> Asked:
    """What an event of `REQUESTS` asks for."""
    return cast(Asked, event.facts)


def ids_in(event: Event) -> list[str]:
    """The examples that an event names; none where its kind names none, or only counts."""
    return cast("list[str]", event.facts.get("ids", []))


def answer_in(event: Event) -> Answer:
    """What an event of `ANSWERS` brought."""
    return cast(Answer, event.facts)


def rows_in(event: Event) -> Rows | Labelled:
    """What an event of `ROWS` says of its rows."""
    return cast(Rows, event.facts)


def reason_in(event: Event) -> str | None:
    """Why somebody did what an event says, where its kind has a reason and one was given."""
    return cast("str | None", event.facts.get("reason"))

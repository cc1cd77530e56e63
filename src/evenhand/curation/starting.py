"""Begins a labelling, or resumes it from the ledger file beside the output."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand.campaign import Campaign
from evenhand.campaign.pool import digest_of_files, stamp
from evenhand.curation.checkpoint import checkpoint_path
from evenhand.curation.files import check_output, write_text
from evenhand.curation.labelling import Labelling, todo_path
from evenhand.curation.unlabelled import Labels, Unlabelled
from evenhand.errors import InputError
from evenhand.learners import Logistic, as_learner
from evenhand.learners.parsing import describe_learner
from evenhand.learners.table import TableLearner
from evenhand.ledger.memory import MemoryLedger
from evenhand.notation import JsonMapping, JsonObject, lasting_text
from evenhand.progress import say
from evenhand.sources.table.overlap import fingerprint

__all__ = ["Plan", "ledger_path", "start"]

NAME = "curate"
_SCHEMA = 1
_CSV = ("separator", "decimal", "encoding")
_TABLE = (
    "features", "ignore", "exclude", "merge_below", "use_group_as_feature", "scale", "numbers", "text", "image", "vector",
    "missing", "spellings", "max_categories", *_CSV,
)  # fmt: skip


def ledger_path(out: Path) -> Path:
    """The ledger beside the output.

    >>> ledger_path(Path("train.parquet")).name
    'train.db'
    """
    return out.with_suffix(".db")


@dataclass(frozen=True)
class Plan:
    """What a labelling is about.

    Attributes:
        data: the table or its path.
        label: the column to fill.
        groups: the columns that tell the group.
        budget: labels to make, including those for testing.
        test_labels: how many of them are for testing only.
        campaign: further settings of the campaign, by name.
        table: settings of the table, by name.
        final: the model to deploy, chosen or plain.
    """

    data: Any
    label: str
    groups: Sequence[str]
    budget: int
    test_labels: int
    campaign: JsonMapping
    table: JsonMapping
    final: str = "chosen"

    def plain(self) -> JsonObject:
        """The plan as plain values, by which a resumed one is recognised."""
        # objects have no equality that survives a process: they are compared by a text that lasts
        own = {key: value for key, value in self.campaign.items() if key not in ("strategy", "learner", "risk")}
        texts = {key: lasting_text(self.campaign[key]) for key in ("strategy", "learner", "risk")}
        source = str(Path(self.data)) if isinstance(self.data, str | Path) else "a table"
        found = {
            "pool": Path(source).name, "label": self.label, "groups": list(self.groups), "budget": self.budget,
            "test_labels": self.test_labels, "final": self.final, **own, **texts, **self.table,
        }  # fmt: skip
        return json.loads(json.dumps(found, default=str))  # type: ignore[no-any-return]


def start(
    plan: Plan,
    out: Path | None,
    about: Unlabelled,
    *,
    per_round: int | None,
    min_test: int,
    positive: object,
    show: Sequence[str] | None = None,
    progress: bool = False,
) -> Labelling:
    """Begin the labelling of a table, or resume it if its ledger lies beside `out`."""
    inputs = (Path(plan.data),) if isinstance(plan.data, str | Path) else ()
    if out is not None:
        check_output(out, inputs)
    strange = [key for key in plan.table if key not in (*_TABLE, "id")]
    if strange:
        raise InputError(f"{strange[0]} has no effect while labels are made: it is for tables that have them.")
    going = out is not None and ledger_path(out).exists()
    settings, notes = plan.plain(), tuple[str, ...]()
    if out is not None and going:
        campaign, notes = _resumed(plan, out, settings), tuple(_kept(out)["notes"])
    else:
        found = about.labels
        if progress:
            say([about.was_read])
        if plan.budget > found.missing:
            raise InputError(
                f"a budget of {plan.budget:,} labels is more than the {found.missing:,} rows that have no {plan.label!r}: "
                + (
                    f"to choose among the {found.there:,} rows that have one, remove these first"
                    if found.there
                    else "there is nothing to choose; label them all, or lower the budget"
                )
            )
        notes = (about.was_read, *_notes(found, plan))
        campaign = _begun(plan, out, settings, notes)
    labelling = Labelling(
        campaign,
        {**settings, "id_column": campaign.settings["id"]},
        per_round or max(plan.budget // 10, 2 * plan.campaign["batch"]),
        min_test,
        positive,
        inputs,
        notes,
        None if out is None else todo_path(out).name,
        (campaign.settings["id"], plan.label),
        None if show is None else tuple(show),
    )
    try:
        labelling.ask()
        labelling.check_shown()
    except BaseException:
        if not going:
            _discard(campaign, out)
        raise
    return labelling


def _notes(found: Labels, plan: Plan) -> tuple[str, ...]:
    notes = [f"{found.missing:,} of {found.rows:,} rows had no label when this began: they are the pool"]
    if found.there:
        notes.append(f"{found.there:,} rows had one: they train and validate, and cost nothing")
    if not plan.test_labels:
        notes.append("no label is set aside for testing (test_labels=0): nobody will know how good the model is")
    return tuple(notes)


def _begun(plan: Plan, out: Path | None, settings: JsonObject, notes: Sequence[str]) -> Campaign:
    given = dict(plan.campaign)
    learner = given.pop("learner")
    asked = {"budget": plan.budget, "test_labels": plan.test_labels, **given}
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
    where = MemoryLedger() if out is None else f"sqlite:///{ledger_path(out)}"
    # no lease: one person fills in a file at their own pace, and nobody else waits for the rows
    campaign = Campaign.create(where, NAME, None, learner=as_raw(learner), lease=None, label=plan.label, **asked)
    try:
        table = {key: value for key, value in plan.table.items() if key != "id"}
        campaign.pool(plan.data, id=plan.table.get("id"), group=list(plan.groups), **table)
    except BaseException:
        _discard(campaign, out)
        raise
    if out is not None:
        # written last: without it the ledger is not taken for a labelling that was begun
        kept = {
            "schema": _SCHEMA,
            "labelling": True,
            "settings": settings,
            "pool": _pool_facts(plan.data),
            "notes": list(notes),
        }
        write_text(checkpoint_path(out), json.dumps(kept))
    return campaign


def _discard(campaign: Campaign, out: Path | None) -> None:
    """Remove the files of a labelling that could not begin, so that the next try starts afresh."""
    if out is not None:
        campaign.release()
        for path in (ledger_path(out), checkpoint_path(out)):
            path.unlink(missing_ok=True)


def as_raw(learner: object) -> Any:
    """The learner for rows as they are: `Logistic` with text encoded, any other as given."""
    if learner is None:
        return TableLearner()
    return TableLearner(C=learner.C) if isinstance(learner, Logistic) else learner


def _kept(out: Path) -> JsonObject:
    path = checkpoint_path(out)
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if found["schema"] != _SCHEMA or not found["labelling"]:
            raise InputError(f"{path.name} was written by another version of Evenhand.")
    except FileNotFoundError:
        raise InputError(
            f"{ledger_path(out).name} is there, but {path.name} is not: put it back, or move both away."
        ) from None
    except (json.JSONDecodeError, KeyError, TypeError, UnicodeDecodeError):
        raise InputError(
            f"{path.name} does not go with {ledger_path(out).name}: put it back, or move both away."
        ) from None
    return dict(found)


def _resumed(plan: Plan, out: Path, settings: JsonObject) -> Campaign:
    """Open the campaign, after checking that plan and table are the same; only the budget may grow."""
    kept = _kept(out)
    was = kept["settings"]
    differ = [key for key in settings.keys() | was.keys() if settings.get(key) != was.get(key) and key != "budget"]
    differ += ["budget"] if settings["budget"] < was["budget"] else []
    if differ:
        said = ", ".join(f"{key} was {was.get(key)!r}, is {settings.get(key)!r}" for key in sorted(differ))
        raise InputError(f"cannot go on, the settings differ: {said}. Only the budget may change, and only grow.")
    _check_pool(plan.data, kept["pool"])
    own = plan.campaign["learner"]
    # an object that no text describes has to be given again
    given = {} if own is None or describe_learner(as_learner(as_raw(own))) else {"learner": as_raw(own)}
    campaign = Campaign.open(f"sqlite:///{ledger_path(out)}", NAME, **given)
    if settings["budget"] > was["budget"]:
        campaign.change(budget=settings["budget"])
        write_text(checkpoint_path(out), json.dumps({**kept, "settings": settings}))
    return campaign


def _pool_facts(data: object) -> JsonObject:
    """What shows whether the table is still the same; for a file also its size and time, which are quick to compare."""
    if isinstance(data, str | Path):
        return {**stamp(Path(data)), "digest": digest_of_files(Path(data))}
    return {"digest": fingerprint(data)}


def _check_pool(data: object, was: JsonMapping) -> None:
    if isinstance(data, str | Path):
        if not Path(data).exists():
            raise InputError(f"there is no file {str(data)!r}.")
        now = stamp(Path(data))
        # the digest reads the whole file, which takes minutes for a large one
        if (now["size"], now["mtime"]) == (was.get("size"), was.get("mtime")):
            return
    if _pool_facts(data)["digest"] != was["digest"]:
        raise InputError(
            "the table is not the one this labelling began with: its rows are known by what they were then. "
            "Give the same table, or begin anew under another name."
        )

"""Keeps a campaign and a labelling tool in step, whatever the tool is.

Every pass compares what the tool says with what the ledger says and takes the steps that are missing. Nothing is
remembered between passes but a cursor that saves reading, so a sync that was killed goes on, and two at once do no harm.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from evenhand.campaign import Campaign
from evenhand.campaign.labels import label_text
from evenhand.campaign.store import Once
from evenhand.connectors.agreeing import Outcome, agreed, check_rule
from evenhand.connectors.base import OURS, Shown, Task, Tool
from evenhand.errors import Conflict, InputError, NothingToAsk
from evenhand.ledger import Example

__all__ = ["Report", "Sync"]

_LISTED = 100
_WHOLE_EVERY = 20
"""Every so many passes all tasks are looked at: a task that was deleted does not say so."""


@dataclass
class Report:
    """What one pass did, or with `dry_run` would do.

    Attributes:
        tasks: tasks that became examples of the pool.
        told, corrected, withdrawn, skipped: labels that came, changed and went, and examples nobody can label.
        asked: requests that were made.
        shown: tasks that people see next.
        unasked: tasks that were answered although nobody asked for them; they count once it is their turn.
        disagreements: tasks whose answers contradict each other.
        problems: what is wrong with tasks, by their id.
        nothing_to_ask: why no request was made; None if one could be.
    """

    tasks: int = 0
    told: int = 0
    corrected: int = 0
    withdrawn: int = 0
    skipped: int = 0
    asked: int = 0
    shown: int = 0
    unasked: int = 0
    disagreements: list[str] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)
    nothing_to_ask: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The report as plain values; long lists are cut."""
        found = asdict(self)
        found["disagreements"] = self.disagreements[:_LISTED]
        found["problems"] = dict(list(self.problems.items())[:_LISTED])
        return found

    def __str__(self) -> str:
        names = ("tasks", "told", "corrected", "withdrawn", "skipped", "asked", "unasked")
        done = [f"{getattr(self, name)} {name}" for name in names if getattr(self, name)]
        done += [f"{len(self.disagreements)} in disagreement"] if self.disagreements else []
        done += [f"{len(self.problems)} with problems"] if self.problems else []
        done += [f"{self.shown} to label"] if self.shown else []
        done += [f"nothing to ask: {self.nothing_to_ask}"] if self.nothing_to_ask else []
        return ", ".join(done) or "nothing new"


class Sync:
    """A campaign with a pool, and the tool whose tasks the pool is.

    Args:
        campaign: the campaign.
        tool: the labelling tool.
        group: the fields of a task's data that tell the group; a number may have bins, like `age:30,60`.
        id: the field that is an example's id; None takes the tool's own.
        features: the fields to learn from; all others by default.
        rule: which label counts where several people answered: `first`, `last`, `majority` or `agree`.
        ahead: requests that are open at once, so that people never wait.
        extra: take answers too that nobody asked for.
    """

    def __init__(
        self,
        campaign: Campaign,
        tool: Tool,
        *,
        group: str | Sequence[str] = "group",
        id: str | None = None,
        features: Sequence[str] | None = None,
        rule: str = "last",
        ahead: int = 2,
        extra: bool = False,
    ) -> None:
        if ahead < 1:
            raise InputError(f"ahead must be 1 or more, not {ahead}")
        self.campaign, self.tool = campaign, tool
        self.group = [group] if isinstance(group, str) else list(group)
        self.id, self.features, self.rule = id, features, check_rule(rule)
        self.ahead, self.extra = ahead, extra
        self._cursor: str | None = None
        self._passes = 0
        self._names: dict[str, str] = {}  # examples' ids by tasks' ids
        self._pooled: set[str] = set()  # tasks that are in the pool
        self._waiting: dict[str, Outcome] = {}  # answers that nobody has asked for yet
        self._shown: list[Shown] | None = None

    def once(self, *, dry_run: bool = False) -> Report:
        """One pass: new tasks into the pool, answers into the ledger, requests in front of people."""
        report = Report()
        whole = self._passes % _WHOLE_EVERY == 0
        tasks, cursor = self.tool.tasks(None if whole else self._cursor)
        self._take_tasks(tasks, report, dry_run)
        outcomes = {self._names[task.id]: self._agreed(task, report) for task in tasks if task.id in self._names}
        if whole:
            outcomes |= self._gone({task.id for task in tasks})
        self._take_answers({**self._waiting, **outcomes}, report, dry_run)
        if not dry_run:
            self._ask(report)
            # an example just asked for may have been answered long ago
            self._take_answers(dict(self._waiting), report, dry_run)
            self._show(report)
            # only now: a pass that failed in the middle is made again from where it began
            self._cursor, self._passes = cursor, self._passes + 1
        return report

    # ---------------------------------------------------------------- tasks

    def _take_tasks(self, tasks: Sequence[Task], report: Report, dry_run: bool) -> None:
        """Register tasks that are not in the pool yet."""
        fresh: list[tuple[str, Task]] = []
        for task in tasks:
            if task.id in self._pooled:
                continue
            name, problem = self._name(task)
            if problem is not None:
                report.problems[task.id] = problem
                continue
            self._names[task.id] = name
            fresh.append((name, task))
        known = self._examples([name for name, _ in fresh])
        fresh = [(name, task) for name, task in fresh if name not in known]
        report.tasks = len(fresh)
        if dry_run:
            return
        if fresh:
            self._register(fresh)
        self._pooled |= {task.id for task in tasks if task.id in self._names}

    def _register(self, fresh: Sequence[tuple[str, Task]]) -> None:
        column = self._free_name([task for _, task in fresh])
        rows = [
            {column: name, **{k: v for k, v in task.data.items() if not k.startswith(OURS)}} for name, task in fresh
        ]
        self.campaign.pool(_table(rows), id=column, group=self.group, features=self.features, by=self.tool.name)

    def _name(self, task: Task) -> tuple[str, str | None]:
        """The id of a task's example, or why it cannot be one."""
        missing = [f for f in (part.partition(":")[0] for part in self.group) if task.data.get(f) in (None, "")]
        if missing:
            return "", f"it has no group: {missing[0]!r} is empty"
        if self.id is None:
            return task.id, None
        name = task.data.get(self.id)
        return ("", f"it has no id: {self.id!r} is empty") if name in (None, "") else (str(name), None)

    def _free_name(self, tasks: Sequence[Task]) -> str:
        """The column of the ids: the field where there is one, else a name that no field has."""
        if self.id is not None:
            return self.id
        known = self.campaign.settings["id"] if self.campaign.store.state.pool is not None else "task"
        name = str(known)
        while any(name in task.data for task in tasks):
            name = f"{name}_"
        return name

    # ---------------------------------------------------------------- answers

    def _agreed(self, task: Task, report: Report) -> Outcome:
        outcome = agreed(task.answers, self.rule)
        if outcome.disagree:
            report.disagreements.append(self._names[task.id])
        if outcome.problem is not None:
            report.problems[task.id] = outcome.problem
        return outcome

    def _gone(self, there: set[str]) -> dict[str, Outcome]:
        """Examples that were handed out and whose tasks are there no more: nobody can answer them any more."""
        names = {name for task, name in self._names.items() if task in there}
        store = self.campaign.store
        with store.moment() as (reader, state):
            waiting = [name for request in state.open.values() for name in request.get("left", ())]
            labelled = [row.id for row in reader.changed() if row.counts and row.place is not None]
        return dict.fromkeys({*waiting, *labelled} - names, Outcome(skipped=True))

    def _take_answers(self, outcomes: Mapping[str, Outcome], report: Report, dry_run: bool) -> None:
        """Bring the ledger's labels to what the tool says of these examples."""
        examples = self._examples(list(outcomes))
        tell: dict[str | None, dict[str, Any]] = {}
        correct: dict[str | None, dict[str, Any]] = {}
        for name, outcome in outcomes.items():
            self._waiting.pop(name, None)
            example = examples.get(name)
            if example is None or example.fate is not None or outcome.problem is not None:
                continue
            if example.label is not None:
                if outcome.label is None and not outcome.disagree:
                    report.withdrawn += 1
                    if not dry_run:
                        self.campaign.withdraw(name, reason=f"taken back in {self.tool.name}", by=self.tool.name)
                elif outcome.label is not None:
                    correct.setdefault(outcome.by, {})[name] = outcome.label
            elif outcome.label is not None:
                if example.role is None and not self.extra:
                    report.unasked += 1
                    self._waiting[name] = outcome
                else:
                    tell.setdefault(outcome.by, {})[name] = outcome.label
            elif outcome.skipped:
                report.skipped += 1
                if not dry_run:
                    self.campaign.skip(name, reason=f"skipped in {self.tool.name}", by=self.tool.name)
        for by, labels in tell.items():
            self._tell(by, labels, report, dry_run)
        for by, labels in correct.items():
            self._correct(by, labels, report, dry_run)

    def _tell(self, by: str | None, labels: dict[str, Any], report: Report, dry_run: bool) -> None:
        receipt = self.campaign.tell_labels(labels, by, partial=True, extra=self.extra, dry_run=dry_run, written=True)
        report.told += receipt.rows
        report.problems |= {str(row.id): row.reason for row in receipt.refused}

    def _correct(self, by: str | None, labels: dict[str, Any], report: Report, dry_run: bool) -> None:
        """Correct labels that differ; those that are the same change nothing."""
        examples = self._examples(list(labels))
        changed = {name: label for name, label in labels.items() if label_text(label) != examples[name].label}
        for name, label in changed.items():
            if dry_run:
                report.corrected += 1
                continue
            try:
                report.corrected += self.campaign.correct_written(
                    name, str(label), reason=f"changed in {self.tool.name}", by=by
                )
            except InputError as error:
                report.problems[name] = str(error)

    # ---------------------------------------------------------------- requests

    def _ask(self, report: Report) -> None:
        """Keep so many requests open."""
        while True:
            with self.campaign.store.moment() as (_, state):
                ours = sum(request["by"] == self.tool.name for request in state.open.values())
                made = state.asked
            if ours >= self.ahead:
                return
            # two that ask at the same moment ask with the same key, and get the same request
            key = hashlib.blake2b(f"{self.tool.name} {made}".encode(), digest_size=12).hexdigest()
            try:
                self.campaign.ask_many(1, self.tool.name, once=Once(key, "sync"))
            except NothingToAsk as nothing:
                report.nothing_to_ask = nothing.reason
                return
            except Conflict:
                return
            report.asked += 1

    def _show(self, report: Report) -> None:
        """Put the examples of open requests in front of people, oldest request first."""
        tasks = {name: task for task, name in self._names.items()}
        shown = [
            Shown(tasks[name], request.id, request.group, str(self.campaign.explain(request.id)["words"]))
            for request in self.campaign.open_requests
            for name in request.examples
            if name in tasks
        ]
        report.shown = len(shown)
        if shown != self._shown:
            self.tool.show(shown)
            self._shown = shown

    def _examples(self, names: Sequence[str]) -> dict[str, Example]:
        store = self.campaign.store
        with store.ledger.reading(store.number) as reader:
            return reader.find(names)


def _table(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Tasks' data as a table; values that are no plain values are left out."""
    import pyarrow as pa

    names = list(dict.fromkeys(name for row in rows for name in row))
    plain = [n for n in names if all(isinstance(row.get(n), str | int | float | bool | None) for row in rows)]
    columns: dict[str, Any] = {}
    for name in plain:
        values = [row.get(name) for row in rows]
        kinds = {type(value) for value in values if value is not None}
        mixed = len(kinds) > 1 and not kinds <= {int, float}
        columns[name] = pa.array([None if v is None else str(v) for v in values] if mixed else values)
    return pa.table(columns)

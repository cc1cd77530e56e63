"""Keeps a campaign and a labelling tool in step, whatever the tool is.

Every pass compares what the tool says with what the ledger says and takes the steps that are missing. Between
passes it remembers only what saves reading, so a sync that was killed can be restarted, and two at once do no harm.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from evenhand.campaign import Campaign
from evenhand.campaign.log import Once
from evenhand.connectors.agreeing import GONE, Outcome, agreed, check_rule
from evenhand.connectors.answers import Answers
from evenhand.connectors.base import Shown, Task, Tool
from evenhand.connectors.examples import PoolOfTasks
from evenhand.connectors.report import Report
from evenhand.errors import Conflict, InputError, NothingToAsk, ToolError
from evenhand.notation import JsonObject

_WHOLE_EVERY = 20
"""After this many passes all tasks are read again, because nothing else shows that a task was deleted."""


class Sync:
    """A campaign with a pool, and the tool whose tasks the pool is.

    Args:
        campaign: the campaign; its pool is made of the tool's tasks.
        tool: the labelling tool.
        group: the field or fields of a task's data that tell the group; a number may have bins, like `age:30,60`.
        id: the field that is an example's id; None takes the tool's own.
        features: the fields to learn from; by default all but group and id.
        rule: which label counts where several people answered: `first`, `last` (the one changed last), `majority` or
            `agree`; the last two wait until as many people have answered as the tool wants.
        ahead: requests that are open at once, so that people never wait.
        extra: take answers that nobody asked for, too.
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
        self.rule, self.ahead = check_rule(rule), ahead
        self._settings: JsonObject = {
            "group": group, "id": id, "features": features, "rule": rule, "ahead": ahead, "extra": extra
        }  # fmt: skip
        fields = [group] if isinstance(group, str) else list(group)
        self._pool = PoolOfTasks(campaign, group=fields, id=id, features=features)
        self._answers = Answers(campaign, self._pool, tool.name, extra=extra)
        self._cursor: str | None = None
        self._passes = 0
        self._problems: dict[str, str] = {}  # answers that cannot be used
        self._answered: set[str] = set()  # tasks that as many people as wanted have answered
        self._disagreements: dict[str, dict[str, str]] = {}
        self._why: dict[int, str] = {}

    def once(self, *, dry_run: bool = False) -> Report:
        """One pass: new tasks into the pool, answers into the ledger, requests in front of people."""
        if dry_run:
            # the same pass over a copy of the campaign: it says all that would be done, and changes nothing
            rehearsal = Sync(self.campaign.copy(), _Unseen(self.tool), **self._settings)
            return replace(rehearsal.once(), dry_run=True)
        report = Report()
        whole = self._passes % _WHOLE_EVERY == 0 or self._cursor is None
        before = self.campaign.state
        read_at, closed = before.seq, before.closed is not None
        tasks, cursor = self.tool.tasks(None if whole else self._cursor)
        origin = self._check_origin()
        if whole:
            self._forget()
        self._answers.postponed = False
        try:
            report.tasks = self._pool.take(tasks, origin, read_at=read_at, closed=closed, ours=self._sole)
            outcomes = {self._pool.names[task.id]: self._agreed(task) for task in tasks if task.id in self._pool.names}
            gone = self._gone({task.id for task in tasks}) if whole else {}
            outcomes = {**self._answers.waiting, **outcomes, **gone}
            self._answers.take(outcomes, report, read_at=read_at, closed=closed)
            self._ask(report)
            # an example just asked for may have been answered long ago
            self._answers.take(dict(self._answers.waiting), report, read_at=read_at, closed=closed)
        except Conflict:
            # closed meanwhile: nothing is taken any more, but people have to stop
            if self.campaign.state.closed is None:
                raise
            report.nothing_to_ask = "closed"
        report.unasked = len(self._answers.waiting)
        report.disagreements = dict(self._disagreements)
        report.problems = {**self._problems, **self._pool.problems, **self._answers.problems}
        self._show(report)
        disputed = [self._pool.names[task] for task in self._disagreements if task in self._pool.names]
        self.campaign.note_disagreements(disputed, self.tool.name)
        # only now: a pass that failed in the middle is made again from where it began
        self._passes += 1
        if not self._answers.postponed:
            self._cursor = cursor
        return report

    def _forget(self) -> None:
        self._pool.forget()
        self._answers.forget()
        self._problems, self._disagreements, self._answered = {}, {}, set()

    def _check_origin(self) -> str:
        """Which project the tasks belong to; refuses a project that the pool does not come from."""
        origin = str(getattr(self.tool, "origin", self.tool.name))
        kind = self.tool.name.partition(":")[0]
        with self.campaign.moment() as (reader, _):
            by = {str(event.actor) for event in reader.events(kinds=("pooled",))}
        self._sole = by <= {origin}
        if others := {name for name in by - {origin} if name.partition(":")[0] == kind and ":" in name}:
            raise InputError(
                f"the campaign's pool is that of {min(others)}, not of {origin}: is it the right server and the right "
                "project? Make a campaign for each"
            )
        return origin

    # ---------------------------------------------------------------- answers

    def _agreed(self, task: Task) -> Outcome:
        outcome = agreed(task.answers, self.rule, task.wanted)
        self._disagreements.pop(task.id, None)
        self._problems.pop(task.id, None)
        self._answered.discard(task.id)
        if len({answer.by for answer in task.answers}) >= task.wanted:
            self._answered.add(task.id)
        if task.id in self._pool.strange and not outcome.gone:
            return Outcome(problem=self._pool.problems[task.id])
        if outcome.disagree:
            self._disagreements[task.id] = {a.by: str(a.label) for a in task.answers if a.label is not None}
        if outcome.problem is not None:
            self._problems[task.id] = outcome.problem
        return outcome

    def _gone(self, there: set[str]) -> dict[str, Outcome]:
        """Examples that were handed out and whose tasks were deleted since: nobody can answer them any more."""
        if not self._sole:  # the pool came from a file: what the tool lacks, it may never have had
            return {}
        names = {name for task, name in self._pool.names.items() if task in there}
        with self.campaign.moment() as (reader, state):
            waiting = [name for request in state.open.values() for name in request["left"] or ()]
            labelled = [row.id for row in reader.changed() if row.counts and row.place is not None]
        found = {*waiting, *labelled} - names
        if found and not there:
            raise ToolError(
                f"{self.tool.name} has no tasks any more, and the campaign has {len(found)} that were handed out; nothing was "
                "taken back. Is it the right project? If it is, close the campaign"
            )
        return dict.fromkeys(found, GONE)

    # ---------------------------------------------------------------- requests

    def _ask(self, report: Report) -> None:
        """Keep as many requests open as wanted that somebody can still answer."""
        while True:
            with self.campaign.moment() as (_, state):
                made, mine = state.asked, [r for r in state.open.values() if r["by"] == self.tool.name]
            if state.pool is None:  # groups may be known before there are tasks
                report.nothing_to_ask = "no pool yet"
                return
            if sum(not all(map(self._is_stuck, request["left"] or ())) for request in mine) >= self.ahead:
                return
            # two that ask at the same moment ask with the same key, and get the same request
            key = hashlib.blake2b(f"{self.tool.name} {made}".encode(), digest_size=12).hexdigest()
            try:
                self.campaign.ask_many(1, self.tool.name, once=Once(key, "sync"))
            except NothingToAsk as nothing:
                report.nothing_to_ask = nothing.reason
                return
            report.asked += 1

    def _is_stuck(self, name: str) -> bool:
        """Whether an example will get no label any more: people disagree, or the answers to it cannot be used."""
        task = self._pool.tasks.get(name)
        return task in self._pool.strange or (task in self._answered and name not in self._answers.waiting)

    def _show(self, report: Report) -> None:
        """Put the examples of open requests in front of people, oldest request first."""
        shown: list[Shown] = []
        for request in sorted(self.campaign.open_requests, key=lambda request: request.id):
            if request.id not in self._why:
                self._why[request.id] = str(self.campaign.explain(request.id)["words"])
            names = [name for name in request.examples if name in self._pool.tasks and not self._is_stuck(name)]
            shown += [Shown(self._pool.tasks[n], request.id, request.group, self._why[request.id]) for n in names]
        report.shown = len(shown)
        self.tool.show(shown)


class _Unseen:
    """A tool that is read and not written to."""

    def __init__(self, tool: Tool) -> None:
        self.name, self._tool = tool.name, tool

    @property
    def origin(self) -> str:
        """The tool's origin."""
        return str(getattr(self._tool, "origin", self.name))

    def tasks(self, after: str | None) -> tuple[list[Task], str | None]:
        """The tool's tasks."""
        return self._tool.tasks(after)

    def show(self, tasks: Sequence[Shown]) -> None:
        """Show nothing: a dry run does not change what people see."""

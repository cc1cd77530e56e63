"""Brings a tool's answers into a campaign's ledger: tells, corrects, withdraws and skips examples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from evenhand.campaign import Campaign
from evenhand.campaign.events import REQUESTS
from evenhand.campaign.labels import label_text
from evenhand.connectors.agreeing import GONE, Outcome
from evenhand.connectors.examples import PoolOfTasks
from evenhand.connectors.report import Report
from evenhand.errors import Conflict, InputError
from evenhand.ledger import Example
from evenhand.notation import JsonObject

Labels = dict[str | None, JsonObject]


@dataclass
class _Missing:
    """The steps needed to make the ledger agree with the tool; labels are grouped by who gave them."""

    tell: Labels = field(default_factory=dict)
    correct: Labels = field(default_factory=dict)
    withdraw: list[str] = field(default_factory=list)
    skip: list[str] = field(default_factory=list)


class Answers:
    """Makes the ledger's labels agree with the tool's.

    Attributes:
        waiting: answers that nobody has asked for yet, by the example's id.
        problems: answers that the campaign did not take, by the task's id.
        postponed: whether the last reading was older than the ledger somewhere, so that it has to be read again.
    """

    def __init__(self, campaign: Campaign, pool: PoolOfTasks, by: str, *, extra: bool) -> None:
        self._campaign, self._pool, self._by, self._extra = campaign, pool, by, extra
        self.forget()

    def forget(self) -> None:
        """Start afresh: all answers will come again."""
        self.waiting: dict[str, Outcome] = {}
        self.problems: dict[str, str] = {}
        self.postponed = False

    def take(self, outcomes: Mapping[str, Outcome], report: Report, *, read_at: int, closed: bool) -> None:
        """Take the steps that are missing; the outcomes were read when `read_at` was the ledger's newest event."""
        missing = self._missing(outcomes, read_at)
        # what a closed campaign still accepts comes first
        if missing.withdraw:
            reason = f"taken back in {self._by}"
            report.withdrawn += self._campaign.withdraw(missing.withdraw, reason=reason, by=self._by)
        for who, labels in missing.correct.items():
            self._correct(who, labels, report)
        if closed:
            return
        for who, labels in missing.tell.items():
            self._tell(who, labels, report)
        for name in missing.skip:
            self._skip(name, report)

    def _missing(self, outcomes: Mapping[str, Outcome], read_at: int) -> _Missing:
        found, missing = self._pool.find(list(outcomes)), _Missing()
        for name, outcome in outcomes.items():
            self.waiting.pop(name, None)
            self.problems.pop(self._pool.tasks.get(name, name), None)
            example = found.get(name)
            if example is None or outcome.problem is not None:
                continue
            # two syncs at once: what another one wrote since may rest on a newer reading
            if example.changed > read_at and (example.label is not None or outcome is GONE):
                self.postponed = True
            elif example.fate is not None:
                if outcome.label is not None and example.fate != "erased":
                    self._refused(name, f"it was {example.fate}, which is for good: this answer does not count")
            elif example.label is not None:
                if outcome.gone and self._is_ours(example):
                    missing.withdraw.append(name)
                elif outcome.label is not None and label_text(outcome.label) != example.label:
                    missing.correct.setdefault(outcome.by, {})[name] = outcome.label
            elif outcome.label is not None:
                if example.role is None and not self._extra:
                    self.waiting[name] = outcome
                else:
                    missing.tell.setdefault(outcome.by, {})[name] = outcome.label
            elif outcome.skipped:
                missing.skip.append(name)
        return missing

    def _is_ours(self, example: Example) -> bool:
        """Whether the label was asked for in this tool: what came another way is not this tool's to take back."""
        if example.request is None:
            return example.origin == "extra" and self._extra
        with self._campaign.reading() as reader:
            return any(event.actor == self._by for event in reader.events(kinds=REQUESTS, request=example.request))

    def _tell(self, who: str | None, labels: dict[str, object], report: Report) -> None:
        receipt = self._campaign.tell_labels(labels, who, partial=True, extra=self._extra, written=True)
        report.told += receipt.rows
        for row in receipt.refused:
            if row.conflict:  # another sync has told a different label since
                self.postponed = True
            else:
                self._refused(str(row.id), row.reason)

    def _correct(self, who: str | None, labels: dict[str, object], report: Report) -> None:
        for name, label in labels.items():
            try:
                report.corrected += self._campaign.correct_written(
                    name, str(label), reason=f"changed in {self._by}", by=who
                )
            except InputError as error:
                self._refused(name, str(error))

    def _skip(self, name: str, report: Report) -> None:
        try:
            self._campaign.skip(name, reason=f"skipped in {self._by}", by=self._by)
        except Conflict:
            if self._campaign.state.closed is not None:
                raise
            self.postponed = True  # another sync has told a label since
        else:
            report.skipped += 1

    def _refused(self, name: str, problem: str) -> None:
        self.problems[self._pool.tasks.get(name, name)] = problem

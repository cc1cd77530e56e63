"""Answers of a tool into a campaign's ledger: told, corrected, withdrawn, skipped."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from evenhand.campaign import Campaign
from evenhand.campaign.labels import label_text
from evenhand.connectors.agreeing import GONE, Outcome
from evenhand.connectors.examples import PoolOfTasks
from evenhand.connectors.report import Report
from evenhand.errors import Conflict, InputError
from evenhand.ledger import Example

__all__ = ["Answers"]

Labels = dict[str | None, dict[str, Any]]


class Answers:
    """Brings the ledger's labels to what the tool says.

    Attributes:
        waiting: answers that nobody has asked for yet, by the example's id.
        problems: answers that the campaign did not take, by the task's id.
    """

    def __init__(self, campaign: Campaign, pool: PoolOfTasks, by: str, *, extra: bool) -> None:
        self._campaign, self._pool, self._by, self._extra = campaign, pool, by, extra
        self.forget()

    def forget(self) -> None:
        """Begin anew: all answers come again."""
        self.waiting: dict[str, Outcome] = {}
        self.problems: dict[str, str] = {}

    def take(self, outcomes: Mapping[str, Outcome], report: Report, *, read_at: int, write: bool) -> None:
        """Take the steps that are missing between the ledger and what was read at one of its events."""
        found = self._pool.find(list(outcomes))
        tell: Labels = {}
        correct: Labels = {}
        for name, outcome in outcomes.items():
            self.waiting.pop(name, None)
            self.problems.pop(self._pool.tasks.get(name, name), None)
            example = found.get(name)
            if example is None or outcome.problem is not None:
                continue
            # two syncs at once: what another one wrote since may rest on a newer reading; the next pass sees it
            if example.changed > read_at and (example.label is not None or outcome is GONE):
                continue
            if example.fate is not None:
                if outcome.label is not None and example.fate != "erased":
                    self._refused(name, f"it was {example.fate}, which is for good: this answer does not count")
            elif example.label is not None:
                if outcome.gone and self._is_ours(example):
                    report.withdrawn += 1
                    if write:
                        self._campaign.withdraw(name, reason=f"taken back in {self._by}", by=self._by)
                elif outcome.label is not None and label_text(outcome.label) != example.label:
                    correct.setdefault(outcome.by, {})[name] = outcome.label
            elif outcome.label is not None:
                if example.role is None and not self._extra:
                    self.waiting[name] = outcome
                else:
                    tell.setdefault(outcome.by, {})[name] = outcome.label
            elif outcome.skipped:
                report.skipped += 1
                if write:
                    with suppress(Conflict):  # another sync has told a label since
                        self._campaign.skip(name, reason=f"skipped in {self._by}", by=self._by)
        for who, labels in tell.items():
            self._tell(who, labels, report, write)
        for who, labels in correct.items():
            self._correct(who, labels, report, write)

    def _is_ours(self, example: Example) -> bool:
        """Whether the label was asked for in this tool: what came another way is not this tool's to take back."""
        if example.request is None:
            return example.origin == "extra" and self._extra
        store = self._campaign.store
        with store.ledger.reading(store.number) as reader:
            return any(event.actor == self._by for event in reader.events(kinds=("asked",), request=example.request))

    def _tell(self, who: str | None, labels: dict[str, Any], report: Report, write: bool) -> None:
        receipt = self._campaign.tell_labels(
            labels, who, partial=True, extra=self._extra, dry_run=not write, written=True
        )
        report.told += receipt.rows
        for row in receipt.refused:
            if not row.conflict:  # told otherwise since, by another sync
                self._refused(str(row.id), row.reason)

    def _correct(self, who: str | None, labels: dict[str, Any], report: Report, write: bool) -> None:
        for name, label in labels.items():
            if not write:
                report.corrected += 1
                continue
            try:
                report.corrected += self._campaign.correct_written(
                    name, str(label), reason=f"changed in {self._by}", by=who
                )
            except InputError as error:
                self._refused(name, str(error))

    def _refused(self, name: str, problem: str) -> None:
        self.problems[self._pool.tasks.get(name, name)] = problem

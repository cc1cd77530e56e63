"""What a handful of people do in Label Studio, and what the campaign must then say: of a recording or of a real server."""

from __future__ import annotations

from typing import Any

import pytest

import evenhand as eh
from evenhand.connectors import LabelStudio, Sync
from evenhand.errors import ToolError
from studio import CONFIG, Lead

TWO = CONFIG.replace("</View>", '<TextArea name="why" toName="text"/></View>')
MORE = CONFIG.replace("</View>", '<Rating name="stars" toName="text"/></View>')
ROWS = [
    {"text": f"review {k}", "sex": "fm"[k % 2], "age": 20 + 3 * k, "key": f"k/{k:02d} ü", "words": {"n": k}}
    for k in range(24)
]


class RealPeople:
    """An owner and two annotators of a real server; what they do gives plain values."""

    def __init__(self, lead: Lead, tag: str) -> None:
        self.lead, self.tag = lead, tag
        self.accounts = {name: lead.invite(f"{name}{tag}@example.org") for name in ("ann", "bob")}
        self.number = 0

    def close(self) -> None:
        for account in (self.lead, *self.accounts.values()):
            account.close()

    def project(self) -> int:
        return self.make(ROWS, CONFIG)

    def make(self, rows: list[dict[str, Any]], config: str) -> int:
        self.number = self.lead.project("story", rows, config)
        return self.number

    def say(self, who: str, task: str, label: str) -> int:
        return self.accounts[who].say(task, label)

    def change(self, who: str, annotation: int, label: str) -> None:
        self.accounts[who].change(annotation, label)

    def unsay(self, who: str, annotation: int) -> None:
        self.accounts[who].unsay(annotation)

    def skip(self, who: str, task: str) -> int:
        return self.accounts[who].skip(task)

    def next_task(self, who: str) -> str:
        return str(self.accounts[who].next_task(self.number))

    def in_tab(self) -> list[list[Any]]:
        tasks = self.lead.in_tab(self.number)
        return [[str(t["id"]), *(t["data"][f"evenhand_{f}"] for f in ("request", "group"))] for t in tasks]

    def delete_task(self, task: str) -> None:
        self.lead.delete_task(task)

    def add(self, rows: list[dict[str, Any]]) -> None:
        self.lead.add(self.number, rows)

    def configure(self, config: str) -> None:
        self.lead.configure(self.number, config)


def labels(campaign: eh.Campaign) -> dict[str, str]:
    with campaign.store.moment() as (reader, _):
        return {row.id: str(row.label) for row in reader.changed() if row.counts}


def tell_story(url: str, key: str, people: Any, tag: str = "") -> eh.Campaign:
    """A project from its first task to a changed set-up; every step says what must hold then."""
    project = people.project()
    campaign = eh.Campaign(None, "uniform", "table", budget=16, batch=1, seed=3)
    with LabelStudio(url, project, key=key) as tool:
        return _in_step(campaign, tool, people, tag)


def _in_step(campaign: eh.Campaign, tool: LabelStudio, people: Any, tag: str) -> eh.Campaign:
    sync = Sync(campaign, tool, group=["sex", "age:50"], id="key", features=["age"], ahead=3)
    assert str(sync.once(dry_run=True)) == "24 tasks"
    report = sync.once()
    assert (report.tasks, report.asked, report.shown) == (24, 3, 6)
    assert str(sync.once()) == "6 to label"
    task_of = {name: task for task, name in sync._pool.names.items()}
    waiting = [(task_of[n], r.id, r.group) for r in campaign.open_requests for n in r.examples]
    assert sorted(map(tuple, people.in_tab())) == sorted(waiting)
    assert [request for _, request, _ in people.in_tab()] == sorted(request for _, request, _ in waiting)

    # they take what the tab gives them, in the order of requests
    first = people.next_task("ann")
    assert (first, waiting[0][1]) in {(task, number) for task, number, _ in waiting}
    mine = {first: people.say("ann", first, "good")}
    for task, *_ in waiting:
        if task != first and len(mine) < 5:
            mine[task] = people.say("bob", task, "bad")
    (last,) = {task for task, *_ in waiting} - mine.keys()
    people.skip("bob", last)
    report = sync.once()
    assert (report.told, report.skipped, report.asked) == (5, 1, 3)
    name_of = dict(sync._pool.names)
    assert labels(campaign) == {name_of[t]: "good" if t == first else "bad" for t in mine}
    who = campaign.status()["collectors"]
    assert {name: n["labels"] for name, n in who.items() if n["labels"]} == {
        f"ann{tag}@example.org": 1, f"bob{tag}@example.org": 4
    }  # fmt: skip
    assert campaign.status()["answered"] == 3

    # another thought, one taken back, a task deleted, an answer that nobody asked for, a task without a group
    (_, one), (two, second), (three, _), *_ = mine.items()
    people.change("ann", one, "bad")
    people.unsay("bob", second)
    people.delete_task(three)
    asked = {task for task, *_ in people.in_tab()}
    early = next(t for t in sorted(name_of, key=int) if t not in asked and t not in mine and t != last)
    people.say("ann", early, "good")
    people.add([{"text": "new", "sex": "", "age": 1, "key": "n1"}, {"text": "new", "sex": "f", "age": 2, "key": "n2"}])
    report = sync.once()
    assert (report.tasks, report.corrected, report.withdrawn, report.unasked) == (1, 1, 1, 1)
    assert list(report.problems.values()) == ["it has no group: 'sex' is empty"]
    again = Sync(campaign, tool, group=["sex", "age:50"], id="key", features=["age"], ahead=3)
    assert again.once().withdrawn == 1
    assert labels(campaign) == {name_of[t]: "bad" for t in mine if t not in (two, three)}

    # two people, two answers; then the first changes theirs
    task = people.in_tab()[0][0]
    people.say("ann", task, "good")
    people.say("bob", task, "bad")
    careful = Sync(campaign, tool, group=["sex", "age:50"], id="key", features=["age"], ahead=3, rule="agree")
    report = careful.once()
    assert report.disagreements == {task: {f"ann{tag}@example.org": "good", f"bob{tag}@example.org": "bad"}}
    assert campaign.status()["disagreements"] == {tool.name: {"count": 1, "ids": [name_of[task]]}}
    assert again.once().told == 1  # by `last`
    assert labels(campaign)[name_of[task]] == "bad"

    # the labelling set-up changes: a control for comments, then a second one that could give the label
    people.configure(TWO)
    assert again.once().told == 0
    people.configure(MORE)
    with pytest.raises(ToolError, match=r"which control gives the label.*'sentiment' \(Choices\), 'stars' \(Rating\)"):
        again.once()
    before = labels(campaign)
    people.configure(CONFIG)
    assert again.once().withdrawn == 0
    assert labels(campaign) == before

    # given up: its tasks leave the tab
    number = campaign.open_requests[0].id
    campaign.abandon(number)
    campaign.close("enough")
    assert again.once().nothing_to_ask == "closed"
    assert people.in_tab() == []
    assert campaign.verify().problems == []
    return campaign

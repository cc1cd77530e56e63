"""What a handful of people do in Label Studio, and what the campaign must then say: of a recording or of a real server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.connectors.studio.people import CONFIG, Lead
from tests.connectors.studio.tape import Tape

import evenhand as eh
from evenhand.connectors import LabelStudio, Sync
from evenhand.connectors.agreeing import RULES, agreed
from evenhand.errors import EvenhandError, InputError, ToolError

TWO = CONFIG.replace("</View>", '<TextArea name="why" toName="text"/></View>')
MORE = CONFIG.replace("</View>", '<Rating name="stars" toName="text"/></View>')
MANY = """<View>
  <Text name="text" value="$text"/>
  <Choices name="mood" toName="text"><Choice value="good"/><Choice value="bad"/></Choices>
  <Rating name="stars" toName="text"/>
  <Taxonomy name="kind" toName="text"><Choice value="animal"><Choice value="cat"/></Choice></Taxonomy>
  <Labels name="span" toName="text"><Label value="person"/></Labels>
  <TextArea name="why" toName="text"/>
</View>"""
ROWS = [
    {"text": f"review {k}", "sex": "fm"[k % 2], "age": 20 + 3 * k, "key": f"k/{k:02d} ü", "words": {"n": k}}
    for k in range(24)
]
FIELDS = {"group": ["sex", "age:50"], "id": "key", "features": ["age"], "ahead": 3}


class RealPeople:
    """An owner and three annotators of a real server; what they do gives plain values."""

    def __init__(self, lead: Lead) -> None:
        self.lead = lead
        self.accounts = {name: lead.invite(f"{name}@example.org") for name in ("ann", "bob", "cyd")}
        self.number = 0

    def close(self) -> None:
        for account in (self.lead, *self.accounts.values()):
            account.close()

    def make(self, rows: list[dict[str, Any]], config: str, overlap: int = 1) -> int:
        self.number = self.lead.project("story", rows, config, overlap)
        return self.number

    def say(self, who: str, task: str, label: str, *control: str) -> int:
        return self.accounts[who].say(task, label, *control)

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

    def numbers(self) -> list[str]:
        return [str(task["id"]) for task in sorted(self.lead.tasks(self.number), key=lambda task: int(task["id"]))]

    def delete_task(self, task: str) -> None:
        self.lead.delete_task(task)

    def delete_project(self) -> None:
        self.lead.delete_project(self.number)

    def add(self, rows: list[dict[str, Any]]) -> None:
        self.lead.add(self.number, rows)

    def configure(self, config: str) -> None:
        self.lead.configure(self.number, config)


def labels(campaign: eh.Campaign) -> dict[str, str]:
    with campaign.store.moment() as (reader, _):
        return {row.id: str(row.label) for row in reader.changed() if row.counts}


def tell_story(line: Tape, people: Any) -> None:
    """Two projects from their first task to their deletion; every step says what must hold then."""
    with LabelStudio(line.url, people.make(ROWS, CONFIG), key=line.key) as tool:
        _in_step(line, tool, people)
    _several_people(line, people)


def refused(kind: type[EvenhandError], do: Callable[[], object]) -> str:
    """What is said when something is refused, as it must be."""
    try:
        do()
    except kind as error:
        return str(error)
    raise AssertionError("nothing was refused")


def _in_step(line: Tape, tool: LabelStudio, people: Any) -> None:
    campaign = eh.Campaign(None, "uniform", "table", budget=16, batch=1, seed=3)
    sync = Sync(campaign, tool, **FIELDS)
    with LabelStudio(line.url, tool.project, key="not this one") as wrong:
        assert "does not accept this access token" in refused(InputError, lambda: wrong.tasks(None))
    with LabelStudio(line.url, 999_999, key=line.key) as nowhere:
        assert "has no project 999999" in refused(InputError, lambda: nowhere.tasks(None))
    assert str(sync.once(dry_run=True)) == "dry run: 24 tasks, 3 asked, 6 to label"
    assert len(campaign.events()) == 1
    assert {call["method"] for call in line.asked} == {"GET"}
    line.cut = 2  # and tried again
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
    assert {name: n["labels"] for name, n in who.items() if n["labels"]} == {"ann@example.org": 1, "bob@example.org": 4}
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
    again = Sync(campaign, tool, **FIELDS)
    assert again.once().withdrawn == 1
    assert labels(campaign) == {name_of[t]: "bad" for t in mine if t not in (two, three)}

    # two people, two answers
    task = people.in_tab()[0][0]
    people.say("ann", task, "good")
    people.say("bob", task, "bad")
    report = Sync(campaign, tool, **FIELDS, rule="agree").once()
    assert report.disagreements == {task: {"ann@example.org": "good", "bob@example.org": "bad"}}
    # nobody is asked for it again, and there is as much to do as before
    shown = [number for number, *_ in people.in_tab()]
    assert (task in shown, len(shown)) == (False, report.shown)
    assert campaign.status()["disagreements"] == {tool.name: {"count": 1, "ids": [name_of[task]]}}
    assert again.once().told == 1  # by `last`
    assert labels(campaign)[name_of[task]] == "bad"

    # the labelling set-up changes: a control for comments, then a second one that could give the label
    people.configure(TWO)
    assert again.once().told == 0
    people.configure(MORE)
    said = refused(ToolError, again.once)
    assert "say which control gives the label" in said
    assert said.endswith("the project has 'sentiment' (Choices), 'stars' (Rating)")
    before = labels(campaign)
    people.configure(CONFIG)
    assert again.once().withdrawn == 0
    assert labels(campaign) == before

    # given up: its tasks leave the tab; then nothing is left
    campaign.abandon(campaign.open_requests[0].id)
    campaign.close("enough")
    assert again.once().nothing_to_ask == "closed"
    assert people.in_tab() == []
    people.delete_project()
    assert f"has no project {tool.project}" in refused(ToolError, again.once)
    assert labels(campaign) == before
    assert campaign.verify().problems == []


def _several_people(line: Tape, people: Any) -> None:
    """Controls of every kind that gives a label, and three people a task."""
    project = people.make(ROWS[:8], MANY, 3)
    split, same, early, skipped, stars, kind, span, why = people.numbers()
    for task, *said in ((split, "good", "good", "bad"), (same, "bad", "bad", "bad"), (early, "good"), (skipped,)):
        for who, label in zip(("ann", "bob", "cyd"), said, strict=False):
            people.say(who, task, label, "mood", "choices")
    people.skip("ann", skipped)
    people.say("ann", stars, "4", "stars", "rating")
    people.say("ann", kind, "animal / cat", "kind", "taxonomy")
    people.say("ann", span, "person", "span", "labels")
    people.say("ann", why, "because", "why", "textarea")

    def read(label: str | None) -> dict[str, Any]:
        with LabelStudio(line.url, project, key=line.key, label=label) as tool:
            return {task.id: task for task in tool.tasks(None)[0]}

    tasks = read("mood")
    found = {rule: [agreed(tasks[t].answers, rule, tasks[t].wanted) for t in (split, same, early)] for rule in RULES}
    assert {rule: [outcome.label for outcome in outcomes] for rule, outcomes in found.items()} == {
        "first": ["good", "bad", "good"],
        "last": ["bad", "bad", "good"],
        "majority": ["good", "bad", None],
        "agree": [None, "bad", None],
    }
    assert [outcome.disagree for outcome in found["agree"]] == [True, False, False]
    # one of three skipped it: the others may know
    assert not any(agreed(tasks[skipped].answers, rule, tasks[skipped].wanted).skipped for rule in RULES)
    assert tasks[stars].answers[0].problem == "an annotation has no answer of 'mood'"
    for task, control, label in ((stars, "stars", 4), (kind, "kind", "animal / cat"), (span, "span", "person")):
        assert [answer.label for answer in read(control)[task].answers] == [label]
    assert "'why' is a TextArea, which gives no label" in refused(InputError, lambda: read("why"))
    assert "say which control gives the label" in refused(InputError, lambda: read(None))

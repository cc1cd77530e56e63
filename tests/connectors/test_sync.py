"""A campaign and a labelling tool in step: what is told, corrected, taken back, shown, and what two at once do."""

from __future__ import annotations

import random
import time

import pytest
from tests.connectors.paper import Paper, answered, campaign, fill, labels, rows
from typer.testing import CliRunner

import evenhand as eh
from evenhand.cli import app
from evenhand.connectors import Sync
from evenhand.connectors.base import Answer
from evenhand.connectors.running import run
from evenhand.errors import InputError, ToolError


def test_tasks_become_the_pool_and_requests_what_people_see(pair):
    tool, c, sync = pair
    report = sync.once()
    assert (report.tasks, report.asked, report.shown) == (40, 2, 8)
    asked = [(r.id, r.group, name) for r in c.open_requests for name in r.examples]
    assert [(s.request, s.group, s.task) for s in tool.shown] == asked
    assert all(tool.data[s.task]["group"] == s.group and s.group in s.why for s in tool.shown)
    assert str(sync.once()) == "8 to label"


def test_answers_are_told_by_those_who_gave_them(pair):
    tool, c, sync = pair
    sync.once()
    first = tool.shown[0].request
    for shown in tool.shown:
        tool.say(shown.task, "yes" if int(shown.task) % 2 else "no", "bob" if shown.request == first else "ann")
    assert sync.once().told == 8
    assert labels(c) == {t: label.label for t, a in tool.answers.items() for label in a.values()}
    people = c.status()["collectors"]
    assert {who: people[who]["labels"] for who in ("ann", "bob")} == {"ann": 4, "bob": 4}
    assert people["paper:1"]["requests"] == 4


def test_a_request_is_complete_when_all_are_answered_or_skipped(pair):
    tool, c, sync = pair
    sync.once()
    number = tool.shown[0].request
    tasks = [s.task for s in tool.shown if s.request == number]
    for task in reversed(tasks[1:]):
        tool.say(task, "yes")
    sync.once()
    assert [s.task for s in tool.shown if s.request == number] == tasks[:1]
    tool.say(tasks[0], None)
    report = sync.once()
    assert (report.skipped, report.asked) == (1, 1)
    assert number not in {s.request for s in tool.shown}
    assert c.status()["answered"] == 1


def test_changed_deleted_and_gone(pair):
    tool, c, sync = pair
    sync.once()
    fill(tool)
    sync.once()
    told = sorted(labels(c), key=int)
    tool.say(told[0], "no")
    tool.unsay(told[1])
    tool.say(told[2], None)
    tool.delete(told[3])
    report = sync.once()
    assert (report.corrected, report.withdrawn) == (1, 2)
    assert labels(c)[told[0]] == "no"
    report = Sync(c, tool, features=["age"]).once()  # another process looks at all tasks
    assert report.withdrawn == 1
    assert labels(c) == answered(tool)
    tool.say(told[1], "yes")
    assert told[1] not in labels(c)
    assert "was withdrawn, which is for good" in sync.once().problems[told[1]]
    assert c.verify().problems == []


def test_labels_that_came_another_way_stay(pair):
    tool, c, sync = pair
    sync.once()
    request = c.ask("bob")
    c.tell_labels(dict.fromkeys(request.examples, "no"), "bob")
    for task in tool.data:
        tool._touch(task)
    assert sync.once().withdrawn == 0
    assert Sync(c, tool, features=["age"]).once().withdrawn == 0
    assert labels(c) == dict.fromkeys(request.examples, "no")


def test_an_answer_that_nobody_asked_for_waits_for_its_turn():
    tool = Paper(rows(12))
    for task in tool.data:
        tool.say(task, "yes")
    c = campaign(budget=8)
    report = Sync(c, tool, features=["age"]).once()
    assert (report.asked, report.told, report.unasked) == (2, 8, 4)
    assert labels(c) == dict.fromkeys(labels(c), "yes")
    c = campaign(budget=10)
    report = Sync(c, tool, features=["age"], extra=True).once()
    assert (report.told, c.labels_used) == (10, 10)
    assert len(report.problems) == 2  # the budget is spent


def test_the_rules():
    tool = Paper(rows(8), wanted=3)
    found = {}
    for rule in ("first", "last", "majority", "agree"):
        c = campaign(budget=8)
        sync = Sync(c, tool, features=["age"], rule=rule, ahead=9)
        sync.once()
        if rule == "first":
            a, b = (s.task for s in tool.shown[:2])
            for who, one, other in (("ann", "yes", "no"), ("bob", "no", "no"), ("cyd", "no", "no")):
                tool.say(a, one, who)
                tool.say(b, other, who)
            tool.say(tool.shown[2].task, "yes")
            tool.say(a, "maybe", "ann")
        sync.once()
        found[rule] = labels(c)
        if rule == "agree":
            assert list(c.status()["disagreements"]) == ["paper:1"]
            assert c.status()["disagreements"]["paper:1"] == {"count": 1, "ids": [a]}
            report = sync.once()
            assert report.disagreements == {a: {"ann": "maybe", "bob": "no", "cyd": "no"}}
            tool.say(a, "no", "ann")
            assert sync.once().disagreements == {}
            assert c.status()["disagreements"] == {}
            assert labels(c)[a] == "no"
    waits = tool.changed.keys() - {a, b}
    assert {rule: (got.get(a), got.get(b)) for rule, got in found.items()} == {
        "first": ("maybe", "no"),
        "last": ("maybe", "no"),
        "majority": ("no", "no"),
        "agree": (None, "no"),
    }
    # one of three has answered the third task: enough for `first` and `last` only
    assert {rule: bool(waits & got.keys()) for rule, got in found.items()} == {
        "first": True, "last": True, "majority": False, "agree": False
    }  # fmt: skip
    with pytest.raises(InputError, match="unknown rule 'best'"):
        Sync(campaign(), tool, rule="best")


def test_a_task_is_skipped_when_as_many_as_wanted_skip_it():
    tool, c = Paper(rows(8), wanted=2), campaign(budget=8)
    sync = Sync(c, tool, features=["age"], rule="first")
    sync.once()
    one, two = (shown.task for shown in tool.shown[:2])
    tool.say(one, None, "ann")
    tool.say(two, None, "ann")
    assert sync.once().skipped == 0
    tool.say(one, "yes", "bob")
    tool.say(two, None, "bob")
    report = sync.once()
    assert (report.told, report.skipped) == (1, 1)


def test_where_people_disagree_the_campaign_asks_on():
    tool, c = Paper(rows(), wanted=2), campaign()
    sync = Sync(c, tool, features=["age"], rule="agree", ahead=1)
    sync.once()
    first = [shown.task for shown in tool.shown]
    for task in first:
        tool.say(task, "yes", "ann")
        tool.say(task, "no" if task != first[0] else "yes", "bob")
    report = sync.once()
    assert (report.told, report.asked, report.shown, len(report.disagreements)) == (1, 1, 4, 3)
    assert not {s.task for s in tool.shown} & set(first)
    assert [len(request.examples) for request in c.open_requests] == [3, 4]
    for task in first[1:]:
        tool.say(task, "yes", "bob")
    report = sync.once()
    assert (report.told, report.asked, report.disagreements) == (3, 0, {})


def test_where_answers_cannot_be_used_the_campaign_asks_on(pair):
    tool, c, sync = pair
    sync.once()
    first = [shown.task for shown in tool.shown]
    for task in first:
        tool.answers[task]["ann"] = Answer("ann", None, "1", "two labels")
        tool._touch(task)
    report = sync.once()
    assert (report.asked, report.shown, report.problems) == (2, 8, dict.fromkeys(first, "two labels"))
    fill(tool)
    assert sync.once().asked == 2
    for task in first:
        tool.say(task, "no")
    assert sync.once().told == 8
    assert c.verify().problems == []


def test_requests_given_up_closed_or_expired_leave_the_tool(pair):
    tool, c, sync = pair
    sync.once()
    c.abandon(tool.shown[0].request)
    before = {s.request for s in tool.shown}
    sync.once()
    assert len({s.request for s in tool.shown} & before) == 1
    late = tool.shown[0].task
    c.close("enough")
    tool.say(late, "yes")
    report = sync.once()
    assert (report.told, report.nothing_to_ask, tool.shown) == (0, "closed", [])
    assert sync.once().nothing_to_ask == "closed"
    assert labels(c) == {}


def test_a_lease_that_ends_and_an_answer_that_comes_late():
    tool, c = Paper(rows()), campaign(lease=0.2)
    sync = Sync(c, tool, features=["age"])
    sync.once()
    late = tool.shown[0].task
    time.sleep(0.3)
    sync.once()
    tool.say(late, "yes")
    assert sync.once().told == 1
    assert c.verify().problems == []


def test_corrections_reach_a_campaign_that_is_closed(pair):
    tool, c, sync = pair
    sync.once()
    fill(tool)
    sync.once()
    c.close("enough")
    task, other = sorted(labels(c))[:2]
    tool.say(task, "no")
    tool.unsay(other)
    tool.add({"group": "u", "age": 30})  # too late, as is an answer to another task
    tool.say(next(t for t in tool.data if t not in labels(c)), "yes")
    for shown in tool.shown[:1]:
        tool.say(shown.task, None)
    report = sync.once()
    assert (report.tasks, report.told, report.skipped, report.corrected, report.withdrawn) == (0, 0, 0, 1, 1)
    assert labels(c)[task] == "no"
    assert labels(c) == {t: label for t, label in answered(tool).items() if t in labels(c)}


def test_a_reading_that_is_older_than_the_ledger_changes_nothing(pair):
    tool, c, sync = pair
    other = Sync(c, tool, features=["age"])
    sync.once()
    other.once()
    task = tool.shown[0].task

    def meanwhile():
        tool.say(task, "yes")
        other.once()
        assert labels(c) == {task: "yes"}

    for t in tool.data:
        tool._touch(t)
    tool.between = meanwhile
    assert sync.once().withdrawn == 0
    tool.between = lambda: (tool.say(task, "no"), other.once())
    tool._touch(task)
    sync.once()
    sync.once()
    assert labels(c) == {task: "no"}


def test_what_a_pass_had_to_leave_is_read_again_however_long_ago_it_changed(pair):
    """Somebody changes an answer after another sync read it, which writes what it read only after ours has begun."""
    tool, c, sync = pair
    sync.once()
    task = tool.shown[0].task
    tool.say(task, "yes")
    slow = Sync(c, tool, features=["age"])

    def ours():
        tool.say(task, "no")
        tool.between = lambda: c.tell_labels({task: "yes"}, "ann")  # the slow one's, at last
        assert sync.once().corrected == 0

    tool.between = ours
    slow.once()
    assert labels(c) == {task: "yes"}
    assert sync.once().corrected == 1
    assert labels(c) == {task: "no"}


def test_a_task_that_another_sync_brought_in_meanwhile_is_not_taken_for_deleted():
    tool, c = Paper(rows(4)), campaign(batch=1)
    sync, other = (Sync(c, tool, features=["age"], ahead=9) for _ in range(2))
    sync.once()

    def meanwhile():
        for row in rows(4):
            tool.add(row)
        other.once()

    late = Sync(c, tool, features=["age"])  # its first pass looks at all tasks
    tool.between = meanwhile
    assert late.once().skipped == 0
    assert {s.task for s in tool.shown} == {str(k) for k in range(1, 5)}
    sync.once()
    assert {s.task for s in tool.shown} == {str(k) for k in range(1, 9)}


def test_a_pass_that_fails_in_the_middle_is_made_again(pair):
    tool, c, sync = pair
    sync.once()
    fill(tool)
    tool.broken = 1
    with pytest.raises(ToolError):
        sync.once()
    assert sync.once().told == 8
    said = []

    def hear(report):
        said.append(str(report))
        if len(said) == 4:
            raise KeyboardInterrupt

    tool.broken = 3
    with pytest.raises(KeyboardInterrupt):
        run(sync, hear, seconds=0.01)
    assert said[:3] == ["the line is dead; trying again in 0 seconds"] * 3
    assert labels(c) == answered(tool)


def test_dry_run_writes_nothing(pair):
    tool, c, sync = pair
    report = sync.once(dry_run=True)
    assert str(report) == "dry run: 40 tasks, 2 asked, 8 to label"
    assert report.as_dict()["dry_run"]
    assert (c.events()[-1]["kind"], tool.shown) == ("created", [])
    assert str(sync.once()) == "40 tasks, 2 asked, 8 to label"
    fill(tool)
    tool.say(tool.shown[0].task, None)
    before, shown = len(c.events()), list(tool.shown)
    said = str(sync.once(dry_run=True))
    assert (len(c.events()), tool.shown) == (before, shown)
    assert said == f"dry run: {sync.once()}"


@pytest.mark.parametrize("seed", range(6))
def test_whatever_people_do_both_agree_in_the_end(seed):
    rng = random.Random(seed)
    tool, c = Paper(rows(60)), campaign(budget=40)
    syncs = [Sync(c, tool, features=["age"]) for _ in range(2)]
    final = set()  # skips and withdrawals are for good

    def somebody():
        task = rng.choice([s.task for s in tool.shown] + list(answered(tool)) or list(tool.data))
        if task not in tool.data or task in final:
            return
        what = rng.random()
        if what < 0.8:
            tool.say(task, rng.choice(["yes", "no"]))
        elif what < 0.9:
            tool.say(task, None)
            final.add(task)
        elif tool.answers[task]:
            tool.unsay(task)
            final.add(task)
        elif len(tool.data) > 40:
            tool.delete(task)

    for _ in range(150):
        somebody()
        if rng.random() < 0.3:
            which = rng.randrange(2)
            tool.between = somebody if rng.random() < 0.5 else syncs[1 - which].once
            syncs[which].once()
        if rng.random() < 0.05:  # killed and started again
            syncs[rng.randrange(2)] = Sync(c, tool, features=["age"])
    for _ in range(2):
        Sync(c, tool, features=["age"]).once()
    said = answered(tool)
    with c.moment() as (reader, _):
        asked = {
            name: row for name, row in reader.find(list(said)).items() if row.role is not None and row.fate is None
        }
    assert labels(c) == {t: label for t, label in said.items() if t in asked}
    assert c.verify().problems == []


def test_status_in_the_shell_lists_disagreements(tmp_path):
    db = f"sqlite:///{tmp_path / 'c.db'}"
    with eh.Campaign.create(db, "survey", None, "uniform", "table", budget=8) as c:
        tool = Paper(rows(8), wanted=2)
        sync = Sync(c, tool, features=["age"], rule="agree")
        sync.once()
        task = tool.shown[0].task
        tool.say(task, "yes", "ann")
        tool.say(task, "no", "bob")
        assert f"task {task}: they disagree, ann yes, bob no" in str(sync.once())
        events = len(c.events())
        sync.once()
        assert len(c.events()) == events  # the same again is no event
    done = CliRunner().invoke(app, ["campaign", "status", "survey", "--db", db])
    assert f"paper:1: 1 without a label because people disagree: {task}\n" in done.stdout

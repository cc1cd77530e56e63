"""Tasks as examples of the pool: which are refused, changed under way or deleted, and fields of every kind."""

from __future__ import annotations

import pytest
from tests.connectors.paper import Paper, answered, campaign, fill, labels, rows

import evenhand as eh
from evenhand.connectors import Sync
from evenhand.errors import InputError, ToolError


def test_a_task_that_waits_and_is_deleted_leaves_its_request(pair):
    tool, c, sync = pair
    sync.once()
    gone = tool.shown[0].task
    tool.delete(gone)
    assert Sync(c, tool, features=["age"]).once().skipped == 1
    assert gone not in {name for r in c.open_requests for name in r.examples}


def test_a_project_that_was_emptied_takes_nothing_back(pair):
    tool, c, sync = pair
    sync.once()
    fill(tool)
    sync.once()
    kept, tool.data = tool.data, {}
    with pytest.raises(ToolError, match=r"has no tasks any more.*nothing was taken back"):
        Sync(c, tool, features=["age"]).once()
    tool.data = kept
    assert labels(c) == answered(tool)


def test_another_project_is_refused(pair):
    _, c, sync = pair
    sync.once()
    with pytest.raises(InputError, match=r"that of paper:1, not of paper:2"):
        Sync(c, Paper(rows(), name="paper:2"), features=["age"]).once()


def test_another_server_that_has_a_project_of_the_same_number_is_refused():
    here, there = Paper(rows()), Paper(rows())
    here.origin, there.origin = "paper:1, made on Monday", "paper:1, made on Tuesday"
    c = campaign()
    Sync(c, here, features=["age"]).once()
    fill(here)
    Sync(c, here, features=["age"]).once()
    events = len(c.events())
    for dry_run in (True, False):
        with pytest.raises(
            InputError, match=r"made on Monday, not of paper:1, made on Tuesday: is it the right server"
        ):
            Sync(c, there, features=["age"]).once(dry_run=dry_run)
    assert (len(c.events()), there.shown) == (events, [])


def test_bad_tasks_are_named_and_the_others_go_on(pair):
    tool, _, sync = pair
    sync.once()
    fine = tool.add({"group": "u", "age": 3, "more": 1})
    bad = {
        tool.add({"age": 4}): "it has no group: 'group' is empty",
        tool.add({"group": "w", "age": 4}): "unknown group 'w'",
        tool.add({"group": "u", "age": "old"}): "age: 'old' is not a number",
    }
    report = sync.once()
    assert report.tasks == 1
    assert report.problems.keys() == bad.keys()
    assert all(message in report.problems[task] for task, message in bad.items())
    assert fine in sync._pool.names
    tool.data[min(bad)] = {"group": "v", "age": 5}
    tool._touch(min(bad))
    report = sync.once()
    assert (report.tasks, len(report.problems)) == (1, 2)


def test_gaps_and_large_numbers_are_numbers():
    """Label Studio imports a gap in a CSV file as an empty text."""
    tool, c = Paper([{**row, "size": 10**20 + k, "sum": k / 2} for k, row in enumerate(rows())]), campaign()
    tool.data["3"]["age"] = tool.data["4"]["sum"] = ""
    for _ in range(2):
        Sync(c, tool).once()
    late = tool.add({"group": "u", "age": "", "size": 1, "sum": 1, "note": ""})
    report = Sync(c, tool).once()
    assert (report.tasks, report.problems) == (1, {})
    columns = c.store.refresh().columns
    kinds = {column["name"]: column["kind"] for column in columns["columns"] if column["use"] == "feature"}
    assert kinds == {"age": "number", "note": "category", "size": "number", "sum": "number"}
    assert [event["facts"]["counts"] for event in c.events() if event["kind"] == "pooled"] == [[20, 20], [1, 0]]
    tool.add({"group": "u", "age": 10**400})
    assert "age: inf is beyond" in Sync(c, tool).once().problems[str(int(late) + 1)]


@pytest.mark.parametrize("fields", [{"group": "region"}, {"id": "region"}, {"features": ["region"]}])
def test_a_field_that_no_task_has(fields):
    with pytest.raises(InputError, match="no task has the field 'region': the fields are 'group', 'age', 'note'"):
        Sync(campaign(), Paper(rows()), **fields).once()


def test_groups_that_are_known_before_there_are_tasks():
    tool, c = Paper(), eh.Campaign(["u", "v"], learner="table", budget=24)
    sync = Sync(c, tool, features=["age"])
    assert (str(sync.once()), c.open_requests) == ("nothing to ask: no pool yet", [])
    for row in rows():
        tool.add(row)
    assert sync.once().asked == 2


def test_data_that_change_before_a_task_is_handed_out(pair):
    tool, c, sync = pair
    sync.once()
    task = next(t for t in tool.data if t not in {s.task for s in tool.shown})
    tool.data[task] = {"group": "v" if tool.data[task]["group"] == "u" else "u", "age": 70}
    tool._touch(task)
    assert sync.once().tasks == 1
    (example,) = sync._pool.find([task]).values()
    assert (example.group, example.features) == (tool.data[task]["group"], "[70]")
    assert sync.once().tasks == 0
    assert c.verify().problems == []


def test_a_new_task_with_the_number_of_a_deleted_one(pair):
    """Label Studio on SQLite does so: what people say of the new task is not said of the old one's data."""
    tool, c, sync = pair
    sync.once()
    told, again, waits, *_ = (shown.task for shown in tool.shown)
    tool.say(told, "yes")
    tool.say(again, "yes")
    sync.once()
    earlier = {task: tool.data[task] for task in (told, again, waits)}
    for task in earlier:
        tool.data[task], tool.answers[task] = {"group": "u", "age": 99}, {}
        tool._touch(task)
    for task in (again, waits):
        tool.say(task, "no")
    for one in (sync, Sync(c, tool, features=["age"])):
        report = one.once()
        assert report.problems == dict.fromkeys(
            earlier, "its data are not those that were handed out under its id: answers to it do not count"
        )
        assert not {s.task for s in tool.shown} & earlier.keys()
    assert labels(c) == {again: "yes"}  # the other's label is taken back, as with any task that was deleted
    tool.data.update(earlier)
    for task in earlier:
        tool._touch(task)
    report = sync.once()
    assert (report.told, report.corrected, list(report.problems)) == (1, 1, [])
    assert labels(c) == {again: "no", waits: "no"}


def test_ids_by_a_field_and_groups_by_several():
    odd = ["=a", "ü/ö?&#", "007", "a b", "日本", "x" * 200, 'it\'s "q"', "%2F"]
    tool = Paper(
        [
            {"key": odd[k % 8] + (str(k) if k > 7 else ""), "sex": "fm"[k % 2], "age": 20 + 5 * (k // 2)}
            for k in range(24)
        ]
    )
    tool.add({"key": "=a", "sex": "f", "age": 20})
    tool.add({"key": " b", "sex": "f", "age": 20})
    tool.add({"key": None, "sex": "f", "age": 20})
    tool.add({"key": 17.0, "sex": "f", "age": "20"})
    tool.add({"key": 18.0, "sex": "f", "age": 20})
    c = campaign(batch=1)
    sync = Sync(c, tool, id="key", group=["sex", "age:30,60"], features=["age"], ahead=9)
    report = sync.once()
    assert report.tasks == 25
    assert list(report.problems.values()) == [
        "it has the id '=a' of task 1", "the id ' b' has blanks around it: write 'b'", "it has no id: 'key' is empty",
        "it has no group: 'age' is '20' and not a number, which bins need",
    ]  # fmt: skip
    assert "sex=f, age=under 30" in c.groups
    fill(tool, "yes")
    sync.once()
    assert {str(tool.data[task]["key"]).removesuffix(".0") for task in answered(tool)} == set(labels(c))
    assert [*sync._pool.find(["17", "18"])] == ["18"]

"""The Label Studio connector against a real server's answers, played from a recording.

`python -m benchmarks.label_studio --record` makes the recording; `test_live.py` tells the same story to a server.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from threading import Timer

import pytest
from tests.connectors.miniature import Miniature, SmallPeople
from tests.connectors.studio.people import CONFIG
from tests.connectors.studio.story import FIELDS, ROWS, labels, tell_story
from tests.connectors.studio.tape import RECORDING, Player, Tape
from typer.testing import CliRunner

import evenhand as eh
from evenhand.cli import app
from evenhand.connectors import LabelStudio, Sync
from evenhand.errors import InputError, ToolError

KEY = "0123456789abcdef0123456789abcdef01234567"


def test_the_story_from_the_recording():
    with Player(RECORDING, KEY) as tape:
        tell_story(tape, tape.people)
        assert tape.unknown == []
        assert tape.scene == len(tape.scenes)
        written = [
            call["body"]["data"] for call in tape.asked if call["method"] == "PATCH" and "/tasks/" in call["path"]
        ]
    marks = [data for data in written if "evenhand_request" in data]
    # what was answered or given up is marked no more, not even with an empty text, which the tab may show
    cleared = [data for data in written if not any(name.startswith("evenhand_") for name in data)]
    assert marks
    assert cleared
    assert len(marks) + len(cleared) == len(written)
    for data in marks:
        assert data["evenhand_group"] in data["evenhand_why"]
        assert data["text"].startswith(("review", "new"))  # what was there stays
        assert isinstance(data.get("words", {}), dict)


def test_the_story_in_the_miniature():
    with Miniature(KEY) as server:
        tell_story(server, SmallPeople(server))


@pytest.fixture
def tape():
    with Player(RECORDING, KEY) as found:
        yield found


@pytest.fixture
def studio(tape):
    """Opens projects of the recording, and lets go of them at the end."""
    with ExitStack() as stack:
        yield lambda number, key=KEY: stack.enter_context(LabelStudio(tape.url, number, key=key))


@pytest.fixture
def hasty(monkeypatch):
    """Two retries and not five, so that giving up takes no seconds."""
    monkeypatch.setattr("evenhand.connectors.calls._TRIES", 3)


def made(**settings):
    return eh.Campaign(None, "uniform", "table", budget=16, batch=1, seed=3, **settings)


def test_a_line_that_is_cut_is_tried_again_and_nothing_is_lost(tape, studio, hasty):
    tool = studio(tape.people.make(ROWS, CONFIG))
    c = made()
    sync = Sync(c, tool, **FIELDS)
    tape.cut = 2
    assert sync.once().tasks == 24
    number = len(tape.asked)
    tape.cut = 3
    with pytest.raises(ToolError, match="cannot be reached: RemoteProtocolError"):
        sync.once()
    assert len(tape.asked) == number + 3
    assert sync.once().shown == 6
    assert labels(c) == {}


def test_a_line_that_is_cut_while_tasks_are_marked(tape, studio, hasty):
    """Requests are in the ledger by then; the next pass shows the rest of their tasks, and asks for no more."""
    tool = studio(tape.people.make(ROWS, CONFIG))
    c = made()
    real = tape.answer

    def until_two_are_marked(call, authorization):
        if sum(done["method"] == "PATCH" for done in tape.asked) == 2:
            tape.cut = 3
        return real(call, authorization)

    tape.answer = until_two_are_marked
    with pytest.raises(ToolError):
        Sync(c, tool, **FIELDS).once()
    tape.answer, tape.cut = real, 0
    report = Sync(c, tool, **FIELDS).once()
    assert (report.tasks, report.asked, report.shown) == (0, 0, 6)
    assert len(c.open_requests) == 3


def test_a_wrong_key_and_a_project_that_is_gone(tape, studio):
    number = tape.people.make(ROWS, CONFIG)
    with pytest.raises(InputError, match=r"does not accept this access token.*; it says Invalid token"):
        studio(number, "not this one").tasks(None)
    with pytest.raises(InputError, match="has no project 99 that this access token may see"):
        studio(99).tasks(None)
    tool = studio(number)
    tool.tasks(None)
    tape.answer = lambda call, authorization: {"status": 404, "json": {"detail": "No Project matches"}}
    with pytest.raises(ToolError, match=f"has no project {number}"):
        tool.tasks(None)
    for url in ("localhost:8080", "ftp://here"):
        with pytest.raises(InputError, match="must begin with http"):
            LabelStudio(url, 1, key=KEY)
    with pytest.raises(InputError, match="no token has"):
        LabelStudio(tape.url, 1, key="a\u2026b")


class Small(Tape):
    """A project with one task, and whatever else a test wants it to answer."""

    def __init__(self, controls, result=None, **task):
        self.controls, self.tokens, self.first = controls, [], []
        note = {
            "id": 5,
            "completed_by": 1,
            "created_at": "1",
            "updated_at": "1",
            "was_cancelled": False,
            "result": result,
        }
        annotations = [] if result is None else [note]
        self.task = {"id": 1, "data": {"group": "u"}, "annotations": annotations, "overlap": 1, **task}
        super().__init__(KEY)

    def answer(self, call, authorization):
        self.tokens.append(authorization)
        if self.first:
            return self.first.pop(0)
        if call["path"] == "/api/token/refresh/":
            known = call["body"]["refresh"] == "a.b.c"
            return (
                {"status": 200, "json": {"access": f"short{len(self.tokens)}"}}
                if known
                else {"status": 401, "json": {}}
            )
        if call["path"].startswith("/api/projects/"):
            return {"status": 200, "json": {"parsed_label_config": self.controls}}
        if call["path"] == "/api/users/":
            return {"status": 200, "json": [{"id": 1, "email": "ann@example.org"}]}
        return {"status": 200, "json": {"tasks": [self.task]}}


def read(server, key=KEY, label=None):
    with LabelStudio(server.url, 1, key=key, label=label) as tool:
        return tool.tasks(None)


ONE = {"mood": {"type": "Choices"}}


def part(kind, value, name="mood"):
    return [{"from_name": name, "type": kind, "value": {kind: value}}]


@pytest.mark.parametrize(
    ("control", "result", "label"),
    [
        ("Choices", part("choices", ["good"]), "good"),
        ("Rating", part("rating", 4), 4),
        ("Taxonomy", part("taxonomy", [["animal", "cat"]]), "animal / cat"),
        ("Labels", part("labels", ["person"]) * 2, "person"),
        ("RectangleLabels", part("rectanglelabels", ["car"]), "car"),
    ],
)
def test_controls_that_give_labels(control, result, label):
    with Small({"mood": {"type": control}, "remark": {"type": "TextArea"}}, result) as server:
        (task,), cursor = read(server)
    (answer,) = task.answers
    assert (answer.by, answer.label, answer.problem) == ("ann@example.org", label, None)
    assert cursor is None  # this server does not tell the time


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        (part("choices", ["good", "bad"]), "'mood' has 2 answers where one label is wanted"),
        (part("choices", ["good"]) + part("choices", ["bad"]), "several labels: 'bad', 'good'"),
        (part("choices", ["good"], "other"), "no answer of 'mood'"),
        ([], "no answer of 'mood'"),  # submitted with nothing chosen
        (part("textarea", "well"), "answers of 'mood' are textarea, which cannot be a label"),
        (part("taxonomy", [["a"], ["b"]]), "'mood' has 2 answers"),
    ],
)
def test_answers_that_are_no_label(result, problem):
    with Small(ONE, result) as server:
        (task,), _ = read(server)
    assert problem in task.answers[0].problem


def test_skipped_annotations_and_people_who_left():
    left = {"id": 7, "completed_by": None, "updated_at": "2", "result": part("choices", ["bad"])}
    unlisted = {**left, "id": 8, "completed_by": 12}
    by = {"id": 3, "email": "bob@example.org"}
    skipped = {**left, "id": 9, "result": [], "was_cancelled": True, "completed_by": by}
    with Small(ONE, annotations=[left, unlisted, skipped], overlap=3) as server:
        (task,), _ = read(server)
    assert [(a.by, a.label) for a in task.answers] == [
        ("deleted account, annotation 7", "bad"), ("account 12", "bad"), ("bob@example.org", None)
    ]  # fmt: skip
    assert task.wanted == 3


@pytest.mark.parametrize(
    ("controls", "label", "message"),
    [
        ({}, None, "the project has none"),
        ({"a": {"type": "TextArea"}}, None, r"'a' \(TextArea\)"),
        ({"a": {"type": "Choices"}, "b": {"type": "Rating"}}, None, r"say which control.*--label.*'a' \(Choices\), 'b' \(Rating\)"),
        ({"a": {"type": "TextArea"}}, "a", "'a' is a TextArea, which gives no label"),
        ({"a": {"type": "Choices"}}, "b", "the project has no control 'b'"),
    ],
)  # fmt: skip
def test_a_set_up_without_a_label(controls, label, message):
    with Small(controls) as server, pytest.raises(InputError, match=message):
        read(server, label=label)


def test_personal_tokens_are_exchanged_and_renewed():
    with Small(ONE) as server, LabelStudio(server.url, 1, key="a.b.c") as tool:
        tool.tasks(None)
        assert server.tokens[:2] == ["", "Bearer short1"]
        server.first = [{"status": 401, "json": {"detail": "token expired"}}]
        tool.tasks(None)
        assert server.tokens[-1].startswith("Bearer short")
        assert server.tokens[-1] != "Bearer short1"
        with pytest.raises(InputError, match="does not know this access token"):
            read(server, key="a.b.d")


def test_what_other_servers_say(hasty):
    busy = {"status": 503, "json": None}
    with Small(ONE) as server:
        server.first = [busy, {"status": 500, "json": None}]
        assert len(read(server)[0]) == 1
        for answer, error, message in (
            (busy, ToolError, "Label Studio answered GET /api/projects/1/ with 503"),
            ({"status": 302, "json": None, "headers": {"Location": "https://there/"}}, InputError, "redirects to https://there/"),
            ({"status": 403, "json": {"detail": "not yours"}}, ToolError, r"with 403.*not yours"),
        ):  # fmt: skip
            server.first = [answer] * (3 if answer is busy else 1)
            with pytest.raises(error, match=message):
                read(server)


def command(tape, number, *words, db, key=KEY):
    fixed = ["sync", "label-studio", "--url", tape.url, "--project", str(number), "--campaign", "story", "--db", db]
    fields = ["--group", "sex", "--group", "age:50", "--id", "key", "--feature", "age", "--ahead", "3"]
    return CliRunner().invoke(app, [*fixed, *fields, *words], env={"LABEL_STUDIO_API_KEY": key})


def test_from_the_shell(tape, tmp_path):
    db, number = f"sqlite:///{tmp_path / 'c.db'}", tape.people.make(ROWS, CONFIG)
    made = eh.Campaign.create(db, "story", None, "uniform", "table", budget=16, batch=1, seed=3)
    done = command(tape, number, "--dry-run", db=db)
    assert (done.exit_code, done.stdout) == (0, "dry run: 24 tasks, 3 asked, 6 to label\n")
    assert len(made.events()) == 1
    for words, message in (
        (("--every", "5m", "--once"), "--every has no effect with --once"),
        (("--every", "soon"), "cannot use --every soon: write e.g. 30s"),
    ):
        done = command(tape, number, *words, db=db)
        assert (done.exit_code, message in done.output) == (2, True), done.output
    done = command(tape, number, "--once", "--json", db=db)
    assert done.exit_code == 0, done.output
    assert {name: json.loads(done.stdout)[name] for name in ("tasks", "asked", "shown")} == {
        "tasks": 24,
        "asked": 3,
        "shown": 6,
    }
    (tmp_path / "key").write_text(f"{KEY}\n")
    done = command(tape, number, "--once", "--key-file", str(tmp_path / "key"), db=db, key="")
    assert done.stdout == "6 to label\n"
    (tmp_path / "odd").write_bytes(f"{KEY}\n".encode("utf-16"))  # as a shell of Windows writes it
    for words, message in (
        ((), "LABEL_STUDIO_API_KEY"),
        (("--key-file", str(tmp_path / "none")), "No such file"),
        (("--key-file", str(tmp_path / "odd")), "no token has"),
    ):
        done = command(tape, number, "--once", *words, db=db, key="")
        assert (done.exit_code, message in done.output) == (2, True), done.output
    done = command(tape, number, "--once", "--json", db=db, key="wrong")
    assert done.exit_code == 2
    assert "does not accept this access token" in json.loads(done.stdout)["error"]
    assert len(made.open_requests) == 3


def test_ctrl_c_ends_it_and_it_goes_on_from_there(tape, tmp_path):
    db, number = f"sqlite:///{tmp_path / 'c.db'}", tape.people.make(ROWS, CONFIG)
    made = eh.Campaign.create(db, "story", None, "uniform", "table", budget=16, batch=1, seed=3)
    words = [
        "--url",
        tape.url,
        "--project",
        str(number),
        "--campaign",
        "story",
        "--db",
        db,
        "--every",
        "1s",
        "--ahead",
        "3",
    ]
    words += ["--group", "sex", "--group", "age:50", "--id", "key", "--feature", "age"]
    process = subprocess.Popen(
        [sys.executable, "-m", "evenhand", "sync", "label-studio", *words],
        env={**os.environ, "LABEL_STUDIO_API_KEY": KEY}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        # a shell that runs the tests in the background has them ignore Ctrl-C, and children inherit that
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    patience = Timer(60, process.kill)
    patience.start()
    assert process.stdout.readline() == "24 tasks, 3 asked, 6 to label\n"
    patience.cancel()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert len(made.open_requests) == 3
    assert command(tape, number, "--once", db=db).stdout == "6 to label\n"

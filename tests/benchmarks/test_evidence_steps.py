"""The steps of `make evidence`: what counts as finished, what is forgotten, and that judging twice changes nothing."""

import importlib
import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


def fails(code: int) -> str:
    return f"python -c 'raise SystemExit({code})'"


def notes(name: str, text: str) -> str:
    """A command that adds a line to a file."""
    return f"""python -c 'print("{text}", file=open("{name}", "a"))'"""


@pytest.fixture
def evidence(tmp_path, monkeypatch) -> ModuleType:
    """The module of a copy of what judges, outside of a checkout."""
    copied = shutil.ignore_patterns("__pycache__", ".*.partial")
    for folder in ("benchmarks", "docs/results"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=copied)
    for name in ("evidence.json", "SHA256SUMS"):
        (tmp_path / "docs/results" / name).unlink(missing_ok=True)
    monkeypatch.setattr(sys, "path", [*sys.path])
    spec = importlib.util.spec_from_file_location("copied_evidence", tmp_path / "docs/results/evidence.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert tmp_path == module.ROOT
    return module


@pytest.fixture
def small(evidence) -> ModuleType:
    """Steps that note that they ran, and pages that note that they were rendered."""
    evidence.STEPS = {name: notes("ran", name) for name in ("one", "two", "three")}
    evidence.IMAGES = {"pictures": notes("ran", "pictures")}
    evidence.CLAIMS = "python -c pass {}"
    evidence.AFTER = (notes("ran", "pages"),)
    return evidence


def ran(evidence: ModuleType) -> list[str]:
    """What ran since the last time."""
    path = evidence.ROOT / "ran"
    found = path.read_text().split() if path.exists() else []
    path.unlink(missing_ok=True)
    return found


def git(folder: Path, *words: str) -> None:
    me = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *me, *words], cwd=folder, check=True, capture_output=True)


def test_pages_are_rendered_after_each_step_and_a_stopped_run_goes_on(small):
    small.STEPS["two"] = fails(3)
    assert small.main([]) == 3
    assert ran(small) == ["one", "pages"]
    small.STEPS["two"] = notes("ran", "two")
    assert small.main([]) == 0
    assert ran(small) == ["two", "pages", "three", "pages"]
    assert small.main(["--images"]) == 0
    assert ran(small) == ["pictures", "pages"]
    assert small.main([]) == 0
    assert ran(small) == ["pages"]


def test_code_4_finishes_a_reproduction_alone(small):
    small.STEPS = {"reproduction": fails(4), "soak": fails(4)}
    small.TRIALS = "docs/results"
    assert small.main([]) == 4
    assert list(small.finished()) == ["reproduction"]


def test_again_forgets_the_chosen_steps_only(small):
    assert small.main([]) == 0
    ran(small)
    assert small.main(["--again", "--only", "two"]) == 0
    assert ran(small) == ["two", "pages"]
    assert small.finished().keys() == {"one", "two", "three"}
    # killed in the middle, it goes on with what is left
    small.STEPS["two"] = fails(1)
    assert small.main(["--again"]) == 1
    assert list(small.finished()) == ["one"]


@pytest.mark.parametrize("codes", [(5, 0), (5, 9), (0, 5)])
def test_the_first_failure_of_the_pages_counts(small, codes):
    small.AFTER = tuple(map(fails, codes))
    assert small.main(["--pages"]) == 5


def test_a_killed_renderer_is_a_failure(small):
    small.AFTER = ("python -c 'import os; os.kill(os.getpid(), 9)'", notes("ran", "second"))
    assert small.main(["--pages"]) == 128 + 9
    assert ran(small) == ["second"]


def test_the_commit_is_kept_and_numbers_are_no_change_of_code(small):
    git(small.ROOT, "init")
    git(small.ROOT, "add", "benchmarks", "docs")
    git(small.ROOT, "commit", "-m", "first")
    assert small.main(["--only", "one"]) == 0
    first = small.commit(small.ROOT)
    assert small.finished()["one"]["commit"] == first != "unknown"
    for written in ("docs/results/errata.json", "docs/results/fig-adult.png"):
        (small.ROOT / written).write_text("{}")
    assert small.commit(small.ROOT) == first
    (small.ROOT / "benchmarks/errata.py").write_text("")
    assert small.commit(small.ROOT) == f"{first}-dirty"


RULE = "src/evenhand/parts/rule.py"
NAMES = 'NEXT = "evenhand.parts.named:f"\n'


@pytest.mark.parametrize(
    ("file", "text", "again"),
    [
        (RULE, "def f():\n    return 2\n", True),
        (RULE, f'# why\ndef f():\n    """Other words."""\n    return 1\n{NAMES}', False),
        (RULE, f"def f():\n    return  1\n{NAMES}", False),
        ("src/evenhand/parts/page.html", "<b>", True),
        ("src/evenhand/parts/__init__.py", "A = 1", True),
        ("src/evenhand/parts/later.py", "A = 2", True),
        ("src/evenhand/parts/named.py", "A = 2", True),
        ("src/evenhand/parts/unused.py", "A = 2", False),
        ("src/evenhand/public.py", "def used(): return 2", True),
        ("src/evenhand/other.py", "def unused(): return 2", False),
        ("src/evenhand/cli/tell.py", "A = 2", True),
        ("src/evenhand/cli/tell_more.py", "A = 2", True),
        ("src/evenhand/cli/ask.py", "A = 2", False),
        ("benchmarks/script.py", "print()", True),
        ("benchmarks/helper.py", "A = 2", True),
        ("docs/results/blocks/inner.py", "A = 2", True),
        ("benchmarks/provenance.py", "", False),
        ("benchmarks/other.py", "", False),
        ("tests/test_new.py", "", False),
        ("docs/page.md", "", False),
    ],
)
def test_a_step_is_run_again_when_the_code_that_it_uses_has_changed(small, capsys, file, text, again):
    used = {
        "src/evenhand/__init__.py": "",
        "src/evenhand/__init__.pyi": "from .public import used as used\nfrom .other import unused as unused\n",
        "src/evenhand/public.py": "def used(): return 1",
        "src/evenhand/other.py": "def unused(): return 1",
        "src/evenhand/parts/__init__.py": "",
        RULE: 'def f():\n    """Words."""\n    return 1\n' + NAMES,
        "src/evenhand/parts/page.html": "<a>",
        "src/evenhand/parts/later.py": "A = 1",
        "src/evenhand/parts/named.py": "A = 1",
        "src/evenhand/parts/unused.py": "A = 1",
        "src/evenhand/cli/__init__.py": 'COMMANDS = {\n    "ask": "ask:ask",\n    "tell": "tell:tell",\n}',
        "src/evenhand/cli/ask.py": "A = 1",
        "src/evenhand/cli/tell.py": "A = 1",
        "src/evenhand/cli/tell_more.py": "A = 1",
        "benchmarks/script.py": "import helper\nimport evenhand as eh\n\ndef run():\n    from evenhand.parts.rule import f\n"
        "    return eh.used()\n",
        "benchmarks/helper.py": "def later():\n    from blocks import inner\n    import evenhand.parts.later\n"
        "SHELL = ['python', '-m', 'evenhand', 'tell']\n",
        "docs/results/blocks/inner.py": "A = 1",
    }
    for name, own in used.items():
        (small.ROOT / name).parent.mkdir(parents=True, exist_ok=True)
        (small.ROOT / name).write_text(own)
    small.STEPS["one"] = f"python benchmarks/script.py && {notes('ran', 'one')}"
    assert small.main([]) == 0
    ran(small)
    (small.ROOT / file).parent.mkdir(parents=True, exist_ok=True)
    (small.ROOT / file).write_text(text)
    capsys.readouterr()
    small.main(["--list", "--only", "one"])
    assert ("TO DO AGAIN: the code" in capsys.readouterr().out) == again
    assert small.main(["--only", "one"]) == 0
    assert ran(small) == ["one"] * again + ["pages"]


def test_a_step_with_another_command_is_run_again(small):
    assert small.main([]) == 0
    ran(small)
    small.STEPS["two"] = notes("ran", "otherwise")
    assert small.main([]) == 0
    assert ran(small) == ["otherwise", "pages"]


@pytest.mark.parametrize(
    ("file", "command"),
    [
        ("tests/test_long.py", "python -m pytest -m soak"),
        ("benchmarks/speed/new.py", "evenhand bench --full"),
    ],
)
def test_what_only_some_steps_use(small, file, command):
    other = "python benchmarks/errata.py"
    before = small.code_of(command, small.ROOT), small.code_of(other, small.ROOT)
    (small.ROOT / file).parent.mkdir(parents=True, exist_ok=True)
    (small.ROOT / file).write_text("@pytest.mark.soak\ndef test(): ...\n")
    assert small.code_of(command, small.ROOT) != before[0]
    assert small.code_of(other, small.ROOT) == before[1]


def test_what_a_process_imports_is_what_its_command_uses():
    """A lot of imports are inside functions: the files counted are more than those of one run, and never fewer."""
    used_code = importlib.import_module("used_code")
    runs = {
        "evenhand simulate": [
            "simulate",
            "synthetic1:I",
            "--strategy",
            "optimistic",
            "--budget",
            "20",
            "--trials",
            "1",
        ],
        "evenhand reproduce": ["reproduce", "fig-convergence", "--trials", "1", "--jobs", "1"],
    }
    program = (
        "import sys\nfrom evenhand.cli import app\ntry:\n    app(sys.argv[1:])\nexcept SystemExit as end:\n    assert not end.code\n"
        "print(*[m.__file__ for n, m in sys.modules.items() if n.startswith('evenhand')], sep='\\n', file=sys.stderr)"
    )
    for command, arguments in runs.items():
        with TemporaryDirectory() as folder:
            whole = [sys.executable, "-c", program, *arguments, "--out", f"{folder}/out"]
            done = subprocess.run(whole, capture_output=True, text=True, check=True)
        imported = {
            Path(line) for line in done.stderr.splitlines() if line.startswith(str(ROOT)) and line.endswith(".py")
        }
        assert len(imported) > 40
        assert imported <= used_code.files_of(command, ROOT)


@pytest.mark.parametrize(
    ("command", "uses", "lacks"),
    [
        ("python docs/results/tables.py", "src/evenhand/experiments/measures.py", "src/evenhand/server/app.py"),
        ("python benchmarks/discussion.py", "src/evenhand/plotting/panels.py", "src/evenhand/experiments/measures.py"),
        (
            "python benchmarks/server.py --only throughput",
            "src/evenhand/server/webhooks.py",
            "src/evenhand/plotting/panels.py",
        ),
        ("python -m pytest -m soak", "tests/campaign/crowd.py", "tests/test_prose.py"),
        ("evenhand curate people.csv", "src/evenhand/report/templates/report_base.html", "src/evenhand/cli/serve.py"),
        ("evenhand demo", "src/evenhand/datasets/files/adult.data.xz", "src/evenhand/server/app.py"),
    ],
)
def test_what_steps_use(command, uses, lacks):
    found = {path.relative_to(ROOT).as_posix() for path in importlib.import_module("used_code").files_of(command, ROOT)}
    assert (ROOT / lacks).exists()
    assert uses in found
    assert lacks not in found


def test_trials_of_other_code_are_kept_apart(small):
    small.STEPS["one"] = f"python benchmarks/rule.py && {notes('kept-{code}', 'trial')}"
    for text in ("A = 1", "A = 2", "A = 2  # said otherwise"):
        (small.ROOT / "benchmarks/rule.py").write_text(text)
        assert small.main(["--only", "one"]) == 0
    assert len(list(small.ROOT.glob("kept-*"))) == 2


def test_the_list_has_every_step(evidence, capsys):
    assert evidence.main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0].removesuffix(" (--images)") for line in lines] == [*evidence.STEPS, *evidence.IMAGES]


def test_a_state_that_cannot_be_read_is_a_sentence(small, capsys):
    assert small.main(["--only", "one"]) == 0
    small.STATE.write_text(small.STATE.read_text()[:20])
    ran(small)
    for arguments in ([], ["--list"], ["--again"]):
        assert small.main(arguments) == 2
        assert "docs/results/evidence.json, which keeps the finished steps, cannot be read" in capsys.readouterr().err
    assert ran(small) == []


def test_missing_images_are_a_sentence(evidence, capfd, monkeypatch, tmp_path):
    monkeypatch.setenv("EVENHAND_DATA", str(tmp_path / "nothing"))
    assert evidence.main(["--only", "utkface trials"]) == 1
    told = capfd.readouterr()
    assert told.err.startswith("UTKFace is not in ")
    assert "EVENHAND_DATA" in told.err
    assert "Traceback" not in told.err
    assert "utkface trials failed with 1" in told.out
    assert "utkface trials" not in evidence.finished()


def test_other_errors_keep_their_traceback(small, capfd):
    small.IMAGES["pictures"] = """python -c 'import sys; print("so far", file=sys.stderr); 1 / 0'"""
    assert small.main(["--only", "pictures"]) == 1
    told = capfd.readouterr().err
    assert told.startswith("so far\nTraceback")
    assert told.endswith("ZeroDivisionError: division by zero\n")


def test_the_case_of_the_demo_is_kept_with_how_it_was_made(evidence):
    before = json.loads((ROOT / "docs/results/demo.json").read_text())
    assert before["run"]["command"] == evidence.DEMO
    shorter = evidence.STEPS["demo"].replace("--trials 30", "--trials 1").replace("--budget 800", "--budget 100")
    (evidence.ROOT / ".venv").mkdir()
    evidence.STEPS["demo"] = shorter
    assert evidence.work("demo") == 0
    after = json.loads((evidence.ROOT / "docs/results/demo.json").read_text())
    assert after["found"].keys() == before["found"].keys()
    assert after["found"]["groups"] == before["found"]["groups"]
    assert after["run"].keys() == before["run"].keys() | {"commit"}


def test_numbers_and_pictures_are_as_the_evidence_left_them(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs/results"))
    evidence = importlib.import_module("evidence")
    assert evidence.changed_since(evidence.left_files()) == []


def test_what_is_changed_by_hand_stays_noticed(small, capsys):
    (small.ROOT / "docs/assets").mkdir()
    assert small.main([]) == 0
    assert small.changed_since(small.left_files()) == []
    for name in ("risks.json", "fig-adult.png"):
        (small.RESULTS / name).write_text("{}")
    # rendering the pages, or another step, does not make it right
    small.STEPS["two"] = "python benchmarks/two.py"
    (small.ROOT / "benchmarks/two.py").write_text("open('docs/results/new.json', 'w').write('{}')")
    assert small.main([]) == 0
    assert "docs/results/risks.json is not as the evidence left it" in capsys.readouterr().out
    assert small.changed_since(small.left_files()) == ["docs/results/fig-adult.png", "docs/results/risks.json"]
    small.STEPS["three"] = "python benchmarks/three.py"
    (small.ROOT / "benchmarks/three.py").write_text("open('docs/results/risks.json', 'w').write('[]')")
    assert small.main([]) == 0
    assert small.changed_since(small.left_files()) == ["docs/results/fig-adult.png"]


def test_judging_twice_changes_nothing(evidence):
    def judged() -> dict[str, bytes]:
        assert evidence.judge_images() == 0
        return {path.name: path.read_bytes() for path in (evidence.ROOT / "docs/results").glob("*.json")}

    first = judged()
    assert judged() == first

"""Runs everything that measures, one step after the other, and renders the pages after each.

Run: python docs/results/evidence.py            (`--list`; `--only STEP …`; `--again` runs finished steps too;
`--images` too; `--pages` runs no step)

A step that is finished on the code as it is is not run again: stopped and started anew, it goes on. Steps that keep trials of
their own go on inside, too. evidence.json has when each ran, on which commit, and a digest of the code that it uses: what its scripts
and commands import, without comments and docstrings.
"""

import argparse
import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from evenhand.errors import InputError
from evenhand.experiments.judging import VALUES, read_values, values_text
from evenhand.files import write_atomically

ROOT = Path(__file__).parents[2]
sys.path += [str(ROOT / "benchmarks"), str(ROOT / "docs/results")]

from used_code import code_of  # noqa: E402

from provenance import commit, today, write_json  # noqa: E402

RESULTS = ROOT / "docs/results"
STATE = RESULTS / "evidence.json"
FILES = RESULTS / "SHA256SUMS"
"""A digest of every file as a run left it, so that nobody changes a number or a picture unnoticed; `sha256sum -c` reads it, too."""
APART = ("page-", "label-studio", "icon", "favicon")
"""Pictures that no step makes."""
TRIALS = ".venv/evidence-trials-{code}"
"""Where `reproduce` keeps its trials; its JSON files and pictures are copied from there. {code}: those of other code are not taken for them."""
SIMULATED = ".venv/evidence-demo.json"
DEMO = (
    "evenhand simulate adult --group age:25,35,45,55 --group sex --scale standard --budget 800 --batch 5 --trials 30 --seed 1 "
    "--strategy optimistic --strategy optimistic:c0=0.5 --strategy uniform --strategy uncurated --trace none --json"
)

STEPS = {
    "reproduction": f"evenhand reproduce --scale paper --seed 3 --image-rounds 0 --out {TRIALS}",
    "quick": "evenhand reproduce --scale quick --image-rounds 0 --out .venv/evidence-quick",
    "tables": "python docs/results/tables.py",
    "demo": f"{DEMO} > {SIMULATED}",
    "pictures": "evenhand demo --out .venv/evidence-demo-{code} > .venv/evidence-demo.txt && "
    "python docs/assets/demo_picture.py .venv/evidence-demo-{code}/train.report.json && python docs/assets/report_picture.py",
    "discussion": "python benchmarks/discussion.py",
    "theory": "python benchmarks/theory.py --out docs",
    "errata": "python benchmarks/errata.py --out docs/results/errata.json",
    "models": "python benchmarks/models.py --out docs/results --keep .venv/evidence-models-{code}.jsonl",
    "risks": "python benchmarks/risks.py --out docs/results",
    "proofs": "python benchmarks/proofs.py --json docs/results/proofs.json",
    "corrections": "python benchmarks/corrections.py --campaigns 200 --forged 2000 --json docs/results/corrections.json",
    "random groups": "python benchmarks/random_groups.py --json docs/results/random-groups.json",
    "unlabelled": "python benchmarks/unlabelled.py --json docs/results/unlabelled.json",
    "big table": "python benchmarks/big_table.py --json docs/results/big-table.json",
    "pools": "python benchmarks/pools.py --json docs/results/pools.json",
    "ledger": "python benchmarks/ledger.py --postgresql own --json docs/results/ledger.json",
    "server": "python benchmarks/server.py --only throughput --json docs/results/server.json",
    "server attacked": "python benchmarks/server.py --only storm fuzz memory --json docs/results/server.json",
    "page": "python benchmarks/page.py --json docs/results/page.json",
    "label studio": "python benchmarks/label_studio.py --json docs/results/label-studio.json",
    "rounds": "python benchmarks/rounds.py --json docs/results/rounds.json",
    "bench": "evenhand bench --full --json --plot docs/assets/growth.svg > docs/results/bench.json",
    "soak": "python -m pytest -m soak -s --junitxml=.venv/soak.xml && python docs/results/soak.py .venv/soak.xml",
}
TRIAL = "python benchmarks/image_trials.py run {} --rounds 100 --evaluate 20 --out docs/results/images-{}.json --keep .venv/evidence-images"
UTKFACE = "utkface --rules A_opt=optimistic:c0=0.1 greedy uniform uncurated --trials 0-4"
REPEAT = (
    "python benchmarks/image_trials.py repeat docs/results/images-{}-trials.json --rule {} --trial {} --rounds {} "
    "--json docs/results/image-repeats.json"
)
REPEATED = (
    ("fashion", "A_opt", 0, 100),
    ("fashion", "A_opt", 5, 30),
    ("fashion", "uniform", 5, 30),
    ("fashion", "greedy", 6, 30),
    ("fashion", "epsilon-greedy:epsilon=0.1", 6, 30),
    ("fashion", "uniform", 7, 30),
    ("cifar", "A_opt", 0, 100),
    ("utkface", "A_opt", 0, 30),
    ("utkface", "uncurated", 2, 30),
)
"""Data, rule, trial and rounds: one trial at least of each commit that made some."""
IMAGES = {
    "fashion trials": TRIAL.format("fashion-mnist --trials 0-9", "fashion-trials"),
    "cifar trials": TRIAL.format("cifar10 --trials 0-4", "cifar-trials"),
    "utkface trials": TRIAL.format(UTKFACE, "utkface-trials"),
    "fashion at full length": "python benchmarks/image_trials.py run fashion-mnist --rules A_opt=optimistic:c0=0.1 uniform --trials 0-1 "
    "--rounds 500 --evaluate 50 --out docs/results/images-fashion-long.json --keep .venv/evidence-images && python docs/assets/long_picture.py",
    "image ceilings": "python benchmarks/image_ceilings.py --json docs/results/image-ceilings.json --keep .venv/evidence-image-ceilings-{code}.json",
    "image costs": "python benchmarks/image_costs.py --json docs/results/image-costs.json",
    "image settings": "python benchmarks/image_settings.py updates --json docs/results/image-settings.json --keep .venv/evidence-image-settings-{code}.json",
    "image trend": "python benchmarks/image_settings.py trend --json docs/results/image-trend.json --keep .venv/evidence-image-trend-{code}.json",
    "image dips": "python benchmarks/image_dips.py --json docs/results/image-dips.json",
    "image repeats": " && ".join(REPEAT.format(*one) for one in REPEATED),
}
"""Hours; a trial that its file has is not run again. {code}: runs of other code are not taken for these."""
CLAIMS = "python benchmarks/image_claims.py --out {}"
AFTER = ("python docs/results/render.py", "evenhand reproduce --judge --out docs/results")
FINE = {"reproduction": (0, 4), "quick": (0, 4)}
"""Exit codes of a finished step, where others than 0 are: all but the images of `reproduce` is done."""
TRACEBACK = "Traceback (most recent call last):"


def run(commands: str, *, brief: bool = False) -> int:
    """Run commands of this environment from the top folder; a file after > appears when its command has ended well.

    Args:
        commands: joined by &&, the first that fails is the last.
        brief: of bad input, such as data that are not there, only the sentence is printed; not with a file.

    Returns:
        0, or the exit code of the one that failed; of one that was killed, 128 and the signal, as a shell has it.
    """
    for command in commands.split(" && "):
        text, _, file = command.partition(" > ")
        print("$", command, flush=True)
        code, output = run_one(shlex.split(text), capture=bool(file), brief=brief)
        if code:
            return code if code > 0 else 128 - code
        if file:
            write_atomically(ROOT / file, partial(Path.write_bytes, data=output))
    return 0


def run_one(words: list[str], *, capture: bool, brief: bool) -> tuple[int, bytes]:
    """The code of a command, and what it printed where that is captured."""
    program = [sys.executable] if words[0] == "python" else [sys.executable, "-m", "evenhand"]
    command = [*program, *words[1:]]
    if not brief:
        done = subprocess.run(command, cwd=ROOT, check=False, stdout=subprocess.PIPE if capture else None)
        return done.returncode, done.stdout or b""
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, errors="replace") as going:
        held = pass_on(going.stderr or ())
    print(explained(held) if going.returncode else "".join(held), end="", file=sys.stderr, flush=True)
    return going.returncode, b""


def pass_on(lines: Iterable[str]) -> list[str]:
    """Print lines as they come, but for a traceback and what follows it, which are returned."""
    held: list[str] = []
    for line in lines:
        if held or line.startswith(TRACEBACK):
            held.append(line)
        else:
            print(line, end="", file=sys.stderr, flush=True)
    return held


def explained(traceback: Iterable[str]) -> str:
    """A traceback; of an error that Evenhand raises on purpose, its sentence alone, since that says what to do."""
    text = "".join(traceback)
    *_, sentence = re.split(r"^evenhand\.errors\.\w+: ", text, flags=re.MULTILINE)
    # an error of another kind may have come out of it
    return text if TRACEBACK in sentence else sentence


def take_over(there: Path) -> None:
    """Copy what `reproduce` found in a folder into docs/results; entries that were not run, such as images, stay."""
    new, old = (json.loads((folder / "results.json").read_text(encoding="utf-8")) for folder in (there, RESULTS))
    found = {name: entry for name, entry in new["experiments"].items() if entry["status"] != "skipped"}
    new["experiments"] = old["experiments"] | found
    (RESULTS / "results.json").write_text(json.dumps(new, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (RESULTS / VALUES).write_text(values_text(read_values(RESULTS) | read_values(there)), encoding="utf-8")
    for picture in there.glob("*.png"):
        (RESULTS / picture.name).write_bytes(picture.read_bytes())


def keep_demo() -> None:
    """Put what the demo's case gave into docs/results, with its command and the rest."""
    found = json.loads((ROOT / SIMULATED).read_text(encoding="utf-8"))
    made = {"command": DEMO, "date": today(), "commit": commit(ROOT), "versions": found["versions"]}
    shown = ("source", "budget", "trials", "seed", "groups", "strategies", "differences")
    write_json(RESULTS / "demo.json", {"run": made, "found": {key: found[key] for key in shown}})


def keep_time(seconds: float) -> None:
    """Put how long the quick scale took into docs/results."""
    names = ("evenhand", "numpy", "scipy", "scikit-learn")
    versions = {"python": platform.python_version()} | {name: version(name) for name in names}
    made = {"command": STEPS["quick"].partition(" --out")[0], "date": today(), "commit": commit(ROOT), "seed": 0}
    write_json(
        RESULTS / "quick.json", made | {"cores": os.cpu_count(), "versions": versions, "seconds": round(seconds, 1)}
    )


def judge_images() -> int:
    """Figures, table and verdicts of the image trials that are there, into docs/results."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        for file in ("results.json", VALUES):
            shutil.copy(RESULTS / file, folder)
        code = run(CLAIMS.format(folder))
        if code == 0:
            take_over(folder)
    return code


def pages() -> int:
    """Judge the image trials, render the pages and hold every verdict against its test: all of it, the first failure counts."""
    codes = [judge_images(), *(run(command) for command in AFTER)]
    return next((code for code in codes if code), 0)


def digests() -> dict[str, str]:
    """Of the numbers and pictures that steps make."""
    paths = [path for path in RESULTS.iterdir() if path.suffix in (".json", ".png") and path != STATE]
    paths += [path for path in (ROOT / "docs/assets").glob("*.*g") if not path.name.startswith(APART)]
    names = {path.relative_to(ROOT).as_posix(): path for path in sorted(paths)}
    return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in names.items()}


def changed_since(kept: dict[str, str]) -> list[str]:
    """The files that are not as a run left them."""
    return [name for name, own in digests().items() if kept.get(name) != own]


def left_files() -> dict[str, str]:
    """The digests that the last runs kept."""
    lines = FILES.read_text(encoding="utf-8").splitlines() if FILES.exists() else []
    return {name: own for own, name in (line.split("  ", 1) for line in lines)}


def finished() -> dict[str, dict[str, str]]:
    """The steps that are finished, each with when, on which commit and with which code."""
    if not STATE.exists():
        return {}
    try:
        return {name: dict(one) for name, one in json.loads(STATE.read_text(encoding="utf-8")).items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise InputError(
            f"{STATE.relative_to(ROOT)}, which keeps the finished steps, cannot be read ({error!r}): delete it, and all steps "
            "count as to do; steps that keep trials of their own still go on from these"
        ) from error


def is_current(one: dict[str, str] | None, command: str) -> bool:
    """Whether a step is finished, on the code as it is."""
    return one is not None and (one["command"], one["code"]) == (command, code_of(command, ROOT))


def told(one: dict[str, str] | None, command: str) -> str:
    """What is known of a step, and whether the code is another by now."""
    if one is None:
        return "to do"
    text = f"finished {one['date']} on commit {one['commit']}"
    return text if is_current(one, command) else f"{text}, TO DO AGAIN: the code that it uses has changed since"


def work(name: str) -> int:
    """Run a step, and put what it found into docs/results; 0 if it is finished."""
    command = (STEPS | IMAGES)[name]
    digest_now = code_of(command, ROOT)
    if name == "quick":
        # what is timed is all of it
        shutil.rmtree(ROOT / ".venv/evidence-quick", ignore_errors=True)
    started = time.monotonic()
    code = run(command.replace("{code}", digest_now), brief=name in IMAGES)
    if code not in FINE.get(name, (0,)):
        print(f"{name} failed with {code}: the same command goes on from here, --only runs other steps")
        return code
    if name == "reproduction":
        take_over(ROOT / TRIALS.replace("{code}", digest_now))
    if name == "demo":
        keep_demo()
    if name == "quick":
        keep_time(time.monotonic() - started)
    return 0


def work_through(names: list[str], again: bool) -> int:
    """Run the steps that are not finished, or all of them again, and render the pages after each."""
    shown, before, kept = None, digests(), left_files()
    for name in changed_since(kept) if kept else ():
        print(f"{name} is not as the evidence left it: its step makes it anew with --again")
    if again:
        # at once: stopped, it goes on with what is left when it is started without
        write_json(STATE, {name: one for name, one in finished().items() if name not in names})
    for name in names:
        command, one = (STEPS | IMAGES)[name], finished().get(name)
        if is_current(one, command):
            print(f"{name}: {told(one, command)}")
            continue
        # before it runs: its own code, whatever is changed meanwhile
        made = {"commit": commit(ROOT), "code": code_of(command, ROOT), "command": command}
        code = work(name)
        if code:
            return code
        write_json(STATE, finished() | {name: {"date": f"{datetime.now(UTC):%Y-%m-%d %H:%M UTC}"} | made})
        # a page that fails must not stop the measuring: the last rendering, of everything, decides
        shown = pages()
        keep_files(before, kept)
    if shown is None:
        shown = pages()
        keep_files(before, kept)
    return shown


def keep_files(before: dict[str, str], kept: dict[str, str]) -> None:
    """Keep the digests of what this run changed; a file that was changed by hand before stays noticed."""
    left = {name: own if before.get(name) != own else kept.get(name, own) for name, own in digests().items()}
    FILES.write_text("".join(f"{own}  {name}\n" for name, own in left.items()), encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Run what is not finished."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="what is finished, on which commit, and what is to do")
    parser.add_argument("--only", nargs="+", choices=[*STEPS, *IMAGES], metavar="STEP", help="these steps, see --list")
    parser.add_argument("--again", action="store_true", help="forget that the chosen steps are finished")
    parser.add_argument("--images", action="store_true", help="the image steps, too")
    parser.add_argument("--pages", action="store_true", help="run no step: judge what is there and render the pages")
    given = parser.parse_args(arguments)
    try:
        if given.list:
            for name in given.only or [*STEPS, *IMAGES]:
                command = (STEPS | IMAGES)[name]
                print(f"{name}{' (--images)' * (name in IMAGES)}: {told(finished().get(name), command)}: {command}")
            return 0
        chosen = given.only or [*STEPS, *(IMAGES if given.images else ())]
        return work_through([] if given.pages else chosen, given.again)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())

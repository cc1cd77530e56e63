"""Runs everything that measures, one step after the other, and renders the pages after each.

Run: python docs/results/evidence.py            (`--list`; `--only STEP …`; `--again` forgets what is finished;
`--images` too; `--pages` runs no step)

A step that is finished is not run again: stopped and started anew, it goes on. Steps that keep trials of their own go on
inside, too.
"""

import argparse
import json
import shlex
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from evenhand.experiments.judging import VALUES, read_values, values_text

ROOT = Path(__file__).parents[2]
STATE = ROOT / ".venv/evidence.json"
TRIALS = ".venv/evidence-trials"
"""Where `reproduce` keeps its trials; its JSON files and pictures are copied from there."""

STEPS = {
    "reproduction": f"evenhand reproduce --scale paper --out {TRIALS}",
    "tables": "python docs/results/tables.py",
    "discussion": "python benchmarks/discussion.py",
    "theory": "python benchmarks/theory.py --out docs",
    "errata": "python benchmarks/errata.py --out docs/results/errata.json",
    "models": "python benchmarks/models.py --out docs/results",
    "risks": "python benchmarks/risks.py --out docs/results",
    "proofs": "python benchmarks/proofs.py --json docs/results/proofs.json",
    "corrections": "python benchmarks/corrections.py --campaigns 200 --forged 2000 --json docs/results/corrections.json",
    "random groups": "python benchmarks/random_groups.py --json docs/results/random-groups.json",
    "unlabelled": "python benchmarks/unlabelled.py --json docs/results/unlabelled.json",
    "big table": "python benchmarks/big_table.py --json docs/results/big-table.json",
    "pools": "python benchmarks/pools.py --json docs/results/pools.json",
    "ledger": "python benchmarks/ledger.py --postgresql own --json docs/results/ledger.json",
    "server": "python benchmarks/server.py --json docs/results/server.json",
    "page": "python benchmarks/page.py --json docs/results/page.json",
    "label studio": "python benchmarks/label_studio.py --json docs/results/label-studio.json",
    "rounds": "python benchmarks/rounds.py --json docs/results/rounds.json",
    "bench": "evenhand bench --full --json > docs/results/bench.json",
    "soak": "python -m pytest -m soak -s --junitxml=.venv/soak.xml && python docs/results/soak.py .venv/soak.xml",
}
TRIAL = "python benchmarks/image_trials.py run {} --rounds 100 --evaluate 20 --out docs/results/images-{}-trials.json --keep .venv/evidence-images"
UTKFACE = "utkface --rules A_opt=optimistic:c0=0.1 greedy uniform uncurated --trials 0-2"
IMAGES = {
    "fashion trials": TRIAL.format("fashion-mnist --trials 0-9", "fashion"),
    "cifar trials": TRIAL.format("cifar10 --trials 0-4", "cifar"),
    "utkface trials": TRIAL.format(UTKFACE, "utkface"),
    "fashion at full length": "python benchmarks/image_trials.py run fashion-mnist --rules A_opt=optimistic:c0=0.1 uniform --trials 1 "
    "--rounds 500 --evaluate 50 --out docs/results/images-fashion-long.json --keep .venv/evidence-images",
    "image settings": "python benchmarks/image_settings.py updates --json docs/results/image-settings.json",
    "image trend": "python benchmarks/image_settings.py trend --json docs/results/image-trend.json",
    "image dips": "python benchmarks/image_dips.py --json docs/results/image-dips.json",
    "image repeats": "python benchmarks/image_trials.py repeat docs/results/images-fashion-trials.json --rule A_opt --trial 0 --rounds 30 "
    "--json docs/results/image-repeats.json",
}
"""Hours; a trial that the file has is not run again."""
CLAIMS = "python benchmarks/image_claims.py --out {}"
AFTER = ("python docs/results/render.py", "evenhand reproduce --judge --out docs/results")
NO_DATA = 4


def run(commands: str) -> int:
    """Run commands of this environment from the top folder; a file after > appears when its command has ended well."""
    for command in commands.split(" && "):
        text, _, file = command.partition(" > ")
        words = shlex.split(text)
        program = [sys.executable] if words[0] == "python" else [sys.executable, "-m", "evenhand"]
        print("$", command, flush=True)
        done = subprocess.run([*program, *words[1:]], cwd=ROOT, check=False, stdout=subprocess.PIPE if file else None)
        if done.returncode:
            return done.returncode
        if file:
            (ROOT / file).write_bytes(done.stdout)
    return 0


def take_over(there: Path) -> None:
    """Copy what `reproduce` found in a folder into docs/results; entries that were not run, such as images, stay."""
    here = ROOT / "docs/results"
    new, old = (json.loads((folder / "results.json").read_text(encoding="utf-8")) for folder in (there, here))
    found = {name: entry for name, entry in new["experiments"].items() if entry["status"] != "skipped"}
    new["experiments"] = old["experiments"] | found
    (here / "results.json").write_text(json.dumps(new, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (here / VALUES).write_text(values_text(read_values(here) | read_values(there)), encoding="utf-8")
    for picture in there.glob("*.png"):
        (here / picture.name).write_bytes(picture.read_bytes())


def judge_images() -> int:
    """Figures, table and verdicts of the image trials that are there, into docs/results."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        for file in ("results.json", VALUES):
            shutil.copy(ROOT / "docs/results" / file, folder)
        if (ROOT / TRIALS / "trials").exists():
            (folder / "trials").symlink_to(ROOT / TRIALS / "trials")
        code = run(CLAIMS.format(folder))
        if code == 0:
            take_over(folder)
    return code


def main(arguments: list[str] | None = None) -> int:
    """Run what is not finished."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--only", nargs="+", choices=[*STEPS, *IMAGES])
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--images", action="store_true")
    parser.add_argument("--pages", action="store_true", help="run no step: judge what is there and render the pages")
    given = parser.parse_args(arguments)
    steps = STEPS | (IMAGES if given.images else {})
    chosen = [] if given.pages else given.only or list(steps)
    done = json.loads(STATE.read_text(encoding="utf-8")) if STATE.exists() and not given.again else {}
    for name in chosen:
        command = (STEPS | IMAGES)[name]
        if given.list or name in done:
            print(f"{name}: {done.get(name, 'to do')}: {command}")
            continue
        code = run(command)
        # without image data all else of `reproduce` is done
        if code not in (0, NO_DATA):
            print(f"{name} failed with {code}: the same command goes on from here")
            return code
        if name == "reproduction":
            take_over(ROOT / TRIALS)
        done[name] = f"finished {datetime.now(UTC):%Y-%m-%d %H:%M UTC}"
        STATE.parent.mkdir(exist_ok=True)
        STATE.write_text(json.dumps(done, indent=1) + "\n", encoding="utf-8")
    return 0 if given.list else judge_images() or max(run(command) for command in AFTER)


if __name__ == "__main__":
    sys.exit(main())

"""Runs the measurements that are named, keeps each result with what made it, and renders the pages.

    python -m evidence                      lists what there is and what it costs
    python -m evidence theory errata        runs these two
    python -m evidence all                  runs everything: a day

A result is one JSON file in evidence/results with the command, date, commit, versions and seconds; the newest replaces the one before it.
"""

import argparse
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from evidence import render

ROOT = Path(__file__).parents[1]
RESULTS, PICTURES = ROOT / "evidence/results", ROOT / "docs/assets"
PACKAGES = ("evenhand", "numpy", "scipy", "scikit-learn", "pandas", "torch")
REPRODUCE = "evenhand reproduce {} --scale paper --jobs 2 --out evidence/results"


class Measurement(NamedTuple):
    """What is measured, minutes on two cores, and the command; without one, the script of that name in this folder."""

    about: str
    minutes: float
    command: str = ""


MEASUREMENTS = {
    "reproduction": Measurement(
        "the paper's figures on synthetic data and tables, with their verdicts", 20,
        " && ".join(
            REPRODUCE.format(figures)
            for figures in (
                "fig-mixture-curve fig-convergence fig-over-exploration fig-adult fig-trend --seed 3", "fig-german --seed 4",
            )
        ),
    ),
    "image_figures": Measurement(
        "the paper's figures on images, 100 of 500 rounds", 400,
        " && ".join(
            REPRODUCE.format(f"{figures} --image-rounds 100 --trials {trials}")
            for figures, trials in (
                ("fig-fashion fig-fashion-groups fig-fashion-mixture", 10), ("fig-cifar fig-cifar-groups", 5),
                ("fig-utkface fig-utkface-groups", 5),
            )
        ),
    ),
    "images": Measurement("networks on images: every group, the paper's length, ways to update, ceilings", 500),
    "synthetic2": Measurement("how SyntheticModel2 was chosen", 2),
    "tables": Measurement("rules on Adult and German at several budgets; the case of the demo", 15),
    "value": Measurement("what A_opt buys on thirteen sources, c0, and the model that is chosen at the end", 16),
    "minimax": Measurement("`Minimax`: settings, published methods, fairlearn", 10),
    "peers": Measurement("the rule of Abernethy et al. over a fixed pool, beside A_opt", 3),
    "discussion": Measurement("what the paper discusses", 2),
    "theory": Measurement("promises beside simulated runs", 5),
    "errata": Measurement("a check for each slip of the paper", 2),
    "risks": Measurement("steering by misses", 1),
    "proofs": Measurement("whether certificates hold, and how many labels a proof takes", 16),
    "corrections": Measurement("certificates under attack, and what corrections cost", 20),
    "random_groups": Measurement("intervals of the report where groups are drawn by lot", 2),
    "speed": Measurement("simulations and refits beside named baselines", 8, "python -m benchmarks.speed --full"),
    "rounds": Measurement("where the time of a round goes", 3, "python -m benchmarks.rounds"),
    "image_costs": Measurement("the cost of a round on images", 2, "python -m benchmarks.image_costs"),
    "ledger": Measurement("durable steps beside bare transactions", 5, "python -m benchmarks.ledger --postgresql own"),
    "pools": Measurement("pools of millions of rows", 8, "python -m benchmarks.pools"),
    "big_table": Measurement("a table larger than memory", 3, "python -m benchmarks.big_table"),
    "unlabelled": Measurement("a table without labels, round by round", 4, "python -m benchmarks.unlabelled"),
    "server": Measurement("deliveries a second, kills, random requests, abuse", 30, "python -m benchmarks.server"),
    "page": Measurement("the page of a large campaign in a browser", 3, "python -m benchmarks.page"),
    "label_studio": Measurement("a real Label Studio, through kills", 16, "python -m benchmarks.label_studio"),
}  # fmt: skip


def stamp(command: str) -> dict[str, Any]:
    """What goes with a result: the command, the day, the commit (with `-dirty` where files were changed), cores and versions."""
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except ModuleNotFoundError:
            continue
    made = {
        "command": command,
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "commit": described.stdout.strip() or "unknown",
    }
    return made | {"cores": os.cpu_count(), "versions": versions}


def run(name: str, *, small: bool, out: Path) -> None:
    """Measure, and write the result with what made it."""
    one, file = MEASUREMENTS[name], out / f"{name}.json"
    made, started = stamp(f"python -m evidence {name}"), time.perf_counter()
    if one.command.startswith("evenhand reproduce"):
        reproduce(name, one.command, made)
        return
    if one.command:
        words = shlex.split(one.command)[1:]
        subprocess.run([sys.executable, *words, "--json", str(file)], cwd=ROOT, check=True)
        found = json.loads(file.read_text("utf-8"))
    else:
        script = import_module(f"evidence.{name}")
        found = script.measure(small)
        if hasattr(script, "draw") and not small:
            script.draw(found, PICTURES)
    made["seconds"] = round(time.perf_counter() - started)
    write(file, made, found)


def reproduce(name: str, commands: str, made: dict[str, Any]) -> None:
    """The paper's figures: their own command knows what is finished, and writes its own files."""
    file = RESULTS / "results.json"
    before = json.loads(file.read_text("utf-8")).get("made", {})
    for command in commands.split(" && "):
        subprocess.run([sys.executable, "-m", *shlex.split(command)], cwd=ROOT, check=True)
    write(file, before | {name: made}, json.loads(file.read_text("utf-8")))
    for picture in RESULTS.glob("fig-*.png"):
        shutil.copy(picture, PICTURES)


def write(file: Path, made: dict[str, Any], found: dict[str, Any]) -> None:
    """A result as text that can be compared line by line, with what made it first."""
    found.pop("made", None)
    text = json.dumps({"made": made, **found}, indent=1, ensure_ascii=False)
    file.write_text(text + "\n", "utf-8")


def main(arguments: list[str] | None = None) -> None:
    """Run what is named, or list what there is; then the pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument(
        "--small", action="store_true", help="the smallest settings, to see that a script works; needs --out"
    )
    parser.add_argument("--out", type=Path, default=RESULTS, help="a folder other than evidence/results")
    given = parser.parse_args(arguments)
    if unknown := [name for name in given.names if name not in ("all", *MEASUREMENTS)]:
        parser.error(f"there is no {unknown[0]!r}: name some of {', '.join(MEASUREMENTS)}, or all")
    if given.small and given.out == RESULTS:
        parser.error("--small needs --out: its figures are no results")
    for name in MEASUREMENTS if "all" in given.names else given.names:
        print(f"{name}: {MEASUREMENTS[name].about}, about {MEASUREMENTS[name].minutes:g} minutes", flush=True)
        run(name, small=given.small, out=given.out)
    if not given.names:
        print('Name what to run, e.g. make evidence EVIDENCE="theory errata", or all. Minutes on two cores:')
        print("\n".join(f"{one.minutes:5g}  {name:14} {one.about}" for name, one in MEASUREMENTS.items()))
    if given.out == RESULTS:
        render.write_pages()


if __name__ == "__main__":
    main()

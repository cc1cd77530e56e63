"""Trials of image experiments, one after the other, each kept as soon as it is finished; rules compared in pairs.

python benchmarks/image_trials.py run fashion-mnist --trials 5-9 --rounds 100 --out FILE.json --keep FOLDER
python benchmarks/image_trials.py summary FILE.json FILE.json --base uniform
python benchmarks/image_trials.py repeat FILE.json --rule A_opt --trial 0 --rounds 30 --json docs/results/image-repeats.json

A run that was killed is started by the same command: what is in FILE is skipped, a checkpoint in FOLDER gone on from.
Files have the form of docs/results/images-fashion-trials.json; `summary` takes several files of one data set together.
`repeat` runs a kept trial again with the code as it is now, for some rounds, and says whether it gives the same numbers.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from evenhand import datasets
from evenhand.claims.paired import paired
from evenhand.engine.run import Record, Settings, run_block
from evenhand.errors import InputError
from evenhand.files import write_atomically
from evenhand.simulation.metrics import share, worst
from evenhand.sources.images.images import Images
from evenhand.strategies import parse_strategy
from evenhand.strategies.decision import KINDS
from provenance import commit

RULES = ("A_opt=optimistic:c0=0.1", "greedy", "uniform", "epsilon-greedy:epsilon=0.1")
ABOUT = (
    "Lists run over rounds, inner lists over groups. counts: training examples so far; about as many validate: a batch of "
    "100 has 50 of each, but for one more or less where a half of a group's images was used up and is drawn again; mixture: their shares; chosen: a position in groups; kind: a position in kinds; accuracy, worst: on the "
    "test set, null where not tested; final.half: the network after the last round, trained on the training half; "
    "final.all: after more updates on all labels. seconds: wall clock, pauses and a shared core included; cpu_seconds: "
    "of the process. resumed: the run went on from a checkpoint, both times are those of its last part only."
)
Run = dict[str, Any]


def run_trials(
    source: Images,
    rules: Iterable[str],
    trials: Sequence[int],
    settings: Settings,
    *,
    out: Path,
    keep: Path,
    every: int = 25,
    tick: Callable[[], None] | None = None,
) -> None:
    """Every trial that the file does not have yet, all rules of a trial before the next one.

    Args:
        source: the images; its own network is trained, one step a round, on one thread.
        rules: strategies as text, with `LABEL=` before it to set a label.
        trials: their numbers.
        settings: of every run.
        out: the file that grows by one run at a time.
        keep: the folder of the checkpoints.
        every: rounds between two checkpoints.
        tick: called after every round.
    """
    header = header_of(source, settings)
    named = {parse_strategy(text)[0]: text for text in rules}
    for trial in trials:
        for label, text in named.items():
            if (label, trial) not in {(run["rule"], run["trial"]) for run in read(out, header)["runs"]}:
                run = one_run(source, text, trial, settings, keep=keep, every=every, tick=tick)
                append(out, header, run)
                print(f"{run['finished']} {source.name} {label} {trial}: {run['final_worst']}", flush=True)


def one_run(
    source: Images,
    text: str,
    trial: int,
    settings: Settings,
    *,
    keep: Path,
    every: int = 25,
    tick: Callable[[], None] | None = None,
) -> Run:
    """One trial of one rule from its checkpoint, or from the start, to the end."""
    label, strategy = parse_strategy(text)
    folder = keep / re.sub(r"[^A-Za-z0-9.]+", "-", f"{source.name} {label} {settings.rounds} {settings.seed} {trial}")
    resumed = any(folder.glob("*.pt"))
    # the paper's update by name: what users get by default may be another
    learner = source.default_learner(update="step", checkpoint=folder, checkpoint_every=every, threads=1)
    # before it runs: code may be changed meanwhile
    made_with, started, spent = versions(), datetime.now(UTC), time.process_time()
    record = run_block(source, strategy, learner, settings, [trial], tick=tick)
    facts = {
        "rule": label,
        "strategy": text,
        "trial": trial,
        "seed": settings.seed,
        "rounds": len(record.labels),
        "evaluate": settings.evaluate,
        "started": _stamp(started),
        "finished": _stamp(datetime.now(UTC)),
        "resumed": resumed,
        "seconds": round(record.seconds, 1),
        "cpu_seconds": round(time.process_time() - spent, 1),
        "versions": made_with,
        "command": f"python benchmarks/image_trials.py run {source.name} --rules {text} --trials {trial} "
        f"--rounds {settings.rounds} --seed {settings.seed} --evaluate {settings.evaluate} --out FILE --keep FOLDER",
    }
    return facts | curves(record)


def curves(record: Record) -> Run:
    """What a record of one trial says, as lists; null where nothing was measured."""
    half, everything = record.accuracy[-1, 0], record.final_accuracy[0]
    final = {"half": half, "all": everything}
    return {
        "final": {name: dict(zip(record.groups, _numbers(found), strict=True)) for name, found in final.items()},
        "final_worst": {name: _numbers(worst(found)) for name, found in final.items()},
        "labels": record.labels[:, 0].tolist(),
        "chosen": record.chosen[:, 0].tolist(),
        "kind": record.kind[:, 0].tolist(),
        "counts": record.counts[:, 0].tolist(),
        "mixture": _numbers(share(record.counts[:, 0]), 4),
        "validation_loss": _numbers(record.validation_loss[:, 0]),
        "accuracy": _numbers(record.accuracy[:, 0]),
        "worst": _numbers(worst(record.accuracy[:, 0])),
    }


def _numbers(values: Any, digits: int = 6) -> Any:
    rounded = np.array(np.round(values, digits)).astype(object)
    rounded[np.isnan(values)] = None
    return rounded.tolist()


def _stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def versions() -> dict[str, str]:
    """What a run was made with; the commit ends with -dirty where code was changed."""
    packages = {name: version(name) for name in ("evenhand", "torch", "numpy")}
    return packages | {"python": platform.python_version(), "commit": commit()}


def header_of(source: Images, settings: Settings) -> dict[str, Any]:
    """What all runs of a file share."""
    return {
        "data": source.name,
        "groups": list(source.groups),
        "kinds": list(KINDS),
        "settings": {
            "batch": settings.batch,
            "warmup": settings.warmup,
            "rounds": settings.rounds,
            "budget": settings.budget,
            "validation": settings.validation,
            "update": "step",
            "seed": settings.seed,
        },
        "about": ABOUT,
    }


def read(path: Path, header: dict[str, Any]) -> dict[str, Any]:
    """The file, or a new one; refused where its runs were made otherwise."""
    if not path.exists():
        return header | {"runs": []}
    kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    for name in ("data", "groups", "settings"):
        if kept[name] != header[name]:
            raise InputError(f"{path} has the {name} {kept[name]}, these runs {header[name]}: name another file")
    return kept


def append(path: Path, header: dict[str, Any], run: Run) -> None:
    """Put a run into the file in one step: whoever reads it finds the old file or the new one."""
    kept = read(path, header)
    kept["runs"].append(run)
    text = json.dumps(kept, ensure_ascii=False, separators=(",", ":")) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, partial(Path.write_text, data=text, encoding="utf-8"))


def summary(paths: Sequence[Path], base: str) -> list[dict[str, Any]]:
    """Worst-group accuracy of every rule and its paired difference to a base, with Student's 95 % interval.

    Measures: the network after the last round (`half`), the final one (`all`), and the mean over the rounds that all
    runs tested (`rounds`).
    """
    files = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    if len({json.dumps([file[name] for name in ("data", "groups", "settings")]) for file in files}) > 1:
        raise InputError(f"{', '.join(map(str, paths))} are not of one data set with the same settings")
    runs = {(run["rule"], run["trial"]): run for file in files for run in file["runs"]}
    rules = list(dict.fromkeys(rule for rule, _ in runs))
    if base not in rules:
        raise InputError(f"no run is of the base {base!r}: the rules are {', '.join(rules)}")
    tested = np.all([[value is not None for value in run["worst"]] for run in runs.values()], axis=0)
    rows = []
    for rule in rules:
        trials = sorted(trial for name, trial in runs if name == rule and (base, trial) in runs)
        for measure in ("half", "all", "rounds"):
            ours, theirs = (
                np.array([_measured(runs[name, trial], measure, tested) for trial in trials]) for name in (rule, base)
            )
            row = {"data": files[0]["data"], "rule": rule, "measure": measure, "trials": trials}
            difference = paired(ours, theirs) if rule != base else None
            rows.append(row | {"mean": float(ours.mean()) if trials else None, "difference": difference})
    return rows


def _measured(run: Run, measure: str, tested: Any) -> float:
    if measure != "rounds":
        return float(run["final_worst"][measure])
    return float(np.array(run["worst"], dtype=float)[tested].mean())


def show(rows: list[dict[str, Any]], base: str) -> None:
    """The summary as lines, differences in points."""
    for row in rows:
        line = f"{row['data']:14s} {row['rule']:28s} {row['measure']:7s} {len(row['trials']):2d} trials"
        line += "" if row["mean"] is None else f"  {row['mean']:.4f}"
        if (found := row["difference"]) is not None:
            line += f"  − {base}: {100 * found.mean:+.2f} [{100 * found.low:+.2f}, {100 * found.high:+.2f}] points"
        print(line)


COMPARED = ("labels", "chosen", "kind", "counts", "mixture", "validation_loss", "accuracy")


def repeat(path: Path, source: Images, rule: str, trial: int, rounds: int) -> dict[str, Any]:
    """Run a kept trial again, or its first rounds: the first round in which anything differs, if one does.

    Choices and counts are compared in every round, validation losses and test accuracies where both runs have them; of a
    whole trial also the final network, trained on all labels.
    """
    file = json.loads(path.read_text(encoding="utf-8"))
    kept = next((run for run in file["runs"] if (run["rule"], run["trial"]) == (rule, trial)), None)
    if kept is None:
        raise InputError(f"{path} has no trial {trial} of {rule!r}")
    if not 1 <= rounds <= kept["rounds"]:
        raise InputError(f"--rounds must lie between 1 and {kept['rounds']}, not {rounds}")
    settings, whole = file["settings"], rounds == kept["rounds"]
    shorter = Settings(
        2 * settings["batch"] * rounds,
        batch=settings["batch"],
        warmup=settings["warmup"],
        validation=settings["validation"],
        seed=settings["seed"],
        evaluate=kept["evaluate"] if whole else rounds,
    )
    without = {} if whole else {"final_updates": 0}
    learner = source.default_learner(update=settings["update"], threads=1, **without)
    spent = time.process_time()
    again = curves(run_block(source, parse_strategy(kept["strategy"])[1], learner, shorter, [trial]))
    pairs = ((r, name, kept[name][r], again[name][r]) for r in range(rounds) for name in COMPARED)
    differs = [(r, name) for r, name, a, b in pairs if a != b and None not in _flat(a, b)]
    differs += [(rounds - 1, "final")] if whole and again["final"] != kept["final"] else []
    tested = [r for r in range(rounds) if kept["worst"][r] is not None and again["worst"][r] is not None]
    return {
        "data": file["data"],
        "file": path.name,
        "rule": rule,
        "trial": trial,
        "rounds": rounds,
        "tested": len(tested),
        "whole": whole,
        "same": not differs,
        "differs_from": differs[0][0] + 1 if differs else None,
        "differs_in": sorted({name for _, name in differs}),
        "of": kept["versions"]["commit"],
        "versions": versions(),
        "date": _stamp(datetime.now(UTC))[:10],
        "cpu_seconds": round(time.process_time() - spent, 1),
        "command": f"python benchmarks/image_trials.py repeat {path} --rule {rule} --trial {trial} --rounds {rounds}",
    }


def _flat(*values: Any) -> list[Any]:
    return [inner for value in values for inner in (value if isinstance(value, list) else [value])]


def keep_finding(path: Path, found: dict[str, Any]) -> None:
    """Put a finding into the file, in place of an earlier one of the same trial."""
    kept = json.loads(path.read_text(encoding="utf-8"))["repeats"] if path.exists() else []
    same = ("data", "rule", "trial")
    others = [one for one in kept if any(one[name] != found[name] for name in same)]
    text = json.dumps({"repeats": [*others, found]}, indent=1, ensure_ascii=False) + "\n"
    write_atomically(path, partial(Path.write_text, data=text, encoding="utf-8"))


def load(name: str, data_dir: Path | None, **settings: Any) -> Images:
    """A data set by its name; `utkface:crop_part1` is UTKFace with another split than the random one."""
    data, _, split = name.partition(":")
    if split:
        return datasets.utkface(data_dir, split=split, name=name, **settings)
    source: Images = datasets.load(data, data_dir=data_dir, **settings)
    return source


def numbers(text: str) -> list[int]:
    """`0,3,5-7` as 0, 3, 5, 6, 7."""
    ends = [part.split("-") for part in text.split(",")]
    return [number for first, *last in ends for number in range(int(first), int(last[0] if last else first) + 1)]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run")
    runs.add_argument("data", help="fashion-mnist, cifar10, utkface or utkface:crop_part1, another split")
    runs.add_argument("--rules", nargs="+", default=list(RULES), metavar="RULE")
    runs.add_argument("--trials", type=numbers, default=numbers("0-4"), help="numbers, such as 0,3,5-7")
    runs.add_argument("--rounds", type=int, default=100)
    runs.add_argument("--seed", type=int, default=0)
    runs.add_argument("--evaluate", type=int, default=100, help="rounds that are tested")
    runs.add_argument("--out", type=Path, required=True)
    runs.add_argument("--keep", type=Path, required=True, help="the folder of the checkpoints")
    runs.add_argument("--data-dir", type=Path)
    told = commands.add_parser("summary")
    told.add_argument("files", nargs="+", type=Path)
    told.add_argument("--base", default="uniform")
    again = commands.add_parser("repeat")
    again.add_argument("file", type=Path)
    again.add_argument("--rule", default="A_opt")
    again.add_argument("--trial", type=int, default=0)
    again.add_argument("--rounds", type=int, default=30)
    again.add_argument("--json", type=Path, help="the file that keeps the finding")
    again.add_argument("--data-dir", type=Path)
    given = parser.parse_args(arguments)
    if given.command == "repeat":
        name = json.loads(given.file.read_text(encoding="utf-8"))["data"]
        source = load(name, given.data_dir)
        found = repeat(given.file, source, given.rule, given.trial, given.rounds)
        print(json.dumps(found, indent=1, ensure_ascii=False))
        if given.json is not None:
            keep_finding(given.json, found)
        return
    if given.command == "summary":
        show(summary(given.files, given.base), given.base)
        return
    source = load(given.data, given.data_dir)
    settings = Settings(100 * given.rounds, batch=50, warmup=10, seed=given.seed, evaluate=given.evaluate)
    run_trials(source, given.rules, given.trials, settings, out=given.out, keep=given.keep)


if __name__ == "__main__":
    main()

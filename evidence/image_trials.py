"""Trials of a data set of images by number, each kept when it is finished, and the figures judged by all that are kept.

    python -m evidence.image_trials run CIFAR-10 5 9 A_opt Uniform Greedy      trials 5 to 9 of these rules
    python -m evidence.image_trials judge CIFAR-10                             the figures, verdicts and pages

The trials of a run are fixed by number, so a run may be split over days, and goes on where it was stopped.
"""

import argparse
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evenhand.engine.run import Record
from evenhand.experiments.base import Findings, Measured, Number
from evenhand.experiments.catalogue import experiments
from evenhand.experiments.images import RULES, STUDIES
from evenhand.experiments.output import Output
from evenhand.experiments.run import Options
from evenhand.experiments.study import Study
from evenhand.experiments.table_final import draw
from evenhand.simulation.blocks import run
from evenhand.simulation.metrics import share
from evenhand.simulation.store import Store
from evidence import render
from evidence.__main__ import PICTURES, RESULTS

ROUNDS = 100
KEEP = Path(".venv/evidence-images")
NEEDED = ("A_opt", "Greedy", "Uniform")


def study_of(name: str, first: int = 0, last: int = 9) -> Study:
    """The study of the figures, cut to `ROUNDS`."""
    return replace(STUDIES[name].at("paper", trials=last - first + 1, image_rounds=ROUNDS), first=first)


def go_on(name: str, first: int, last: int, rules: list[str], keep: Path) -> None:
    """Run what is missing of these trials."""
    study, store = replace(study_of(name, first, last), strategies={rule: RULES[rule] for rule in rules}), Store(keep)
    missing = {label: store.missing(study.settings(label), study.numbers()) for label in rules}
    for block in study.blocks(missing):
        record = run(block)
        store.put(study.settings(block.label), record)
        print(f"{name} {block.label} {block.trials[0]}: {record.seconds:.0f} s", flush=True)


def kept(name: str, keep: Path) -> dict[str, Record]:
    """The records of the trials that all needed rules have, of every rule that has all of these."""
    study, store = study_of(name), Store(keep)
    there = {
        label: set(study.numbers()) - set(store.missing(study.settings(label), study.numbers()))
        for label in study.strategies
    }
    trials = sorted(set.intersection(*(there[label] for label in NEEDED)))
    whole = [label for label, own in there.items() if set(trials) <= own]
    found = {label: store.get(study.settings(label), trials) for label in whole}
    return {label: record for label, record in found.items() if record is not None}


def rows_of(label: str, record: Record) -> list[dict[str, Any]]:
    """A record as the rows of images.json."""
    tested = np.isfinite(record.accuracy).all(axis=2)
    rows = []
    for place, trial in enumerate(record.trials.tolist()):

        def named(values: Any) -> dict[str, float]:
            return dict(zip(record.groups, np.round(values, 6).tolist(), strict=True))

        worst = {str(n + 1): round(float(record.accuracy[n, place].min()), 6) for n in np.flatnonzero(tested[:, place])}
        rows.append({
            "rule": label, "trial": trial, "rounds": len(record.labels), "half": named(record.accuracy[-1, place]),
            "all": named(record.final_accuracy[place]), "mixture": named(share(record.counts)[-1, place]), "worst": worst,
            "seconds": round(record.seconds / len(record.trials), 1),
        })  # fmt: skip
    return rows


def judge(name: str, keep: Path, made: str) -> None:
    """Enter the figures of a data set and its rows of the table; the rows of images.json that it did not have."""
    import json

    found, output = kept(name, keep), Output(RESULTS)
    options = Options(scale="paper", image_rounds=ROUNDS)
    trials = len(found["A_opt"].trials)
    command = f"python -m evidence.image_trials judge {name}"
    for experiment in experiments().values():
        if experiment.id == "table-final":
            findings = with_others(experiment.find({name: found}, "paper"), output, name)
        elif list(experiment.studies) == [name]:
            findings = experiment.find({name: found}, "paper")
        else:
            continue
        work = round(sum(record.seconds for record in found.values()), 1)
        about = {"strategies": list(found), "rounds": ROUNDS, "trials": trials, "seed": 0}
        before = output.entries[experiment.id]
        runs = before.get("runs", {}) | {name: about}
        details = {
            "status": "done",
            "key": f"image trials: {experiment.id}",
            "command": command,
            "runs": runs,
            "made": made,
        }
        output.enter(
            experiment,
            options,
            findings,
            failures=[],
            absent={},
            seconds=0.0,
            worker_seconds=work,
            studies={},
            **details,
        )
        for claim in output.entries[experiment.id]["claims"]:
            print(f"{experiment.id}: {claim['verdict']}: {claim['text']}\n    {claim['evidence']}", flush=True)
    made_before = json.loads((RESULTS / "results.json").read_text("utf-8")).get("made")
    output.write()
    if made_before:
        written = json.loads((RESULTS / "results.json").read_text("utf-8"))
        (RESULTS / "results.json").write_text(
            json.dumps({"made": made_before, **written}, indent=1, ensure_ascii=False) + "\n", "utf-8"
        )
    add_rows(name, keep)
    for picture in RESULTS.glob("fig-*.png"):
        shutil.copy(picture, PICTURES)
    render.write_pages()


def add_rows(name: str, keep: Path) -> None:
    """The rows of every kept trial that images.json lacks."""
    import json

    file, study, store = RESULTS / "images.json", study_of(name), Store(keep)
    text = json.loads(file.read_text("utf-8"))
    rows = text["trials"][name]
    known = {(row["rule"], row["trial"]) for row in rows}
    for label in study.strategies:
        record = store.get(study.settings(label), list(study.numbers()))
        rows += [row for row in (rows_of(label, record) if record else []) if (label, row["trial"]) not in known]
    rules = list(dict.fromkeys(row["rule"] for row in rows))
    rows.sort(key=lambda row: (rules.index(row["rule"]), row["trial"]))
    file.write_text(json.dumps(text, indent=1, ensure_ascii=False) + "\n", "utf-8")


def with_others(own: Findings, output: Output, name: str) -> Findings:
    """The table with the rows of the other data sets as they are."""
    old = [Number(**one) for one in output.entries["table-final"]["numbers"]]
    mine = [number for number in old if number.name.startswith(f"{name}, ")]
    place = old.index(mine[0])
    others = [number for number in old if number not in mine]
    numbers = [*others[:place], *own.numbers, *others[place:]]
    rows = []
    for number in numbers:
        data, _, rule = number.name.rpartition(", ")
        rows.append(
            {
                "data": data,
                "strategy": rule,
                "mean": number.measured,
                "sd": number.sd,
                "paper_mean": number.paper,
                "paper_sd": number.paper_sd,
            }
        )
    values = {claim: Measured(**one) for claim, one in output.measured["table-final"].items()} | own.measured
    table = pd.DataFrame(rows)
    return Findings(draw(table), table, numbers, values, own.notes)


def main() -> None:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=Path, default=KEEP, help="the folder of the finished trials")
    ways = parser.add_subparsers(dest="way", required=True)
    for way in ("run", "judge"):
        one = ways.add_parser(way)
        one.add_argument("name", choices=STUDIES)
        if way == "run":
            one.add_argument("first", type=int)
            one.add_argument("last", type=int)
            one.add_argument("rules", nargs="+", choices=RULES)
        else:
            one.add_argument("--made", default="", help="on which days and commits, for results.json")
    given = parser.parse_args()
    if given.way == "run":
        go_on(given.name, given.first, given.last, given.rules, given.keep)
    else:
        judge(given.name, given.keep, given.made)


if __name__ == "__main__":
    main()

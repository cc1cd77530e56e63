"""The paper's image figures, its final table and their verdicts out of trials that `image_trials.py` has kept.

Run: python benchmarks/image_claims.py --out results [docs/results/images-*-trials*.json]

`--out` is the folder of `evenhand reproduce`: Adult's and German's trials are taken from there for the table, or, where they are
no longer there, the values that its results.json and verdicts.json have. Of a data set those trials count that A_opt, Greedy and
Uniform all have. Dates and work are those of the trials, so that the same trials give the same entries whenever they are judged.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
import pandas as pd

from evenhand.arrays import Floats, Mask
from evenhand.engine.run import Record
from evenhand.experiments.base import Findings, Measured, Number
from evenhand.experiments.catalogue import experiments
from evenhand.experiments.images import ROUNDS
from evenhand.experiments.output import Output
from evenhand.experiments.run import Options, collect
from evenhand.experiments.study import Study
from evenhand.experiments.table_final import draw
from evenhand.notation import JsonObject
from evenhand.simulation.store import Store

RESULTS = Path(__file__).parents[1] / "docs/results"
NAMES = {"fashion-mnist": "FashionMNIST", "cifar10": "CIFAR-10", "utkface": "UTKFace"}
LABELS = {
    "A_opt": "A_opt",
    "greedy": "Greedy",
    "uniform": "Uniform",
    "uncurated": "Uncurated",
    "epsilon-greedy:epsilon=0.1": "ε-greedy",
}
NEEDED = ("A_opt", "Greedy", "Uniform")
OF_THE_MACHINE = ("versions", "cores")
"""What an entry says of the machine that judged, where nothing was trained."""
Runs = dict[str, dict[int, JsonObject]]
"""The runs of a data set by rule and trial."""


@dataclass(frozen=True)
class Spent:
    """When the last of some trials was finished, and the seconds that all of them took."""

    date: str
    work: float

    @classmethod
    def of(cls, runs: Iterable[JsonObject]) -> Spent:
        """What image runs took."""
        own = list(runs)
        last = datetime.fromisoformat(max(run["finished"] for run in own))
        return cls(f"{last:%Y-%m-%d %H:%M} UTC", sum(run["cpu_seconds"] for run in own))

    @classmethod
    def of_all(cls, parts: Iterable[Spent]) -> Spent:
        """Several together."""
        own = list(parts)
        return cls(max(part.date for part in own), sum(part.work for part in own))


def read_runs(files: Sequence[Path]) -> dict[str, Runs]:
    """The runs of these files by data set, rule and trial, each with the groups of its data set."""
    found: dict[str, Runs] = defaultdict(lambda: defaultdict(dict))
    for file in files:
        kept = json.loads(file.read_text(encoding="utf-8"))
        for run in kept["runs"]:
            if run["rule"] in LABELS:
                found[NAMES[kept["data"]]][LABELS[run["rule"]]][run["trial"]] = run | {"groups": kept["groups"]}
    return found


def record_of(runs: Mapping[int, JsonObject], tested: Mask) -> Record:
    """One rule's trials as the record that `simulate` would have made; accuracies of the tested rounds alone."""
    own = list(runs.values())

    def over(name: str) -> Floats:
        return np.stack([np.array(run[name], dtype=float) for run in own], axis=1)

    numbers = {name: over(name).astype(np.int64) for name in ("labels", "chosen", "kind", "counts")}
    groups = tuple(own[0]["groups"])
    accuracy = over("accuracy")
    accuracy[~tested] = np.nan
    ends = np.array([[run["final"]["all"][group] for group in groups] for run in own], dtype=float)
    return Record(
        groups=groups,
        trials=np.array(list(runs)),
        validation_loss=over("validation_loss"),
        accuracy=accuracy,
        final_accuracy=ends,
        seconds=sum(run["cpu_seconds"] for run in own),
        **numbers,
    )


def counted(files: Sequence[Path]) -> dict[str, Runs]:
    """Every data set's runs of the trials that all needed rules have, of every rule that has all of these."""
    found = {}
    for name, rules in read_runs(files).items():
        if all(rule in rules for rule in NEEDED):
            trials = sorted(set.intersection(*(set(rules[rule]) for rule in NEEDED)))
            whole = [label for label in LABELS.values() if label in rules and set(trials) <= set(rules[label])]
            found[name] = {label: {trial: rules[label][trial] for trial in trials} for label in whole}
    return found


def every(rules: Runs) -> list[JsonObject]:
    """The runs of all rules."""
    return [run for runs in rules.values() for run in runs.values()]


def records(found: Mapping[str, Runs]) -> dict[str, dict[str, Record]]:
    """Every data set's records."""
    made = {}
    for name, rules in found.items():
        # runs differ in how many rounds they test: a mean over those of a round that only some tested would mix trials
        tested = np.all([[value is not None for value in run["worst"]] for run in every(rules)], axis=0)
        made[name] = {label: record_of(runs, tested) for label, runs in rules.items()}
    return made


def main(arguments: list[str] | None = None) -> None:
    """Enter every figure whose data set is there, then the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, default=sorted(RESULTS.glob("images-*-trials*.json")))
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    runs, output, known = counted(given.files), Output(given.out), experiments()
    there, spent = records(runs), {name: Spent.of(every(rules)) for name, rules in runs.items()}
    sizes = {name: size(rules) for name, rules in runs.items()}
    named = " ".join(f"docs/results/{name}" for name in sorted(file.name for file in given.files))
    command = f"python benchmarks/image_claims.py --out FOLDER {named}"
    # shorter runs carry a mark
    rounds = min(len(record.labels) for found in there.values() for record in found.values())
    options = Options(scale="paper", image_rounds=rounds if rounds < ROUNDS else None)
    for experiment in known.values():
        names = list(experiment.studies)
        if len(names) == 1 and names[0] in there:
            own = {names[0]: sizes[names[0]]}
            enter(output, experiment.id, experiment.find(there, "paper"), spent[names[0]], options, command, own)
    table = known["table-final"]
    tables = {name: study for name, study in table.at("paper", None, None).items() if not study.of_images}
    kept = {name: found for name, found in collect(tables, Store(given.out / "trials")).items() if found}
    both = {name: (there | kept)[name] for name in table.studies if name in there or name in kept}
    findings = with_kept(table.find(both, "paper"), output, [name for name in tables if name not in kept])
    everything = Spent.of_all([*spent.values(), *spent_on_tables(output, [table.studies[name] for name in tables])])
    enter(output, table.id, findings, everything, options, command, sizes | sizes_of_tables(output, tables))
    output.write()


def spent_on_tables(output: Output, studies: Sequence[Study]) -> list[Spent]:
    """What the trials of tables took, from the figures that they were run for: the trials themselves may be gone."""
    alone = [[study] for study in studies]
    figures = [experiment.id for experiment in experiments().values() if [*experiment.studies.values()] in alone]
    entries = [output.entries[id] for id in figures if "worker_seconds" in output.entries.get(id, {})]
    return [Spent(entry["date"], entry["worker_seconds"]) for entry in entries]


def sizes_of_tables(output: Output, tables: Mapping[str, Study]) -> dict[str, JsonObject]:
    """What was run of the tables, from the figures that it was run for."""
    found = {}
    for name, study in tables.items():
        for experiment in experiments().values():
            kept = output.entries.get(experiment.id, {}).get("studies", {})
            if list(experiment.studies) == [study.source] and study.source in kept:
                found[name] = {key: kept[study.source][key] for key in ("strategies", "budget", "trials", "seed")}
    return found


def with_kept(findings: Findings, output: Output, missing: Sequence[str]) -> Findings:
    """The table with the rows of data sets that an earlier table has and whose trials are no longer there."""
    old = output.entries.get("table-final", {}).get("numbers", [])
    names = [number["name"].partition(", ")[::2] for number in old]
    pairs = [(*name, Number(**number)) for name, number in zip(names, old, strict=True) if name[0] in missing]
    rows = [
        {"data": data, "strategy": rule, "mean": n.measured, "sd": n.sd, "paper_mean": n.paper, "paper_sd": n.paper_sd}
        for data, rule, n in pairs
    ]
    if not rows:
        return findings
    known = output.measured["table-final"]
    values = {claim: Measured(**one) for claim, one in known.items() if claim.partition(":")[0] in missing}
    whole = pd.concat([findings.table, pd.DataFrame(rows)], ignore_index=True)
    numbers = [*findings.numbers, *(number for _, _, number in pairs)]
    return Findings(draw(whole), whole, numbers, {**findings.measured, **values}, findings.notes)


def size(rules: Runs) -> JsonObject:
    """What was run: rules, rounds, trials and seed."""
    trials = next(iter(rules.values()))
    first = next(iter(trials.values()))
    return {"strategies": list(rules), "rounds": first["rounds"], "trials": len(trials), "seed": first["seed"]}


def enter(
    output: Output,
    id: str,
    findings: Findings,
    spent: Spent,
    options: Options,
    command: str,
    sizes: Mapping[str, JsonObject],
) -> None:
    """One experiment's findings with where they come from."""
    before = output.entries.get(id, {})
    made = {"status": "done", "key": f"image trials: {id}", "command": command, "date": spent.date}
    made |= {
        "failures": [],
        "absent": {},
        "seconds": 0.0,
        "worker_seconds": round(spent.work, 1),
        "studies": {},
        "runs": dict(sizes),
    }
    output.enter(experiments()[id], options, findings, **made)
    if same_but_for_the_machine(before, output.entries[id]):
        output.entries[id] = before
    for claim in output.entries[id]["claims"]:
        print(f"{id}: {claim['verdict']}: {claim['text']}\n    {claim['evidence']}", flush=True)


def same_but_for_the_machine(old: JsonObject, new: JsonObject) -> bool:
    """Whether trials, judged again elsewhere, say what the entry already has."""
    # as they are read from a file: lists, no tuples
    one, other = (json.loads(json.dumps(entry)) for entry in (old, new))
    return all(one.get(key) == other.get(key) for key in one.keys() | other.keys() if key not in OF_THE_MACHINE)


if __name__ == "__main__":
    main()

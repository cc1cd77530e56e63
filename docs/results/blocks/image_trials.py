"""docs/results-images.md: trials that `benchmarks/image_trials.py` kept, rules compared in pairs."""

import json
from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np

from blocks.images import top
from blocks.text import RESULTS, kept, short, shown, table
from evenhand.claims.paired import paired
from evenhand.experiments import images

Run = dict[str, Any]
RULES = {
    "A_opt": "A_opt",
    "greedy": "Greedy",
    "epsilon-greedy:epsilon=0.1": "ε-greedy",
    "uniform": "Uniform",
    "uncurated": "Uncurated",
}
DATA = dict(zip(("fashion-mnist", "cifar10", "utkface"), images.PAPER.values(), strict=True))
"""The data sets, each with the paper's numbers at the end of 500 rounds."""
LONG = "images-fashion-long.json"
"""Runs of the paper's length."""


@cache
def all_runs(pattern: str = "images-*-trials.json") -> dict[str, dict[str, dict[int, Run]]]:
    """The runs of these files by data set, rule and trial; a run has the groups of its data set."""
    found: dict[str, dict[str, dict[int, Run]]] = {}
    for path in sorted(RESULTS.glob(pattern)):
        file = json.loads(path.read_text(encoding="utf-8"))
        for run in file["runs"]:
            rules = found.setdefault(file["data"], {})
            rules.setdefault(RULES[run["rule"]], {})[run["trial"]] = run | {"groups": file["groups"]}
    # the order of the columns, whatever came first
    return {data: {rule: rules[rule] for rule in RULES.values() if rule in rules} for data, rules in found.items()}


def common_rounds(runs: Iterable[Run]) -> list[int]:
    """The rounds that all of these runs tested, counted from 1: runs differ in how many they test."""
    tested = np.all([[value is not None for value in run["worst"]] for run in runs], axis=0)
    return [int(place) + 1 for place in np.flatnonzero(tested)]


def every(rules: dict[str, dict[int, Run]]) -> list[Run]:
    """All runs of a data set."""
    return [run for runs in rules.values() for run in runs.values()]


def spread(values: list[float]) -> str:
    """Mean and standard deviation."""
    mean = short(float(np.mean(values)))
    return mean if len(values) < 2 else f"{mean} ± {short(float(np.std(values, ddof=1)))}"


def lead(ours: dict[int, float], theirs: dict[int, float]) -> str:
    """Difference in points over the trials both have, with its interval."""
    trials = sorted(ours.keys() & theirs.keys())
    if not trials:
        return ""
    found = paired([ours[t] for t in trials], [theirs[t] for t in trials])
    mean, low, high = map(points, (found.mean, found.low, found.high))
    return mean if len(trials) < 2 else f"{mean} [{low}, {high}]"


def ends(data: str, rules: dict[str, dict[int, Run]]) -> str:
    """A row for every rule: how it ends, and how far ahead of Uniform."""
    rounds = common_rounds(every(rules))
    measures = {
        "half": lambda run: run["final_worst"]["half"],
        "all": lambda run: run["final_worst"]["all"],
        "rounds": lambda run: float(np.mean([run["worst"][r - 1] for r in rounds])),
    }
    rows = []
    for rule, runs in rules.items():
        cells = [rule, f"{len(runs)}"]
        for measure in measures.values():
            ours = {trial: measure(run) for trial, run in runs.items()}
            base = {trial: measure(run) for trial, run in rules.get("Uniform", {}).items()}
            cells += [spread(list(ours.values())), "" if rule == "Uniform" else lead(ours, base)]
        rows.append([*cells, paper(data, rule)])
    against = "− Uniform, points [95 %]"
    head = ["rule", "trials", "trained on half", against, "all labels", against]
    head += [f"mean of {len(rounds)} rounds", against, "the paper, round 500"]
    return table(head, rows)


def paper(data: str, rule: str) -> str:
    """What the paper has at the end."""
    found = DATA[data].get(rule)
    return f"{short(found[0])} ± {short(found[1])}" if found else ""


def by_round(rules: dict[str, dict[int, Run]]) -> str:
    """Worst group at the rounds that all trials tested, mean of the trials."""
    rounds = common_rounds(every(rules))
    # a table of a hundred rows says no more
    shown = [rounds[i] for i in sorted({round(k) for k in np.linspace(0, len(rounds) - 1, 10)})]
    rows = []
    for number in shown:
        means = [float(np.mean([run["worst"][number - 1] for run in runs.values()])) for runs in rules.values()]
        rows.append([f"{number}", *map(short, means)])
    return table(["round", *rules], rows)


def by_group(rules: dict[str, dict[int, Run]]) -> str:
    """Every group's accuracy after the last round and its share of the examples, mean of the trials."""
    groups = every(rules)[0]["groups"]
    rows = []
    for rule, runs in rules.items():
        accuracy = {z: float(np.mean([run["final"]["half"][z] for run in runs.values()])) for z in groups}
        mixture = np.mean([run["mixture"][-1] for run in runs.values()], axis=0)
        rows.append([rule, *(f"{short(accuracy[z])} ({100 * p:.0f} %)" for z, p in zip(groups, mixture, strict=True))])
    return table(["accuracy (share)", *groups], rows)


def long(rules: dict[str, dict[int, Run]]) -> str:
    """A_opt and Uniform at the paper's length, trial by trial, with the lead in points."""
    ours, theirs = rules["A_opt"], rules["Uniform"]
    trials = sorted(ours.keys() & theirs.keys())
    shown = (30, 50, 70, 100, 150, 200, 250, 300, 350, 400, 450, 500)
    pairs = {f"{r}": [(at(ours[t], r), at(theirs[t], r)) for t in trials] for r in shown}
    pairs["trained on all labels"] = [tuple(runs[t]["final_worst"]["all"] for runs in (ours, theirs)) for t in trials]
    rows = [[name, *(cell for pair in found for cell in ahead(*pair))] for name, found in pairs.items()]
    head, lines = ["round"], []
    for t in trials:
        head += [f"A_opt, trial {t}", f"Uniform, trial {t}", "points ahead"]
        both = zip(ours[t]["worst"], theirs[t]["worst"], strict=True)
        gaps = [a - b for a, b in both if a is not None and b is not None]
        lines.append(
            f"- Trial {t}: A_opt is ahead at {sum(gap > 0 for gap in gaps)} of the {len(gaps)} rounds tested, by "
            f"{points(float(np.mean(gaps)))} points in the mean."
        )
    return table(head, rows) + "\n\n" + "\n".join(lines)


def at(run: Run, wanted: int) -> float:
    """The accuracy at the tested round nearest to a round."""
    tested = [r for r, value in enumerate(run["worst"], 1) if value is not None]
    value: float = run["worst"][min(tested, key=lambda r: abs(r - wanted)) - 1]
    return value


def ahead(ours: float, theirs: float) -> list[str]:
    """Two accuracies and their difference in points."""
    return [short(ours), short(theirs), points(ours - theirs)]


def points(value: float) -> str:
    """A difference of shares in points."""
    return f"{100 * value:+.1f}".replace("-", "−")


def about(*files: dict[str, dict[str, dict[int, Run]]]) -> str:
    """How much was run, when and with what."""
    rows = []
    for data, rules in (item for found in files for item in found.items()):
        for rule, runs in rules.items():
            own = list(runs.values())
            days = sorted({run["finished"][:10] for run in own})
            commits = sorted({commit(run) for run in own})
            # a run that went on from a checkpoint knows the time of its last part only
            whole = [run["cpu_seconds"] / 60 for run in own if not run["resumed"]]
            minutes = f"{np.mean(whole):.1f}" if whole else ""
            size = [f"{own[0]['rounds']} of 500", f"{len(own)} of 10", minutes]
            rows.append([data, rule, *size, " to ".join(dict.fromkeys((days[0], days[-1]))), ", ".join(commits)])
    return table(["data", "rule", "rounds", "trials", "CPU minutes a run", "date", "commits"], rows)


def commit(run: Run) -> str:
    """The commit that a run was made at."""
    return shown(run["versions"]["commit"])


def halves(runs: dict[int, Run]) -> list[float]:
    """Worst-group accuracy after the last round, trained on half, of every trial."""
    return [run["final_worst"]["half"] for run in runs.values()]


def repeats() -> str:
    """What a run gave that was repeated on later code."""
    path = RESULTS / "image-repeats.json"
    if not path.exists():
        return "No trial was repeated yet."
    rows = []
    for one in kept(path.name)["repeats"]:
        same = "the same numbers"
        if not one["same"]:
            same = f"{' and '.join(one['differs_in'])}: differs from round {one['differs_from']}; all else is the same"
        made = f"{one['date']}, {commit(one)}"
        length = "whole, with the final network" if one["whole"] else f"{one['rounds']} rounds"
        rows.append([one["data"], RULES[one["rule"]], f"{one['trial']}", length, shown(one["of"]), made, same])
    rows += [row for data, rules in all_runs(LONG).items() for row in begun(data, rules)]
    return table(["data", "rule", "trial", "how much", "run at commit", "repeated at commit", "finding"], rows)


def begun(data: str, rules: dict[str, dict[int, Run]]) -> Iterable[list[str]]:
    """A row for every run at full length whose trial is also among the shorter ones."""
    for rule, runs in rules.items():
        for trial, run in runs.items():
            one = all_runs().get(data, {}).get(rule, {}).get(trial)
            if one is None:
                continue
            differs = [r + 1 for r in range(one["rounds"]) if not agree(one, run, r)]
            same = f"differs from round {differs[0]}" if differs else "the same numbers"
            length = f"{one['rounds']} rounds, by the run at full length"
            yield [data, rule, f"{trial}", length, commit(one), f"{run['finished'][:10]}, {commit(run)}", same]


def agree(one: Run, other: Run, at: int) -> bool:
    """Whether two runs have the same choice, counts and losses in a round, where both have them."""
    values = [(one[name][at], other[name][at]) for name in ("chosen", "kind", "counts")]
    values += zip(one["validation_loss"][at], other["validation_loss"][at], strict=True)
    return all(a == b or a is None or b is None for a, b in values)


def summary() -> str:
    """The worst group at the end of all runs, beside the paper's and the best ceiling."""
    rows = []
    for pattern in ("images-*-trials.json", LONG):
        for data, rules in all_runs(pattern).items():
            best = short(top(kept("image-ceilings.json")["data"][data]))
            for rule, runs in rules.items():
                length = f"{next(iter(runs.values()))['rounds']}"
                rows.append([data, rule, f"{len(runs)}", length, spread(halves(runs)), best, paper(data, rule)])
    head = [
        "data",
        "rule",
        "trials",
        "at round",
        "worst group",
        "ceiling of the worst group, best epoch",
        "the paper, round 500",
    ]
    return table(head, rows)


def blocks() -> dict[str, str]:
    """Tables of every data set that has runs."""
    found, length = all_runs(), all_runs(LONG)
    made = {"image-trials-made": about(found, length), "image-repeats": repeats(), "images-summary": summary()}
    for data, rules in found.items():
        made[f"{data}-trials"] = ends(data, rules) + "\n\n" + by_round(rules)
        made[f"{data}-trial-groups"] = by_group(rules)
    for rules in length.values():
        made |= {"fashion-mnist-long": long(rules), "fashion-mnist-long-groups": by_group(rules)}
    return made

"""What pages show that is computed of the results: numbers as text, means over data sets, verdicts beside their tests."""

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy.stats import t as student

from evidence.common import gain

results: dict[str, Any] = {}
"""The JSON files of evidence/results by name; `render.py` puts them here."""
Found = dict[str, Any]


# ------------------------------------------------------------------------- numbers as text


def minus(text: str) -> str:
    """A number with a true minus sign."""
    return text.replace("-", "−")


def short(value: float, digits: int = 3) -> str:
    """A share without its leading zero."""
    return minus(f"{value:.{digits}f}".replace("0.", ".", 1))


def spread(found: Found | Sequence[float]) -> str:
    """Mean and standard deviation, of values or as they are kept."""
    mean, sd = (found["mean"], found["sd"]) if isinstance(found, dict) else (np.mean(found), np.std(found, ddof=1))
    return f"{short(float(mean))} ± {short(float(sd))}"


def points(found: Found, digits: int = 1, scale: float = 1) -> str:
    """A difference with its interval; `scale=100` where it is one of shares."""
    # nothing is shown as below or above 0 that is rounded to it
    ends = [f"{scale * found[name]:+.{digits}f}" for name in ("mean", "low", "high") if name in found]
    mean, *rest = (minus(end if float(end) else end[1:]) for end in ends)
    return f"{mean} [{', '.join(rest)}]" if rest else mean


def signed(value: float, digits: int = 1) -> str:
    """A number of points with its sign."""
    return points({"mean": value}, digits)


def cells(values: Iterable[float], form: str = ".2f") -> str:
    """Numbers in columns of a table."""
    return " | ".join(short(v, int(form[1:])) if form[0] == "s" else minus(f"{v:{form}}") for v in values)


def power(value: float | None) -> str:
    """A large number of labels as a power of ten."""
    if value is None:
        return "more than 10^60"
    mantissa, exponent = f"{value:.1e}".split("e+")
    return f"{mantissa}·10^{int(exponent)}"


def duration(seconds: float) -> str:
    """A time with two figures and its unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size or unit == "µs":
            value = seconds / size
            return f"{value:,.0f} {unit}" if value >= 99.5 else f"{value:#.2g}".rstrip(".") + f" {unit}"
    raise AssertionError


def made(found: Found) -> str:
    """When and on which commit something was measured."""
    about = found["made"]
    return f"{about['date']}, commit {about['commit'][:7]}"


# ------------------------------------------------------------------------- what rules buy


def over(cells: Iterable[tuple[str, float]], *, real: bool = False) -> Found:
    """Mean and interval over data sets."""
    from evidence.sources import over_data_sets

    return over_data_sets(cells, real=real)


def regrets() -> list[Found]:
    """A row for each rule: how far it is below the better simple rule, and how far A_opt is ahead of it."""
    kept = results["value"]["cells"]
    rows = []
    for rule in kept[0]["regret"]:
        own = [(cell["source"], cell["regret"][rule]["mean"]) for cell in kept]
        ahead = [(name, value - cell["regret"]["A_opt"]["mean"]) for (name, value), cell in zip(own, kept, strict=True)]
        values = [value for _, value in own]
        beyond = [
            sum(cell["regret"][rule].get(end, 0) * sign > 0 for cell in kept)
            for end, sign in (("low", 1), ("high", -1))
        ]
        rows.append({
            "rule": rule, "gain": over((n, -v) for n, v in own), "real": over(((n, -v) for n, v in own), real=True),
            "ahead": over(ahead), "best": -min(values), "worst": -max(values), "behind": beyond[0], "before": beyond[1],
        })  # fmt: skip
    return rows


def regret(rule: str) -> Found:
    """The row of a rule."""
    return next(row for row in regrets() if row["rule"] == rule)


def by_source() -> list[Found]:
    """A row for each source: the better simple rule's accuracy at the largest budget, and every rule's gain over it."""
    rows: dict[str, Found] = {}
    for cell in results["value"]["cells"]:
        row = rows.setdefault(
            cell["source"], {"source": cell["source"], "better": cell["better"], "A_opt": [], "Greedy": [], "other": []}
        )
        row |= {"budget": cell["budget"], "better": cell["better"], "accuracy": cell["accuracy"]}
        row["A_opt"].append(-cell["regret"]["A_opt"]["mean"])
        row["Greedy"].append(-cell["regret"]["Greedy"]["mean"])
        row["other"].append(-cell["regret"]["Uncurated" if cell["better"] == "uniform" else "Uniform"]["mean"])
    return list(rows.values())


def weighted(key: str, *, real: bool = False) -> Found:
    """A gain of `value.json`, over data sets."""
    return over(((row["source"], row[key]["mean"]) for row in results["value"]["weighted"]), real=real)


def price() -> Found:
    """What the chosen model adds to the plain one: over data sets, the least cell, and cells beyond their own interval."""
    rows = results["value"]["weighted"]
    own = [(row["source"], row[rule]) for row in rows for rule in ("Uniform", "A_opt")]
    return {
        "mean": over((name, value["mean"]) for name, value in own), "cells": len(own), "least": min(value["mean"] for _, value in own),
        "won": sum(value["low"] > 0 for _, value in own), "lost": sum(value["high"] < 0 for _, value in own),
    }  # fmt: skip


def methods() -> list[Found]:
    """A row for each method: its gain over the plain fit over data sets, the least source, mean seconds of a fit."""
    kept = results["minimax"]["methods"]["cells"]
    rows = []
    for method in kept[0]["error"]:
        own = [(cell["source"], 100 * (cell["error"]["plain"] - cell["error"][method])) for cell in kept]
        seconds = float(np.mean([cell["seconds"][method] for cell in kept]))
        rows.append({"method": method, "gain": over(own), "least": min(value for _, value in own), "seconds": seconds})
    return rows[1:]


def gap(found: Found, ours: str, theirs: str, metric: str) -> Found:
    """The paired difference of two rules of a simulation."""
    return next(d for d in found["differences"] if (d["a"], d["b"], d["metric"]) == (ours, theirs, metric))


# ------------------------------------------------------------------------- images


def of_rule(name: str, rule: str) -> dict[int, Found]:
    """A rule's runs by trial."""
    return {run["trial"]: run for run in results["images"]["trials"][name] if run["rule"] == rule}


def lowest(runs: dict[int, Found], model: str = "half") -> dict[int, float]:
    """The worst group's accuracy at the end, by trial."""
    return {trial: min(run[model].values()) for trial, run in runs.items()}


def lead(ours: dict[int, float], theirs: dict[int, float]) -> str:
    """The paired difference over the trials that both have, in points."""
    both = sorted(ours.keys() & theirs.keys())
    return points(gain([ours[t] for t in both], [theirs[t] for t in both]), scale=100)


def image_ends(name: str) -> list[Found]:
    """A row for each rule of a data set: its end, its lead over Uniform, the same with all labels."""
    rows = []
    for rule in dict.fromkeys(run["rule"] for run in results["images"]["trials"][name]):
        half, whole = (lowest(of_rule(name, rule), model) for model in ("half", "all"))
        base = [lowest(of_rule(name, "Uniform"), model) for model in ("half", "all")]
        leads = ["" if rule == "Uniform" else lead(own, other) for own, other in zip((half, whole), base, strict=True)]
        paper = next(
            (
                n
                for n in numbers("table-final")
                if n["name"].startswith(f"{name}, ") and n["name"].endswith(f", {rule}")
            ),
            {},
        )
        rows.append({
            "rule": rule, "half": spread([*half.values()]), "lead": leads[0], "all": spread([*whole.values()]), "all_lead": leads[1],
            "paper": f"{short(paper['paper'])} ± {short(paper['paper_sd'])}" if paper else "",
        })  # fmt: skip
    return rows


def image_groups(name: str) -> list[Found]:
    """A row for each rule: every group's accuracy and share, means of the trials."""
    rows = []
    for rule in dict.fromkeys(run["rule"] for run in results["images"]["trials"][name]):
        runs = of_rule(name, rule).values()
        mean = {
            part: {z: np.mean([run[part][z] for run in runs]) for z in next(iter(runs))["half"]}
            for part in ("half", "mixture")
        }
        rows.append(
            {
                "rule": rule,
                "groups": " | ".join(f"{short(a)} ({100 * mean['mixture'][z]:.0f} %)" for z, a in mean["half"].items()),
            }
        )
    return rows


def image_ways() -> list[Found]:
    """A row for each way to update a network: A_opt, Uniform, their difference, A_opt beside one step, seconds."""
    kept = results["images"]["updates"]
    rows, first = [], {}
    for way in dict.fromkeys(run["way"] for run in kept):
        ours, theirs = (
            {run["trial"]: run for run in kept if (run["way"], run["rule"]) == (way, rule)}
            for rule in ("A_opt", "Uniform")
        )
        own = lowest(ours)
        first = first or own
        rows.append({
            "way": way, "A_opt": spread([*own.values()]), "Uniform": spread([*lowest(theirs).values()]), "lead": lead(own, lowest(theirs)),
            "step": "" if first is own else lead(own, first),
            "seconds": " / ".join(f"{np.mean([run['seconds'] for run in runs.values()]):.0f}" for runs in (ours, theirs)),
        })  # fmt: skip
    return rows


def image_trend() -> list[Found]:
    """A row for each c1: the worst pair, its lead over A_opt, and the mean of each trial's largest share."""
    rows, base = [], {}
    for rule in dict.fromkeys(run["rule"] for run in results["images"]["trend"]):
        runs = {run["trial"]: run for run in results["images"]["trend"] if run["rule"] == rule}
        own, largest = lowest(runs), np.mean([max(run["mixture"].values()) for run in runs.values()])
        base = base or own
        rows.append(
            {
                "rule": rule,
                "worst": spread([*own.values()]),
                "lead": "" if base is own else lead(own, base),
                "largest": largest,
            }
        )
    return rows


def ceilings() -> list[Found]:
    """A row for each network of every image: of which, and its best accuracy on the worst-off group in any epoch."""
    rows = []
    for name, found in results["images"]["ceilings"].items():
        for one in found:
            group = one["trained_on"] if one["trained_on"] in one["accuracy"][0] else found[0]["trained_on"]
            values = [epoch[group] for epoch in one["accuracy"]]
            rows.append({"data": name, "group": group, "on": "all groups" if group != one["trained_on"] else "it alone",
                         "images": one["images"], "epochs": len(values), "end": values[-1], "best": max(values)})  # fmt: skip
    return rows


def at_length() -> list[Found]:
    """Trials of 500 rounds: the end of both rules, and where A_opt was ahead."""
    rows = []
    ours, theirs = (of_rule("FashionMNIST, 500 rounds", rule) for rule in ("A_opt", "Uniform"))
    for trial, run in ours.items():
        gaps = [
            value - theirs[trial]["worst"][number]
            for number, value in run["worst"].items()
            if number in theirs[trial]["worst"]
        ]
        ends = [min(one[model].values()) for model in ("half", "all") for one in (run, theirs[trial])]
        rows.append(
            {
                "trial": trial,
                "ends": ends,
                "ahead": sum(g > 0 for g in gaps),
                "tested": len(gaps),
                "mean": 100 * np.mean(gaps),
            }
        )
    return rows


# ------------------------------------------------------------------------- the reproduction


def numbers(name: str) -> list[Found]:
    """The numbers of an experiment."""
    return results["results"]["experiments"][name]["numbers"]


def beside(value: float | None, sd: float | None) -> str:
    """A number with its standard deviation, where there is one."""
    return "" if value is None else short(value) if sd is None else f"{short(value)} ± {short(sd)}"


def results_of(experiment: str) -> Found:
    """What is kept of an experiment."""
    return results["results"]["experiments"][experiment]


def number(experiment: str, name: str) -> Found:
    """One number of an experiment, by its name."""
    return next(one for one in numbers(experiment) if one["name"] == name)


def claims(*experiments: str) -> list[Found]:
    """A row for each claim: what was measured, each beside what makes it hold, and the verdict."""
    rows = []
    for name in experiments:
        for claim in results["results"]["experiments"][name]["claims"]:
            evidence, _, about = claim["evidence"].partition(" (")
            tests = claim["test"].split("; ")
            parts = [f"{seen} ({wanted(test)})" for seen, test in zip(evidence.split("; "), tests, strict=True)]
            verdict = f"**{claim['verdict']}**" if "hold" in claim["verdict"] else claim["verdict"]
            if "hold" not in claim["verdict"]:
                values = results["verdicts"]["experiments"][name][claim["text"]]["values"]
                verdict += f": {takes([*values.values()], tests)}"
            # the length of image runs is said once, above the tables
            note = "" if "of the paper's" in about else f" ({about}" if about else ""
            text = star("<br>".join(parts) + note)
            rows.append({"claim": star(claim["text"]), "verdict": verdict, "measured": text})
    return rows


def takes(values: Sequence[Sequence[float]], tests: Sequence[str]) -> str:
    """How many trials would decide a claim, if the means and the spread of its comparisons stay what they are."""
    most = 5
    for own, test in zip(values, tests, strict=True):
        ends = [float(end) for end in re.findall(r"-?\d+(?:\.\d+)?", wanted(test))]
        # within ±M, or above B
        ends = [ends[0], -ends[0]] if "±" in test.rpartition(": holds ")[2] else ends
        distance, sd = min(abs(np.mean(own) - end) for end in ends), np.std(own, ddof=1)
        level = (1 + results["verdicts"]["level"]) / 2
        while most < 10**5 and student.ppf(level, most - 1) * sd / np.sqrt(most) > distance:
            most = math.ceil(1.02 * most)
    size = 10 ** max(0, int(np.log10(most)) - 1)
    return f"≈ {math.ceil(most / size) * size:,} trials"


def told(*experiments: str) -> str:
    """The verdicts of some figures in a few words."""
    every = [claim["verdict"] for name in experiments for claim in results["results"]["experiments"][name]["claims"]]
    words = {
        "holds": "hold",
        "does not hold": "**does not**",
        "open": "open",
        "not tested at this scale": "not tested",
    }
    return ", ".join(f"{every.count(verdict)} {word}" for verdict, word in words.items() if verdict in every)


def wanted(test: str) -> str:
    """What makes a comparison hold, in short."""
    text = test.rpartition(": holds ")[2].partition(",")[0]
    return text.replace("above ", "> ").replace("below ", "< ")


def star(text: str) -> str:
    """Text in which the star of π* is one."""
    return text.replace("π*", "π\\*").replace("[-", "[−").replace(" -", " −")


def counted() -> str:
    """How many claims came out how."""
    every = [
        claim["verdict"] for entry in results["results"]["experiments"].values() for claim in entry.get("claims", ())
    ]
    hold, fail, undecided = (every.count(verdict) for verdict in ("holds", "does not hold", "open"))
    untested = len(every) - hold - fail - undecided
    return f"{hold} hold, {fail} do not, {undecided} are open" + (
        f", {untested} were not tested at this scale" if untested else ""
    )


# ------------------------------------------------------------------------- tables


def budgets(name: str) -> list[Found]:
    """A row for each budget: A_opt and its leads, with models of half of the labels and of all of them."""
    rows = []
    for budget, found in results["tables"]["runs"][name].items():
        row: Found = {"labels": int(budget), "trials": found["trials"]}
        for part, metric in (("half", "worst_group_accuracy"), ("all", "final_worst_group_accuracy")):
            row[part] = spread(found["strategies"]["optimistic:c0=0.1"][metric])
            for rule in ("greedy", "uniform", "uncurated"):
                row[f"{part}_{rule}"] = points(gap(found, "optimistic:c0=0.1", rule, metric), 1, 100)
        rows.append(row)
    return rows


def reached(name: str) -> list[Found]:
    """A row for each group: its rows, and what models of every row reach."""
    groups = results["tables"]["ceilings"][name]["groups"]
    size = sum(group["rows"] for group in groups.values())
    return [{"group": label, "share": 100 * found["rows"] / size, **found} for label, found in groups.items()]


def demo() -> list[Found]:
    """A row for each rule in the case of the demo, with models of all labels."""
    found, metric = results["tables"]["demo"], "final_worst_group_accuracy"
    known = {(d["a"], d["b"]) for d in found["differences"] if d["metric"] == metric}
    return [
        {
            "rule": rule, "worst": spread(values[metric]),
            **{b: points(gap(found, rule, b, metric), 1, 100) if (rule, b) in known else "" for b in ("uniform", "uncurated")},
        }
        for rule, values in found["strategies"].items()
    ]  # fmt: skip

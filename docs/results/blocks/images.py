"""docs/results-images.md: runs, ceilings and costs that `benchmarks/images.py collect` put together."""

from itertools import groupby
from typing import Any

from blocks import image_trials
from blocks.text import RESULTS, kept, note, short, table, versions
from evenhand.experiments.image_figures import ROUNDS

Found = dict[str, Any]
PAPER = image_trials.DATA
SHOWN = (30, 50, 70, 100, 150, 200, 250, 300, 350, 400, 450, 500)


def data_with_single_runs() -> dict[str, Found]:
    """By data set the runs of one trial; those that trials of the same rule and length have replaced are left out."""
    found = {}
    for data, entry in kept("images.json")["data"].items():
        # trials are of UTKFace's random split: they replace nothing of another one
        replaced = image_trials.all_runs().get(data, {}) if "split" not in entry else {}
        own = [run for run in entry["runs"] if not (run["rule"] in replaced and is_short(run))]
        found[data] = entry | {"runs": own}
    return found


def is_short(run: Found) -> bool:
    """Whether a run has the form of the trials: a step a round, a hundred rounds at most."""
    return run["update"] == "step" and run["rounds"] <= 100


def named(data: str, entry: Found) -> str:
    """The data set, with its split where that is not the default one."""
    return f"{data}, split {entry['split']}" if "split" in entry else data


def name(run: Found) -> str:
    """Rule and kind of update."""
    return f"{run['rule']}, {run['update']}"


def at(run: Found, target: int) -> str:
    """The accuracy tested at a round, or within one round or 2 % of it."""
    close = [(abs(r - target), value) for r, value in run["curve"] if abs(r - target) <= max(1, 0.02 * target)]
    return short(min(close)[1]) if close else ""


def curves(data: str, found: Found) -> str:
    """Worst group by round, the end, all labels; the paper's end and the ceilings beside them."""
    runs = found["runs"]
    lines = "\n".join(ceiling_lines(found, PAPER[data]["A_opt"][0]))
    if not runs:
        return lines
    rows = [[f"{target}", *(at(run, target) for run in runs)] for target in SHOWN]
    rows = [row for row in rows if any(row[1:])]
    spread = [f" ± {short(run['sd'])}" if run["sd"] is not None else "" for run in runs]
    ends = [f"{short(run['curve'][-1][1])}{sd} ({run['curve'][-1][0]})" for run, sd in zip(runs, spread, strict=True)]
    rows.append(["last tested (round)", *ends])
    rows.append(["trained on all labels", *(short(min(run["final"].values())) if run["final"] else "" for run in runs)])
    told = [paper(data, run["rule"]) for run in runs]
    rows.append([f"*the paper, {ROUNDS}*", *(f"*{text}*" if text else "" for text in told)])
    return table(["round", *map(name, runs)], rows) + "\n\n" + lines


def ceiling_lines(found: Found, theirs: float) -> list[str]:
    """What more data of a group alone, or of everything, would give."""
    lines = []
    for one in found["ceilings"]:
        alone = one["trained_on"] in found["groups"]
        group = one["trained_on"] if alone else hard(found)
        values = [epoch[group] for epoch in one["accuracy"]]
        lines.append(
            f"- Ceiling: {short(values[-1])} on {group} after {len(values)} epochs on the {one['images']:,} images "
            f"{'alone' if alone else 'of all groups'} (best {short(max(values))}, epoch {1 + values.index(max(values))})."
        )
    if not lines:
        return ["- Ceiling: not run."]
    side = "above" if theirs > top(found) else "not above"
    return [
        *lines,
        f"- The paper's {short(theirs)} for A_opt is {side} the best of {hard(found)} ({short(top(found))}).",
    ]


def hard(found: Found) -> str:
    """The group that was trained on alone first: the worst-off one."""
    name: str = found["ceilings"][0]["trained_on"]
    return name


def top(found: Found) -> float:
    """The best accuracy on that group in any epoch of any ceiling."""
    return max(epoch[hard(found)] for one in found["ceilings"] for epoch in one["accuracy"])


def groups(found: Found) -> str:
    """Every group's accuracy at the last test and its share of the samples."""
    rows = []
    for run in found["runs"]:
        cells = [f"{short(run['accuracy'][z])} ({100 * run['mixture'][z]:.0f} %)" for z in found["groups"]]
        rows.append([name(run), *cells])
    for one in found["ceilings"]:
        last = one["accuracy"][-1]
        rows.append([f"*ceiling, trained on {one['trained_on']}*", *(f"*{short(last[z])}*" for z in found["groups"])])
    return table(["accuracy (share)", *found["groups"]], rows)


def summary(single: dict[str, Found]) -> str:
    """The worst group at the end of all trials and single runs, beside the paper's and the best ceiling."""
    best = {data: short(top(entry)) for data, entry in single.items() if entry["ceilings"]}
    rows = []
    for data, rules in image_trials.all_runs().items():
        # the ceilings of UTKFace are those of another split
        ceiling = best.get(data, "") if "split" not in single[data] else ""
        for rule, runs in rules.items():
            length = f"{next(iter(runs.values()))['rounds']}"
            end = image_trials.spread(image_trials.halves(runs))
            rows.append([data, f"{rule}, step", f"{len(runs)}", length, end, ceiling, paper(data, rule)])
    for data, entry in single.items():
        for run in entry["runs"]:
            last, end = run["curve"][-1]
            cells = [named(data, entry), name(run), f"{run['trials']}", f"{last}", short(end)]
            rows.append([*cells, best.get(data, ""), paper(data, run["rule"])])
    return table(["data", "rule", "trials", "at round", "worst group", "ceiling", f"the paper, round {ROUNDS}"], rows)


def paper(data: str, rule: str) -> str:
    """What the paper has at the end."""
    found = PAPER[data].get(rule)
    return f"{short(found[0])} ± {short(found[1])}" if found else ""


def lengths(single: dict[str, Found]) -> str:
    """How long every single run was."""
    rows = []
    for data, entry in single.items():
        for run in entry["runs"]:
            minutes = f"{run['seconds'] / 60:.0f}" if run["seconds"] is not None else ""
            size = [f"{run['rounds']} of {ROUNDS}", f"{run['trials']} of 10"]
            rows.append([named(data, entry), run["rule"], f"`{run['update']}`", *size, minutes, run["date"]])
    return table(["data", "rule", "update", "rounds", "trials", "minutes", "date"], rows)


def leads(found: Found) -> str:
    """Each adaptive rule against Uniform at the rounds both tested; empty where no two runs can be compared."""
    lines = []
    uniform = {run["update"]: dict(run["curve"]) for run in found["runs"] if run["rule"] == "Uniform"}
    for run in found["runs"]:
        other = uniform.get(run["update"], {})
        near = {r: next((q for q in (r, r + 1, r - 1) if q in other), None) for r, _ in run["curve"]}
        gaps = {r: value - other[q] for r, value in run["curve"] if (q := near[r]) is not None}
        if run["rule"] == "Uniform" or not gaps:
            continue
        ahead, last = sum(gap > 0 for gap in gaps.values()), max(gaps)
        lines.append(
            f"- {name(run)}: ahead of Uniform at {ahead} of the {len(gaps)} rounds both tested, by "
            f"{short(sum(gaps.values()) / len(gaps), sign=True)} in the mean and {short(gaps[last], sign=True)} at round {last}."
        )
    return "\n".join(lines)


def again(single: Found) -> str:
    """The runs of the paper's length, a second trial beside the first, with the lead over Uniform in points."""
    trials = [{run["rule"]: run for run in single["runs"] if run["update"] == "step" and run["rounds"] == ROUNDS}]
    for run in kept("images-fashion-long.json")["runs"]:
        curve = [[r + 1, value] for r, value in enumerate(run["worst"]) if value is not None]
        while len(trials) <= run["trial"]:
            trials.append({})
        final = run["final"]["all"]
        trials[run["trial"]][image_trials.RULES[run["rule"]]] = {"curve": curve, "final": final}
    whole = [(k, trial) for k, trial in enumerate(trials) if {"A_opt", "Uniform"} <= trial.keys()]
    rows = []
    for target in SHOWN:
        row = [f"{target}"]
        for _, trial in whole:
            pair = [at(trial[rule], target) for rule in ("A_opt", "Uniform")]
            row += [*pair, points(pair)]
        rows.append(row)
    ends = ["trained on all labels"]
    for _, trial in whole:
        pair = [short(min(trial[rule]["final"].values())) for rule in ("A_opt", "Uniform")]
        ends += [*pair, points(pair)]
    head = ["round"]
    for k, _ in whole:
        head += [f"A_opt, trial {k}", f"Uniform, trial {k}", "points ahead"]
    return table(head, [*rows, ends])


def points(pair: list[str]) -> str:
    """How far the first of two shown accuracies is ahead."""
    return f"{100 * (float(pair[0]) - float(pair[1])):+.1f}".replace("-", "−") if all(pair) else ""


def costs(rows: list[Found]) -> str:
    """Microseconds an image."""
    shown = [
        [row["setting"], *(f"{row[key]:.0f}" if row[key] is not None else "" for key in ("update_us", "forward_us"))]
        for row in rows
    ]
    return table(["setting", "update, µs", "forward only, µs"], shown)


def sizes(found: Found) -> str:
    """Overhead and memory."""
    lines = [
        f"- Overhead: {one['rounds']} rounds cost {one['ratio']:.2f} times the CPU time of a bare PyTorch loop with the same "
        f"passes on the same images, in the same process ({one['date']})."
        for one in found["overhead"]
    ]
    for chunk, rows in groupby(found["memory"], key=lambda row: row["chunk"]):
        peaks = ", ".join(f"{r['peak_mib']:.0f} MiB with {r['images']:,} images ({r['data_mib']:g} MiB)" for r in rows)
        lines.append(f"- Peak memory at chunk {chunk}: {peaks}.")
    return "\n".join(lines)


def blocks() -> dict[str, str]:
    """Everything on the page."""
    found, single = kept("images.json"), data_with_single_runs()
    made = {
        "images-made": f"{found['cores']} cores, no GPU, {versions(found['versions'])}.{note(found)}\n\n{lengths(single)}"
    }
    for data, entry in single.items():
        made |= {f"{data}-curves": curves(data, entry), f"{data}-groups": groups(entry)}
        if compared := leads(entry):
            made[f"{data}-leads"] = compared
    if (RESULTS / "images-fashion-long.json").exists():
        made["fashion-mnist-long"] = again(single["fashion-mnist"])
    made["images-summary"] = summary(single)
    return made | {"images-costs": costs(found["costs"]), "images-sizes": sizes(found)}

"""docs/results.md and docs/tables.md: rules compared on tables."""

from typing import Any

from blocks.text import kept, note, short, table, versions

RULES = {"optimistic:c0=0.1": "A_opt", "greedy": "Greedy", "uniform": "Uniform", "uncurated": "Uncurated"}
PAPER = {
    "adult": [(0.801, 0.001), (0.800, 0.002), (0.798, 0.002), (0.797, 0.003)],
    "german": [(0.721, 0.035), (0.713, 0.036), (0.716, 0.032), (0.715, 0.038)],
}
METRICS = {"half": "worst_group_accuracy", "all": "final_worst_group_accuracy"}


def means(runs: dict[str, Any], metric: str, paper: list[tuple[float, float]] | None) -> str:
    """Mean ± sd of every rule, a row for each budget."""
    rows = []
    for budget, found in runs.items():
        cells = [found["strategies"][rule][metric] for rule in RULES]
        rows.append([f"{int(budget):,}", *(f"{short(c['mean'])} ± {short(c['sd'])}" for c in cells)])
    if paper:
        rows.append(["*paper*", *(f"*{short(m)} ± {short(s)}*" for m, s in paper)])
    return table(["labels", *RULES.values()], rows)


def gaps(runs: dict[str, Any], metric: str) -> str:
    """A_opt minus each other rule, paired, with 95 % intervals."""
    others = list(RULES)[1:]
    rows = []
    for budget, found in runs.items():
        by_rule = {d["b"]: d for d in found["differences"] if d["metric"] == metric}
        cells = [[short(by_rule[rule][key], 4, sign=True) for key in ("mean", "low", "high")] for rule in others]
        rows.append([f"{int(budget):,}", *(f"{m} [{lo}, {hi}]" for m, lo, hi in cells)])
    return table(["labels", *(f"− {RULES[rule]}" for rule in others)], rows)


def ceilings(found: dict[str, Any], name: str) -> str:
    """What no rule beats by much: models of every row."""
    groups = found[name]["groups"]
    size = sum(group["rows"] for group in groups.values())
    rows = [
        [label, f"{g['rows']:,} ({100 * g['rows'] / size:.1f} %)", short(g["alone"]), short(g["together"])]
        for label, g in groups.items()
    ]
    trials = (
        "one trial" if found[name]["trials"] == 1 else f"the mean of {found[name]['trials']} trials, rows of the first"
    )
    made = f"(`{found['command']}`, {found['date']}, {trials}.)"
    header = ["group", f"rows, of {size:,}", "a model of these rows alone", "a model of all rows"]
    return f"{table(header, rows)}\n\n{made}"


def big_table() -> str:
    """A pool larger than memory: seconds and peaks."""
    found = kept("big-table.json")
    read, ours = found["pyarrow"], found["evenhand"]
    rows = [
        ["pyarrow reads the group and label columns", f"{read['read']:.2f}", "1", f"{read['peak_mib']:.0f} MiB"],
        ["first request", f"{ours['first_request']:.2f}", f"{ours['first_request'] / read['read']:.1f}", ""],
        [
            "first rows of every group read",
            f"{ours['first_rows']:.2f}",
            f"{ours['first_rows'] / read['read']:.1f}",
            f"{ours['peak_mib']:.0f} MiB",
        ],
    ]
    made = f"(`{found['command']}`, best of {found['repeats']}, {found['date']}, {found['cores']} cores.{note(found)})"
    return table(["", "seconds", "times pyarrow's", "peak memory"], rows) + f"\n\n{made}"


def unlabelled() -> str:
    """A million rows without labels: every command of the loop."""
    found = kept("unlabelled.json")
    steps = [("the first command, which registers the pool", found["register"])]
    steps += [(f"labels given back, round {k}", step) for k, step in enumerate(found["rounds"], start=1)]
    rows = [[name, f"{step['seconds']:.1f}", f"{step['peak_mib']:.0f} MiB"] for name, step in steps]
    made = (
        f"(`{found['command']}`, {found['date']}, {found['cores']} cores, {versions(found['versions'])}.{note(found)})"
    )
    units = {"seconds": "s a round", "peak_mib": "MiB"}
    aims = " ".join(
        f"Aim: at most {aim['aim']:,.0f} {units[name]}; found: {aim['found']:,.{int(name == 'seconds')}f}, "
        f"{'met' if aim['found'] <= aim['aim'] else 'not met'}."
        for name, aim in found["aims"].items()
    )
    return table(["", "seconds", "peak memory"], rows) + f"\n\n{aims}\n\n{made}"


def coverage() -> str:
    """How often the report's intervals cover on groups drawn by lot."""
    found = kept("random-groups.json")
    rows = [
        [
            str(row["groups"]),
            str(row["runs"]),
            *(f"{100 * row[key] / row['runs']:.1f} %" for key in ("picked", "worst_off", "ordinary")),
        ]
        for row in found["coverage"]
    ]
    heads = [
        "groups",
        "runs",
        "the picked group's interval",
        "the interval of the worst-off",
        "an ordinary 95 % interval of the picked group",
    ]
    made = f"(`{found['command']}`, {found['date']}, {versions(found['versions'])}.{note(found)})"
    return table(heads, rows) + f"\n\n{made}"


def blocks() -> dict[str, str]:
    """Rules on Adult and German, the big table, labels made step by step, coverage."""
    found = kept("tables.json")
    made = {"made": f"Measured on {found['date']} with {versions(found['versions'])}: `{found['command']}`."}
    for name, runs in found["runs"].items():
        for part, metric in METRICS.items():
            made[f"{name}-{part}"] = means(runs, metric, PAPER[name] if part == "half" else None)
            made[f"{name}-{part}-gaps"] = gaps(runs, metric)
        made[f"{name}-ceilings"] = ceilings(found["ceilings"], name)
    return made | {"big-table": big_table(), "unlabelled": unlabelled(), "random-groups": coverage()}

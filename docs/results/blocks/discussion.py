"""docs/discussion.md: what `benchmarks/discussion.py` found."""

from typing import Any

from blocks.text import kept, seeds, short, table, versions

Found = dict[str, Any]
SIGNS = {"c0": "c0", "epsilon": "ε"}


def made(found: Found) -> str:
    """Where a part comes from."""
    run = found["run"]
    told = f"`{run['command']}`, {run['date']}, {run['cpu_seconds']:.0f} s of CPU, {seeds(run)}{versions(run['versions'])}."
    return f"\n\n{told}"


def points(gain: Found) -> str:
    """A difference in points with its interval."""
    mean, low, high = (f"{100 * gain[key]:+.2f}".replace("-", "−") for key in ("mean", "low", "high"))
    return f"{mean} [{low}, {high}]"


def grid(found: Found) -> str:
    """The best setting of each sweep, and what it is worth on trials that had no say."""
    rows = []
    for one in found["sweeps"]:
        ends = [row["confirming_mean"] for row in one["settings"]]
        values = [row[one["setting"]] for row in one["settings"]]
        (chosen,) = (row[one["setting"]] for row in one["settings"] if row["strategy"] == one["best"])
        settings = ", ".join(f"{value}: {short(end)}" for value, end in zip(values, ends, strict=True))
        rows.append([one["instance"], f"{SIGNS[one['setting']]} = {chosen}", points(one["advantage"]), settings])
    head = ["instance", "chosen", "points over 0.1 on the other half", "worst group by setting, other half"]
    about = f"{found['budget']:,} labels, {found['trials']} trials: half of them choose, half of them tell.\n\n"
    return about + table(head, rows) + made(found)


def bandits(found: Found) -> str:
    """Accuracy of both groups by the examples of v."""
    head = ["examples of v", *(f"{n:,}" for n in found["v_examples"])]
    rows = [[f"accuracy on {z}", *map(short, found["accuracy"][z])] for z in "uv"]
    rows.append(["error of u's mean, a bandit's arm", *map(short, found["arm_error"])])
    change = found["few_to_many"]
    told = (
        f"{found['u_examples']} examples of u in all of them, {found['trials']} trials. From {found['v_examples'][0]} to "
        f"{found['v_examples'][-1]:,} examples of v the accuracy on v changes by {points(change['v'])} points and that on u by "
        f"{points(change['u'])} (95 % intervals, paired).\n\n"
    )
    return told + table(head, rows) + made(found)


def robust(found: Found) -> str:
    """How far from π* each setting ends, and its worst group."""
    rows = []
    budgets = sorted({run["budget"] for run in found["runs"]})
    for setting in ("c0", "ε"):
        own = [run for run in found["runs"] if run["setting"] == setting]
        for value in sorted({run["value"] for run in own}):
            cells = []
            for budget in budgets:
                (run,) = (r for r in own if (r["value"], r["budget"]) == (value, budget))
                half = 1.96 * run["sd"] / run["trials"] ** 0.5
                cells += [f"{short(run['away'], sign=True)} ± {short(half)}", short(run["worst"]["mean"])]
            rows.append([f"{'A_opt, c0' if setting == 'c0' else 'ε-greedy, ε'} = {value:g}", *cells])
    head = [""] + [f"{what}, {budget:,} labels" for budget in budgets for what in ("share of u less π*", "worst group")]
    trials = " and ".join(str(next(r["trials"] for r in found["runs"] if r["budget"] == b)) for b in budgets)
    about = f"Instance I, π*(u) = {found['pi_star']:.2f}, {trials} trials; ± is half a 95 % interval of the mean.\n\n"
    return about + table(head, rows) + made(found)


def blocks() -> dict[str, str]:
    """The three parts."""
    found = kept("discussion.json")
    parts = {"grid": grid, "bandits": bandits, "robust": robust}
    return {f"discussion-{name}": part(found[name]) for name, part in parts.items() if name in found}

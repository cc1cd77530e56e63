"""README.md and docs/results.md: what Evenhand buys, in a few rows, and the case of `evenhand demo`."""

from typing import Any

from blocks.models import points, signed
from blocks.text import kept, short, table, versions

RULES = {
    "A_opt": "**A_opt**, the default",
    "Uniform": "Uniform: equal numbers from every group",
    "Uncurated": "Uncurated: people as they come",
    "Greedy": "Greedy: always the group with the largest error",
}
NAMES = {"optimistic": "A_opt", "optimistic:c0=0.5": "A_opt, c0 = 0.5", "uniform": "Uniform", "uncurated": "Uncurated"}


def buys(part: dict[str, Any]) -> str:
    """What every rule gains over the better simple one: its regret with the other sign."""
    found = part["found"]["regrets"]
    cells = part["found"]["cells"]
    rows = []
    for rule, title in RULES.items():
        gain = [-found[rule][key] for key in ("mean", "high", "low")]
        rows.append([title, points(gain, 2), signed(-least(cells, rule)), signed(-found[rule]["largest"])])
    header = ["rule", "on average, points [95 %]", "at its best", "at its worst"]
    text = (
        f"({len({cell['source'] for cell in cells})} data sets with three budgets each; the interval is over data sets. Measured by `{part['run']['command']}`, "
        f"on {part['run']['date']}.)"
    )
    return f"{table(header, rows)}\n\n{text}"


def least(cells: list[dict[str, Any]], rule: str) -> float:
    """The smallest regret of a rule."""
    return float(min(cell["regret"][rule][0] for cell in cells))


def demo(part: dict[str, Any]) -> str:
    """Adult by age and sex."""
    found, run = part["found"], part["run"]
    measure = "final_worst_group_accuracy"
    rows = []
    for rule, values in found["strategies"].items():
        gaps = [gap(found, rule, other, measure) for other in ("uniform", "uncurated")]
        mean, sd = (short(values[measure][key]) for key in ("mean", "sd"))
        rows.append([NAMES[rule], f"{mean} ± {sd}", *gaps])
    header = ["rule", "worst group's test accuracy", "− Uniform, points [95 %]", "− Uncurated, points [95 %]"]
    text = f"`{run['command']}`, {run['date']}, {versions(run['versions'])}."
    return f"{table(header, rows)}\n\n{text}"


def gap(found: dict[str, Any], rule: str, other: str, measure: str) -> str:
    """The paired difference of two rules, where it was made."""
    for d in found["differences"]:
        if (d["a"], d["b"], d["metric"]) == (rule, other, measure):
            return points([100 * d[key] for key in ("mean", "low", "high")])
    return ""


def blocks() -> dict[str, str]:
    """Both tables."""
    return {"buys": buys(kept("models.json")["boldness"]), "demo": demo(kept("demo.json"))}

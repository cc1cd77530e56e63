"""README.md and docs/results.md: what Evenhand buys, in a few rows, and the case of `evenhand demo`."""

from typing import Any

from blocks.data_sets import SYNTHETIC, counted, over_data_sets
from blocks.models import points, regret_of, signed
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
        gain = points(gain_of(cells, rule), 2)
        rows.append([title, gain, signed(-least(cells, rule)), signed(-found[rule]["largest"])])
    header = ["rule", "on average, points [95 %]", "at its best", "at its worst"]
    text = (
        f"({counted(cell['source'] for cell in cells)}, with three budgets each; sources of one data set are averaged first, and the interval is over "
        f"data sets; without the synthetic ones ({' and '.join(SYNTHETIC)}) A_opt gains {points(gain_of(cells, 'A_opt', real=True), 2)}. "
        f"Measured by `{part['run']['command']}`, on {part['run']['date']}.)"
    )
    return f"{table(header, rows)}\n\n{text}"


def gain_of(cells: list[dict[str, Any]], rule: str, *, real: bool = False) -> dict[str, float]:
    """The mean gain of a rule over data sets, in points."""
    return over_data_sets(((source, -regret) for source, regret in regret_of(cells, rule)), real=real)


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

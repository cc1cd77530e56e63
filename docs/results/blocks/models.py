"""docs/model.md: what `benchmarks/models.py` measured."""

from typing import Any

from blocks.data_sets import SYNTHETIC, counted, listed, over_data_sets
from blocks.text import duration, kept, seeds, short, table, versions


def told(part: dict[str, Any], more: str) -> str:
    """How and when a part was made."""
    run = part["run"]
    return f"`{run['command']}`, {run['date']}: {more}, {seeds(run)}{versions(run['versions'])}."


def signed(value: float, digits: int = 1) -> str:
    """A number of points with its sign."""
    text = f"{value:+.{digits}f}".replace("-", "−")
    return f"0.{'0' * digits}" if float(f"{value:.{digits}f}") == 0 else text


def points(value: Any, digits: int = 1) -> str:
    """A difference in points with its interval; a list is mean, low and high."""
    mean, low, high = value if isinstance(value, list) else (value[name] for name in ("mean", "low", "high"))
    return f"{signed(mean, digits)} [{signed(low, digits)}, {signed(high, digits)}]"


def aims(part: dict[str, Any]) -> str:
    """The sources of which a gain is expected."""
    rows = [
        [
            row["source"],
            f"{row['budget']:,}",
            str(row["trials"]),
            short(row["plain"]),
            short(row["chosen"]),
            points(row),
        ]
        for row in part["found"]
    ]
    header = ["source", "labels by Uniform", "trials", "plain", "chosen", "chosen − plain, points [95 %]"]
    return f"{told(part, 'worst-group test accuracy on a seed of its own')}\n\n{table(header, rows)}"


def price(part: dict[str, Any]) -> str:
    """No price: every source, budget and rule."""
    found = part["found"]
    text = told(part, f"{found['cells']} cells (source × budget × rule), {found['trials']} trials each")
    mean = over_data_sets((row["source"], row[rule]["mean"]) for row in found["rows"] for rule in ("Uniform", "A_opt"))
    summary = (
        f"Mean of chosen − plain, with its interval over data sets: **{points(mean, 2)} points**; the least cell {signed(found['least'])}; "
        f"cells below −1 point beyond a Bonferroni interval: {found['below_minus_1']}; cells whose own 95 % interval is above 0: "
        f"{found['won']}, below 0: {found['lost']}."
    )
    rows = [
        [row["source"], f"{row['budget']:,}", short(row["plain"]), *(points(row[key]) for key in KEYS)]
        for row in found["rows"]
    ]
    header = ["source", "labels", "Uniform, plain", *KEYS.values()]
    return f"{text}\n\n{summary}\n\n{table(header, rows)}"


KEYS = {
    "Uniform": "Uniform: chosen − plain",
    "A_opt over Uniform": "plain: A_opt − Uniform",
    "A_opt": "A_opt: chosen − plain",
    "A_opt chosen over Uniform plain": "A_opt chosen − Uniform plain",
}


def substitutes(part: dict[str, Any]) -> str:
    """Sampling and re-weighting side by side, over data sets."""
    cells = part["found"]["rows"]
    names = {
        "Uniform": "re-weighting alone: Uniform, chosen − Uniform, plain",
        "A_opt over Uniform": "sampling alone: A_opt, plain − Uniform, plain",
        "A_opt chosen over Uniform plain": "both: A_opt, chosen − Uniform, plain",
        "A_opt": "re-weighting after A_opt: A_opt, chosen − A_opt, plain",
        "A_opt chosen over Uniform chosen": "sampling where all re-weight: A_opt, chosen − Uniform, chosen",
    }
    rows = []
    for key, title in names.items():
        found = [(row["source"], row[key]["mean"]) for row in cells]
        rows.append([title, *(points(over_data_sets(found, real=real), 2) for real in (False, True))])
    header = ["worst-group test accuracy", "points [95 % over data sets]", "the same, real data alone"]
    return f"{table(header, rows)}\n\n{counted(row['source'] for row in cells)}."


def rates(part: dict[str, Any]) -> str:
    """Folds and rate of Minimax."""
    found = part["found"]
    tables = []
    for name, title in (("choosing", "choosing seed"), ("confirming", "fresh seed")):
        rows = [
            [str(row["folds"]), f"{row['rate']:g}", points(row, 2), signed(row["least"]), row["least_at"]]
            for row in in_points(found[name])
        ]
        header = ["folds", "rate", f"{title}, {found[name][0]['cells']} cells: gain over plain", "least cell", "which"]
        tables.append(table(header, rows))
    return (
        told(part, f"{found['trials']} trials a cell, gain in points [95 % over sources, not data sets]")
        + "\n\n"
        + "\n\n".join(tables)
    )


def in_points(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Shares as points."""
    return [row | {key: 100 * row[key] for key in ("mean", "low", "high", "least")} for row in rows]


def boldness(part: dict[str, Any]) -> str:
    """Regret by c0 on the seed that chooses."""
    found = part["found"]["choosing"]
    rows = [
        [
            c0,
            signed(v["mean"], 2),
            f"{short(v['above'])} ± {short(v['above_se'])}" if v["above"] else "",
            signed(v["largest"]),
        ]
        for c0, v in found.items()
    ]
    header = ["c0", "mean regret over cells, points", "above the best ± s.e. over cells", "largest regret"]
    cells = len(part["found"]["cells"])
    text = told(part, f"{cells} cells (source × budget), 30 to 100 trials each, plain models on all labels")
    return f"{text}\n\n{table(header, rows)}"


def regrets(part: dict[str, Any]) -> str:
    """Regret of every rule on the fresh seed, over data sets, and how far A_opt is ahead of it."""
    found, cells = part["found"]["regrets"], part["found"]["cells"]
    rows = []
    for rule, v in found.items():
        own = regret_of(cells, rule)
        ahead = [
            (source, value - base) for (source, value), (_, base) in zip(own, regret_of(cells, "A_opt"), strict=True)
        ]
        below = sum(cell["regret"][rule][2] < 0 for cell in cells)
        over = [points(over_data_sets(own, real=real), 2) for real in (False, True)]
        lead = "" if rule == "A_opt" else points(over_data_sets(ahead), 2)
        rows.append([rule, *over, lead, signed(v["largest"]), f"{v['beyond']} / {below}"])
    header = ["rule", "mean regret, points [95 % over data sets]", "the same, real data alone"]
    header += ["A_opt ahead of it, points [95 % over data sets]"]
    header += ["largest", "cells whose own 95 % interval is above 0 / below 0"]
    about = f"{counted(cell['source'] for cell in cells)}, {len(cells)} cells (source × budget). The data sets: {listed()}. "
    about += f"Real data are all but {' and '.join(SYNTHETIC)}."
    return f"{table(header, rows)}\n\n{about}"


def regret_of(cells: list[dict[str, Any]], rule: str) -> list[tuple[str, float]]:
    """Source and mean regret of every cell, in points."""
    return [(cell["source"], cell["regret"][rule][0]) for cell in cells]


def regret_cells(part: dict[str, Any]) -> str:
    """The same by source and budget."""
    rules = ("A_opt", "Uniform", "Uncurated", "Greedy")
    rows = [
        [
            cell["source"],
            f"{cell['budget']:,}",
            cell["better"].capitalize(),
            short(cell["accuracy"]),
            *("0" if rule.lower() == cell["better"] else points(cell["regret"][rule]) for rule in rules),
        ]
        for cell in part["found"]["cells"]
    ]
    return table(["source", "labels", "the better one", "its accuracy", *rules], rows)


def methods(part: dict[str, Any]) -> str:
    """Published ways to the same aim."""
    found = part["found"]
    names = list(found["overall"])
    rows = [
        [method, points(gain_of(found["cells"], method), 2), signed(v["least"]), duration(v["seconds"])]
        for method, v in found["overall"].items()
        if method != "plain"
    ]
    header = ["method", "gain over plain, points [95 % over data sets]", "least source", "CPU seconds a fit, mean"]
    by_source = [
        [cell["source"], f"{cell['budget']:,}", "equal" if cell["even"] else "the population's"]
        + [short(cell["error"][method]) for method in names]
        for cell in found["cells"]
    ]
    text = told(
        part,
        f"{counted(cell['source'] for cell in found['cells'])}, {found['trials']} trials each, worst-group test error",
    )
    return f"{text}\n\n{table(header, rows)}\n\n{table(['source', 'labels', 'shares', *names], by_source)}"


def gain_of(cells: list[dict[str, Any]], method: str) -> dict[str, float]:
    """By how many points a method is better than the plain fit, over data sets."""
    return over_data_sets((cell["source"], 100 * cell["gain"][method][0]) for cell in cells)


def costs(part: dict[str, Any]) -> str:
    """Seconds."""
    found = part["found"]
    first = [
        [name, f"{row['rows'][0]:,} × {row['rows'][1]:,}", duration(row["seconds"]), row["chosen"]]
        for name, row in found["final_model"].items()
    ]
    second = [
        [
            row["source"],
            f"{row['rows']:,}",
            duration(row["fairlearn_seconds"]),
            *(f"{duration(row[f'{name}_seconds'])}, {row[f'{name}_ratio']:.0f}×" for name in ("minimax", "in_sample")),
            *(short(row[f"{name}_error"]) for name in ("plain", "fairlearn", "minimax", "in_sample")),
        ]
        for row in found["fairlearn"]
    ]
    trials = found["fairlearn"][0]["trials"]
    header = [
        "rows of",
        "number",
        "fairlearn",
        "Minimax",
        "with folds=0",
        "error: plain",
        "fairlearn",
        "Minimax",
        "folds=0",
    ]
    text = told(
        part, f"seconds of one processor, beside other work on {part['run']['cores']} cores; the least of {trials} fits"
    )
    return f"{text}\n\n{table(['final_model()', 'rows', 'seconds', 'chosen'], first)}\n\n{table(header, second)}"


def blocks() -> dict[str, str]:
    """Every part that was run."""
    found = kept("models.json")
    made = {
        "aims": [aims], "price": [price, substitutes], "rates": [rates], "boldness": [boldness, regrets, regret_cells],
        "methods": [methods], "costs": [costs],
    }  # fmt: skip
    return {
        f"model-{function.__name__.replace('_', '-')}": function(found[part])
        for part, functions in made.items()
        if part in found
        for function in functions
    }

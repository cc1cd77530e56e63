"""docs/risks.md: what `benchmarks/risks.py` measured."""

from typing import Any

from blocks.text import kept, short, table, versions


def comparison(found: dict[str, Any]) -> str:
    """The rules on one source, by both risks, and the paired differences."""
    run, groups = found["run"], found["groups"]
    told = (
        f"`{run['command']}`, {run['date']}: {found['budget']:,} labels, {found['trials']} trials, positive class "
        f"`{found['positive']}`, models trained on half of the labels, {run['seconds']:.0f} s on {run['cores']} shared cores, "
        f"{versions(run['versions'])}."
    )
    rows = []
    for label, rule in found["rules"].items():
        worst = [
            f"{short(rule['worst'][name]['mean'])} ± {short(rule['worst'][name]['sd'])}" for name in ("fnr", "error")
        ]
        shares = " / ".join(short(rule["mixture"][group], 2) for group in groups)
        rows.append([label, *worst, shares])
    header = [
        "",
        "false negative rate of the worst group",
        "error of the worst group",
        f"shares ({' / '.join(groups)})",
    ]
    less = [
        [f"{other} − A_opt by fnr", *(points(value[name]) for name in ("fnr", "error"))]
        for other, value in found["less"].items()
    ]
    paired = ["paired difference, points [95 %]", "false negative rate", "error"]
    return f"{told}\n\n{table(header, rows)}\n\n{table(paired, less)}"


def points(value: dict[str, float]) -> str:
    """A difference in points with its interval."""
    mean, low, high = (f"{100 * value[name]:+.1f}".replace("-", "−") for name in ("mean", "low", "high"))
    return f"{mean} [{low}, {high}]"


def blocks() -> dict[str, str]:
    """The synthetic source and Adult."""
    return {f"risks-{name}": comparison(found) for name, found in kept("risks.json").items()}

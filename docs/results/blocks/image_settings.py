"""docs/results-images.md: ways to train on images, dips, and c1 of A_opt+."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from blocks.image_trials import lead, spread
from blocks.text import RESULTS, kept, short, table, versions
from evenhand.claims.paired import paired

Found = dict[str, Any]
FIRST = "one step, as the paper"
DEFAULT = "one epoch"


def made(found: Found) -> str:
    """Where the numbers come from."""
    return f"\n\n(`{found['command']}`, {found['date']}, {found['cores']} cores, {versions(found['versions'])}.)"


def values(found: Found, way: str, rule: str) -> dict[int, float]:
    """Worst-group accuracy by trial."""
    return {run["trial"]: run["worst"] for run in found["runs"] if (run["way"], run["rule"]) == (way, rule)}


def seconds(found: Found, way: str, rule: str) -> float:
    """CPU seconds of a run, mean of the trials."""
    own = [run["cpu_seconds"] for run in found["runs"] if (run["way"], run["rule"]) == (way, rule)]
    return float(np.mean(own))


def as_long(found: Found, way: str, ways: list[str]) -> str | None:
    """The cheapest way in which Uniform computes at least as long as A_opt does in this one."""
    longer = [other for other in ways if seconds(found, other, "uniform") >= seconds(found, way, "A_opt")]
    return min(longer, key=lambda other: seconds(found, other, "uniform"), default=None)


def updates(found: Found) -> str:
    """A row for each way to update the network."""
    rows = []
    ways = list(dict.fromkeys(run["way"] for run in found["runs"]))
    for way in ways:
        ours, even = values(found, way, "A_opt"), values(found, way, "uniform")
        if not ours or not even:
            continue
        gains = ["" if way == base else lead(ours, values(found, base, "A_opt")) for base in (FIRST, DEFAULT)]
        cells = [way, f"{len(ours.keys() & even.keys())}", *(spread(list(one.values())) for one in (ours, even))]
        other = as_long(found, way, ways)
        longer = "" if other is None else f"{lead(ours, values(found, other, 'uniform'))} ({other.partition(',')[0]})"
        spent = " / ".join(f"{seconds(found, way, rule):.0f}" for rule in ("A_opt", "uniform"))
        rows.append([*cells, lead(ours, even), longer, *gains, spent])
    head = ["updates a round", "trials", "A_opt", "Uniform", "A_opt − Uniform, equal labels, points [95 %]"]
    head += ["the same, Uniform computing at least as long (its updates)"]
    head += [f"A_opt − A_opt with {base.partition(',')[0]}, points [95 %]" for base in (FIRST, DEFAULT)]
    head += ["CPU seconds a run, A_opt / Uniform"]
    told = f"{found['rounds']} rounds, {found['labels']:,} labels, worst pair, trained on half.\n\n"
    return told + table(head, rows) + made(found)


def trend(found: Found) -> str:
    """A row for each c1, and which of them are beyond their interval."""
    rows = []
    beyond: dict[str, list[str]] = {"behind": [], "ahead of": []}
    base = values(found, FIRST, "A_opt")
    settings: dict[str, str] = {}
    for rule in dict.fromkeys(run["rule"] for run in found["runs"]):
        own = values(found, FIRST, rule)
        name, gap = "A_opt, no trend term", ""
        if rule != "A_opt":
            settings = dict(part.split("=") for part in rule.partition(":")[2].split(","))
            name, gap = f"A_opt+, c1 = {settings['c1']}", lead(own, base)
            trials = sorted(own.keys() & base.keys())
            _, low, high = paired(np.array([own[t] for t in trials]), np.array([base[t] for t in trials]))
            if low > 0 or high < 0:
                beyond["ahead of" if low > 0 else "behind"].append(settings["c1"])
        shares = largest_shares([run["mixture"] for run in found["runs"] if run["rule"] == rule])
        rows.append([name, f"{len(own)}", spread(list(own.values())), gap, shares])
    head = ["rule", "trials", "worst pair", "− A_opt, points [95 %]"]
    head += ["a trial's largest share, mean: its pair, and in how many trials"]
    ends = "; ".join(f"{where} A_opt: {joined(c1s, 'c1 = ') or 'none'}" for where, c1s in beyond.items())
    told = (
        f"{found['rounds']} rounds, {found['labels']:,} labels; c0 = {settings['c0']}, window {settings['window']}.\n\n"
    )
    return f"{told}{table(head, rows)}\n\nBeyond the interval {ends}.{made(found)}"


def joined(items: list[str], before: str) -> str:
    """Some settings in a row."""
    return before + " and ".join(filter(None, [", ".join(items[:-1]), items[-1]])) if items else ""


def largest_shares(mixtures: list[dict[str, float]]) -> str:
    """The mean over trials of each one's largest share, and which pair it was in how many of them."""
    pairs = Counter(max(mixture, key=mixture.__getitem__) for mixture in mixtures)
    mean = np.mean([max(mixture.values()) for mixture in mixtures])
    return f"{100 * mean:.0f} %: {', '.join(f'{pair} in {count}' for pair, count in pairs.most_common())}"


def in_points(own: np.ndarray, other: np.ndarray, over: Callable[..., Any]) -> str:
    """The difference of two ways in points with its interval: of the means of rounds, or of the lowest ones."""
    gain = paired(over(own, axis=1), over(other, axis=1))
    mean, low, high = (f"{100 * end:+.1f}".replace("-", "−") for end in (gain.mean, gain.low, gain.high))
    return f"{mean} [{low}, {high}]"


def dips(found: Found) -> str:
    """A row for each way to answer."""
    rows = []
    plain = np.array(found["accuracy"]["as it is"])
    for row in found["ways"]:
        own = np.array(found["accuracy"][row["way"]])
        # what holds for the lowest round of a trial, and for the mean of its rounds
        deeper, gain = (in_points(own, plain, how) if row["gain"] else "" for how in (np.min, np.mean))
        often = [f"{100 * row[depth]:.1f} %" for depth in ("dips", "deep")]
        rows.append([row["way"], short(row["mean"]), gain, short(row["lowest"]), deeper, *often])
    head = [
        "what answers",
        "mean over rounds",
        "gain, points [95 %]",
        "lowest round, mean of the trials",
        "gain, points [95 %]",
        "rounds two points below the best so far",
        "ten points",
    ]
    told = (
        f"Uniform draws, {found['batch']} training images a round, rounds {found['first']} to {found['rounds']}, {found['trials']} trials; "
        "test images of T-shirt/Shirt.\n\n"
    )
    return told + table(head, rows) + made(found)


def blocks() -> dict[str, str]:
    """What has been run."""
    parts = {"image-settings": updates, "image-trend": trend, "image-dips": dips}
    return {name: part(kept(f"{name}.json")) for name, part in parts.items() if (RESULTS / f"{name}.json").exists()}

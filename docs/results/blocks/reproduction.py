"""docs/reproduction.md: what `evenhand reproduce` found."""

from collections.abc import Iterator
from typing import Any

from blocks.text import RESULTS, kept, versions
from evenhand.experiments.catalogue import experiments
from evenhand.experiments.verdicts import FAMILY, FEWEST, LEVEL, count


def verdicts(entries: dict[str, Any]) -> str:
    """A row for every claim."""
    rows = ["| experiment | claim | verdict | numbers |", "|---|---|---|---|"]
    for name, entry in entries.items():
        for claim in entry.get("claims", []):
            verdict = (
                claim["verdict"] if claim["verdict"] not in ("holds", "does not hold") else f"**{claim['verdict']}**"
            )
            rows.append(
                f"| [{name}](#{name}) | {claim['text']} | {verdict} | {claim['evidence'].replace('; ', '<br>')} |"
            )
        if entry["status"] == "skipped":
            rows.append(f"| {name} | | skipped | the data were not there |")
    return "\n".join(rows)


def stated(entries: dict[str, Any]) -> str:
    """What each test asks for, from the code: the claims that were judged by it are above."""
    rows = ["| experiment | claim | test |", "|---|---|---|"]
    for name, entry in entries.items():
        rows += [
            f"| {name} | {claim['text']} | {claim['test'].replace('; ', '<br>')} |" for claim in entry.get("claims", [])
        ]
    return "\n".join(rows)


def family() -> str:
    """How many comparisons share the error probability, and the level that gives."""
    made = sum(count(experiment.tests) for experiment in experiments().values())
    return (
        f"The tests make {made} comparisons of samples; {FAMILY} are allowed for, so every interval has the level "
        f"1 − 0.05/{FAMILY} = {100 * LEVEL:.2f} %, and with 95 % all of them cover at once, as far as means of trials are normal: with five or ten trials that "
        f"cannot be looked at. Fewer than {FEWEST} trials are not judged."
    )


def section(name: str, entry: dict[str, Any]) -> str:
    """Figure, numbers and how they came about."""
    lines = [f"![{entry['title']}](results/{name}.png)", "", f"The paper: {entry['paper']} {entry['note']}".strip(), ""]
    lines += ["| | paper | measured |", "|---|---|---|"]
    for n in entry["numbers"]:
        lines.append(f"| {n['name']} | {number(n['paper'], n['paper_sd'])} | {number(n['measured'], n['sd'])} |")
    lines += ["", f"`{entry['command']}`, {entry['date']}, {took(entry)}, {drawn(entry)}{versions(entry['versions'])}."]
    return "\n".join(lines)


def took(entry: dict[str, Any]) -> str:
    """Time on the clock and work; the work alone where most of it was done before and kept."""
    clock, work = f"{entry['seconds']:.0f} s on {entry['cores']} cores", f"{entry['worker_seconds']:.0f} s of work"
    if entry["seconds"] * entry["cores"] < entry["worker_seconds"] / 2:
        return work
    return f"{clock} ({work})" if entry["worker_seconds"] else clock


def drawn(entry: dict[str, Any]) -> str:
    """Seeds and trials, where something is drawn at random."""
    made = {**entry.get("studies", {}), **entry.get("runs", {})}.values()
    if not made:
        return ""
    seeds = sorted({study["seed"] for study in made})
    trials = sorted({study["trials"] for study in made})
    return f"seed {' and '.join(map(str, seeds))}, {' or '.join(f'{n:,}' for n in trials)} trials, "


def number(value: float | None, sd: float | None) -> str:
    """Mean and standard deviation over trials."""
    if value is None:
        return "—"
    return f"{value:.3f}" if sd is None else f"{value:.3f} ± {sd:.3f}"


def seconds(entries: dict[str, Any]) -> str:
    """The work of all experiments that were run, without and with the image trials."""
    work = {name: entry["worker_seconds"] for name, entry in entries.items() if "worker_seconds" in entry}
    shared = [name for name in work if name == "table-final" or name.endswith(("-groups", "-mixture"))]
    alone = sum(value for name, value in work.items() if name not in (*shared, *IMAGES))
    images = sum(spent for path in RESULTS.glob("image*.json") for spent in cpu_seconds(kept(path.name)))
    return (
        f"{alone / 60:.0f} minutes of one core without the images, and {images / 3600:.1f} hours of one core for all runs on images, those of "
        "settings, ceilings and full length included; figures that share trials count once."
    )


def times(entries: dict[str, Any]) -> str:
    """What `reproduce` takes on the clock, without the images."""
    quick = kept("quick.json")
    paper = sum(entry["seconds"] for name, entry in entries.items() if name not in IMAGES and "seconds" in entry)
    cores = max(entry["cores"] for entry in entries.values() if "cores" in entry)
    return (
        f"- `--scale quick`, without images: {quick['seconds']:.0f} s on {quick['cores']} cores (`{quick['command']}`, {quick['date']}, "
        f"{versions(quick['versions'])}).\n"
        f"- `--scale paper`, without images: {paper / 60:.1f} minutes on {cores} cores ([what it found](reproduction.md))."
    )


def cpu_seconds(found: Any) -> Iterator[float]:
    """What the runs of a file took, as far as they know."""
    if isinstance(found, dict):
        yield from (value for key, value in found.items() if key == "cpu_seconds")
    for inner in found.values() if isinstance(found, dict) else found if isinstance(found, list) else ():
        yield from cpu_seconds(inner)


IMAGES = ("fig-fashion", "fig-cifar", "fig-utkface")


def searched(found: dict[str, Any]) -> str:
    """What the search for SyntheticModel2's numbers tried, and the rounded settings in full."""
    tried = found["searched"]
    good = sum(one["score"] >= 0.05 for one in tried)
    best = max(one["score"] for one in tried)
    lines = [f"The search tried {len(tried)} settings; {good} scored 5 points or more, the best {100 * best:.1f}."]
    lines += [
        "",
        "| rounded setting, trials 0–99 | A_opt+ on v | A_opt | Greedy | gain | on u |",
        "|---|---|---|---|---|---|",
    ]
    for one in found["rounded"]:
        changed = changed_words(one, found["rounded"][0]) or "**the one kept**"
        rules = [one[label] for label in ("A_opt+", "A_opt", "Greedy")]
        on_v, on_u = " | ".join(f"{rule['v']:.3f}" for rule in rules), ", ".join(f"{rule['u']:.3f}" for rule in rules)
        lines.append(f"| {changed} | {on_v} | {one['gain']:.3f} | {on_u} |")
    first, (rounded, search) = found["first_choice"], (found["runs"][part] for part in ("rounded", "search"))
    lines += [
        "",
        f"Our first choice, {changed_words(first, found['rounded'][0])}, gains {100 * first['gain']:.1f} points on trials 1000–1099. "
        f"(`{search['command']}`, {search['date']}; `{rounded['command']}`, {rounded['date']}.)",
    ]
    return "\n".join(lines)


def changed_words(one: dict[str, Any], first: dict[str, Any]) -> str:
    """What a setting has otherwise than the first of the rounded ones."""
    return ", ".join(f"{k} {v:g}" for k, v in one["settings"].items() if v != first["settings"][k])


def blocks() -> dict[str, str]:
    """All experiments, their verdicts, and the search for SyntheticModel2."""
    entries = kept("results.json")["experiments"]
    found = {"verdicts": verdicts(entries), "tests": stated(entries), "family": family(), "seconds": seconds(entries)}
    found["search"] = searched(kept("synthetic2-search.json"))
    if (RESULTS / "quick.json").exists():
        found["reproduce-times"] = times(entries)
    return found | {name: section(name, entry) for name, entry in entries.items() if "numbers" in entry}

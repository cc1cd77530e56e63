"""docs/reproduction.md: what `evenhand reproduce` found."""

from typing import Any

from blocks.text import kept, versions


def verdicts(entries: dict[str, Any]) -> str:
    """A row for every claim."""
    rows = ["| experiment | claim | verdict | numbers |", "|---|---|---|---|"]
    for name, entry in entries.items():
        for claim in entry.get("claims", []):
            verdict = claim["verdict"] if claim["verdict"] != "holds" else "**holds**"
            rows.append(f"| [{name}](#{name}) | {claim['text']} | {verdict} | {claim['evidence']} |")
        if entry["status"] == "skipped":
            rows.append(f"| {name} | | skipped | the data were not there |")
    return "\n".join(rows)


def section(name: str, entry: dict[str, Any]) -> str:
    """Figure, numbers and how they came about."""
    lines = [f"![{entry['title']}](results/{name}.png)", "", f"The paper: {entry['paper']} {entry['note']}".strip(), ""]
    lines += ["| | paper | measured |", "|---|---|---|"]
    for n in entry["numbers"]:
        lines.append(f"| {n['name']} | {number(n['paper'], n['paper_sd'])} | {number(n['measured'], n['sd'])} |")
    lines += ["", f"`{entry['command']}`, {entry['date']}, {entry['seconds']:.0f} s on {entry['cores']} cores"]
    lines[-1] += f" ({entry['worker_seconds']:.0f} s of work), {versions(entry['versions'])}."
    return "\n".join(lines)


def number(value: float | None, sd: float | None) -> str:
    """Mean and standard deviation over trials."""
    if value is None:
        return "—"
    return f"{value:.3f}" if sd is None else f"{value:.3f} ± {sd:.3f}"


def seconds(entries: dict[str, Any]) -> str:
    """How long the experiments took together, by scale."""
    total: dict[str, float] = {}
    for entry in entries.values():
        if "seconds" in entry:
            total[entry["scale"]] = total.get(entry["scale"], 0.0) + entry["seconds"]
    return ", ".join(f"scale {scale}: {value / 60:.1f} minutes" for scale, value in total.items())


def searched(found: dict[str, Any]) -> str:
    """What the search for SyntheticModel2's numbers tried, and the rounded settings in full."""
    tried = found["searched"]
    good = sum(one["score"] >= 0.05 for one in tried)
    best = max(one["score"] for one in tried)
    lines = [f"The search tried {len(tried)} settings; {good} scored 5 points or more, the best {100 * best:.1f}."]
    first = found["rounded"][0]["settings"]
    lines += [
        "",
        "| rounded setting, trials 0–99 | A_opt+ on v | A_opt | Greedy | gain | on u |",
        "|---|---|---|---|---|---|",
    ]
    for one in found["rounded"]:
        changed = ", ".join(f"{k} {v:g}" for k, v in one["settings"].items() if v != first[k]) or "**the one kept**"
        rules = [one[label] for label in ("A_opt+", "A_opt", "Greedy")]
        on_v, on_u = " | ".join(f"{rule['v']:.3f}" for rule in rules), ", ".join(f"{rule['u']:.3f}" for rule in rules)
        lines.append(f"| {changed} | {on_v} | {one['gain']:.3f} | {on_u} |")
    return "\n".join(lines)


def blocks() -> dict[str, str]:
    """All experiments, their verdicts, and the search for SyntheticModel2."""
    entries = kept("results.json")["experiments"]
    found = {"verdicts": verdicts(entries), "seconds": seconds(entries)}
    found["search"] = searched(kept("synthetic2-search.json"))
    return found | {name: section(name, entry) for name, entry in entries.items() if "numbers" in entry}

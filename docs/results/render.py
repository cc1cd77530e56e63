"""Write the numbers of `results.json` into docs/reproduction.md; `--check` only says whether they are there."""

import json
import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAGE = HERE.parent / "reproduction.md"


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
    versions = ", ".join(f"{package} {version}" for package, version in entry["versions"].items())
    lines = [f"![{entry['title']}](results/{name}.png)", "", f"The paper: {entry['paper']} {entry['note']}".strip(), ""]
    lines += ["| | paper | measured |", "|---|---|---|"]
    for n in entry["numbers"]:
        lines.append(f"| {n['name']} | {number(n['paper'], n['paper_sd'])} | {number(n['measured'], n['sd'])} |")
    lines += ["", f"`{entry['command']}`, {entry['date']}, {entry['seconds']:.0f} s on {entry['cores']} cores"]
    lines[-1] += f" ({entry['worker_seconds']:.0f} s of work), {versions}."
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


def searched(kept: dict[str, Any]) -> str:
    """What the search for SyntheticModel2's numbers tried, and the rounded settings in full."""
    tried = kept["searched"]
    good = sum(one["score"] >= 0.05 for one in tried)
    best = max(one["score"] for one in tried)
    lines = [f"The search tried {len(tried)} settings; {good} scored 5 points or more, the best {100 * best:.1f}."]
    first = kept["rounded"][0]["settings"]
    lines += [
        "",
        "| rounded setting, trials 0–99 | A_opt+ on v | A_opt | Greedy | gain | on u |",
        "|---|---|---|---|---|---|",
    ]
    for one in kept["rounded"]:
        changed = ", ".join(f"{k} {v:g}" for k, v in one["settings"].items() if v != first[k]) or "**the one kept**"
        rules = [one[label] for label in ("A_opt+", "A_opt", "Greedy")]
        on_v, on_u = " | ".join(f"{rule['v']:.3f}" for rule in rules), ", ".join(f"{rule['u']:.3f}" for rule in rules)
        lines.append(f"| {changed} | {on_v} | {one['gain']:.3f} | {on_u} |")
    return "\n".join(lines)


def render(text: str) -> str:
    """The page with every block between its marks written anew."""
    entries = json.loads((HERE / "results.json").read_text(encoding="utf-8"))["experiments"]
    blocks = {"verdicts": verdicts(entries), "seconds": seconds(entries)}
    blocks["search"] = searched(json.loads((HERE / "synthetic2-search.json").read_text(encoding="utf-8")))
    blocks |= {name: section(name, entry) for name, entry in entries.items() if "numbers" in entry}

    def fill(found: re.Match[str]) -> str:
        block = blocks.get(found[2], "Not run yet.")
        return f"{found[1]}\n{block}\n{found[4]}"

    return re.sub(r"(<!-- begin ([\w-]+) -->)(.*?)(<!-- end -->)", fill, text, flags=re.DOTALL)


def main() -> int:
    """Write the page, or check it."""
    old = PAGE.read_text(encoding="utf-8")
    new = render(old)
    if "--check" in sys.argv:
        return int(new != old)
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

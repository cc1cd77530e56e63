"""docs/performance.md: what `evenhand bench --full --json` and `benchmarks/rounds.py` measured."""

from typing import Any

from blocks.text import duration, kept, note, significant, table, versions

VERSIONS = ("python", "evenhand", "numpy", "scipy", "scikit-learn")


def amount(value: float, unit: str) -> str:
    """Time of one unit, or megabytes."""
    return f"{value / 1e6:.1f} MB" if unit == "bytes" else f"{duration(value)} per {unit}"


def outcomes(found: list[dict[str, Any]]) -> str:
    """A row for each benchmark, and what there is to say of it."""
    rows = []
    for one in found:
        wanted = f"{'≤' if one['unit'] == 'bytes' else '≥'} {one['target']:g}×"
        wanted += "" if one["reached"] else ": *not reached*"
        times = [amount(one[key], one["unit"]) for key in ("ours", "theirs")]
        rows.append([one["work"], one["baseline"], *times, f"**{significant(one['ratio'])}×**", wanted])
    notes = [f"- {one['name']}: {one['note']}." for one in found if one["note"]]
    header = ["work", "baseline", "Evenhand", "baseline's time", "ratio", "aim"]
    return table(header, rows) + "\n\n" + "\n".join(notes)


def growth(found: list[dict[str, Any]]) -> str:
    """Slopes, first and last sizes."""
    rows = [
        [
            one["name"],
            f"{one['sizes'][0]:,} … {one['sizes'][-1]:,}",
            f"{one['slope']:.2f}",
            *(duration(one["seconds"][end]) for end in (0, -1)),
        ]
        for one in found
    ]
    return table(["what grows", "from … to", "slope", "a round at the start", "at the end"], rows)


def rounds(found: dict[str, Any]) -> str:
    """A round's time, and every step's part of it."""
    rows = []
    for case in found["cases"]:
        whole, *steps = case["seconds"].values()
        parts = [f"{100 * part / whole:.0f} %" for part in (*steps, whole - sum(steps))]
        rows.append([f"{case['case']}, {case['trials']} × {case['rounds']:,} rounds", duration(whole), *parts])
    header = ["A_opt, trials", "a round of one trial", *list(found["cases"][0]["seconds"])[1:], "the rest"]
    told = f"(`{found['command']}`, {found['date']}, {found['cores']} cores, one thread, {versions(found['versions'])}.{note(found)})"
    return f"{table(header, rows)}\n\n{told}"


def blocks() -> dict[str, str]:
    """Ratios, growth, and the machine they belong to."""
    found = kept("bench.json")
    machine = found["machine"]
    told = f"{machine['date']}, {machine['processor']}, {machine['cores']} cores, one thread; "
    told += ", ".join(f"{name} {machine[name]}" for name in VERSIONS) + f"; `{found['command']}`." + note(found)
    made = {"bench": f"{told}\n\n{outcomes(found['benchmarks'])}", "growth": growth(found["growth"])}
    return made | {"rounds": rounds(kept("rounds.json"))}

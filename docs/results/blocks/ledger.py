"""docs/durability.md: what `benchmarks/ledger.py --json` and `make soak` measured."""

from typing import Any

from blocks.text import duration, kept, note, table, versions

NAMES = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
WHAT = {"step": "an `ask` or a `tell`", "append": "an event appended"}


def throughput(rows: list[dict[str, Any]], aim: float) -> str:
    """Ours against bare transactions; every row below the aim is named."""
    shown = []
    for row in rows:
        kind = f", `{row['synchronous']}`" if row.get("synchronous") else ""
        speeds = [f"{row[key]:,.0f}" for key in ("bare_per_second", "ours_per_second")]
        name = NAMES.get(row["database"], row["database"]) + kind
        shown.append([name, WHAT.get(row["what"], row["what"]), f"{row['writers']}", *speeds, f"{row['ratio']:.2f}"])
    missed = [
        f"{line[0]}, {line[1]}, {line[2]} writer{'' if line[2] == '1' else 's'}"
        for line, row in zip(shown, rows, strict=True)
        if row["ratio"] < aim
    ]
    header = ["database", "transaction", "writers", "bare, per second", "Evenhand, per second", "ratio"]
    told = f"The aim is a ratio of {aim}. {'All rows reach it' if not missed else 'These stay below it: ' + '; '.join(missed)}."
    return f"{table(header, shown)}\n\n{told}"


def times(found: dict[str, float]) -> str:
    """Named times, given in milliseconds."""
    return ", ".join(f"{name.replace('_', ' ')} {duration(value / 1e3)}" for name, value in found.items())


def soak(found: dict[str, Any]) -> str:
    """Seconds of the long tests."""
    tests = {"killed_two_hundred_times": "200 kills, 8 collectors"}
    tests |= {"fifty_at_once_ten_thousand_deliveries": "10,000 deliveries to 5,000 requests, 50 collectors"}
    rows = [[text, *(f"{found['crowds'][name][db]:.0f} s" for db in NAMES)] for name, text in tests.items()]
    told = f"`{found['command']}`, {found['date']}, {found['cores']} cores, {versions(found['versions'])}"
    return f"{told}; all passed.{note(found)}\n\n{table(['run', *NAMES.values()], rows)}"


def blocks() -> dict[str, str]:
    """Throughput, times, the long tests."""
    found = kept("ledger.json")
    told = f"`{found['command']}`, {found['date']}, {found['cores']} cores, {versions(found['versions'])}.{note(found)}"
    return {
        "ledger": f"{told}\n\n{throughput(found['rows'], found['aim'])}",
        "ledger-times": "\n".join(
            [
                f"- An `ask` with 50,000 stored examples and 20 groups, when no refit is due: {times(found['ask_ms'])}.",
                f"- Opening a campaign of 100,000 events: {times(found['open_ms'])}.",
            ]
        ),
        "soak": soak(kept("soak.json")),
    }

"""docs/pools.md: what `benchmarks/pools.py` measured."""

from typing import Any

from blocks.text import duration, kept, table, versions

AIMS = {
    "pool_seconds": ("registering the CSV file", "s"),
    "pool_peak_mib": ("its peak memory", "MiB"),
    "ask_p99_ms": ("`ask`, the slowest of a hundred", "ms"),
    "opening_ratio": ("opening, against a campaign without a pool", "×"),
    "snapshot_more_bytes": ("a snapshot, beyond one without a pool", "bytes"),
}


def figure(value: float) -> str:
    """Three figures, whole numbers in full."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def line(name: str, found: dict[str, Any]) -> list[str]:
    """One campaign: registering, asking, opening."""
    pool, ask, opened = found.get("pool"), found["ask"], found["open"]
    registered = ["", ""] if pool is None else [duration(pool["seconds"]), f"{pool['peak_mib']:,.0f} MiB"]
    times = [duration(ask[f"ask_{key}_ms"] / 1e3) for key in ("first", "median", "p99")]
    return [name, *registered, *times, duration(opened["open_ms"] / 1e3), duration(opened["status_ms"] / 1e3)]


def blocks() -> dict[str, str]:
    """Large pools, and the aims."""
    found = kept("pools.json")
    told = f"`{found['command']}`, {found['date']}, {found['cores']} cores, {versions(found['versions'])}."
    rows = [line("no pool", found["without"]), line(f"CSV, {found['rows']:,} rows", found["csv"])]
    if "parquet" in found:
        rows.append(line(f"Parquet, {found['parquet']['rows']:,} rows", found["parquet"]))
    header = ["pool", "`pool`", "peak memory", "first `ask`", "`ask`, median", "p99", "opening", "`status`"]
    aims = [
        [what, f"{figure(found['aims'][name]['aim'])} {unit}", f"{figure(found['aims'][name]['found'])} {unit}",
         "yes" if found["aims"][name]["met"] else "no"]
        for name, (what, unit) in AIMS.items()
    ]  # fmt: skip
    return {"pools": f"{told}\n\n{table(header, rows)}\n\n{table(['with CSV', 'at most', 'found', 'met'], aims)}"}

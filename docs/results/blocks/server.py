"""docs/server.md: what the server bears, and what `benchmarks/server.py` measured."""

from typing import Any

from blocks.text import duration, kept, note, table, versions
from evenhand.server import connections, incoming, parquet, streams
from evenhand.server.settings import Settings

_MIB = 2**20


def limits() -> str:
    """The limits of a server, from its code."""
    settings = Settings("")
    rows = [
        ["address and headers of a request", f"{connections.HEAD_BYTES:,} bytes, within {connections.HEAD_SECONDS:g} s", "431, or the connection is closed"],
        ["a body", f"{settings.max_body // _MIB} MiB; a pool {settings.max_upload // _MIB} MiB", "413"],
        ["its time", f"{incoming.BODY_SECONDS:g} s, and 1 s more for every {incoming.SLOWEST:,} bytes", "408"],
        ["Parquet, unpacked", f"{parquet.DELIVERY.bytes // _MIB} MiB and {parquet.DELIVERY.cells:,} cells; a pool {parquet.POOL.bytes // _MIB:,} MiB and {parquet.POOL.cells:,} cells", "413"],
        ["an answer that is not read", f"{connections.STALLED_SECONDS:g} s", "the connection is closed"],
        ["connections", f"{connections.MOST_CONNECTIONS:,}", "the one that waited longest without a request is closed"],
        ["event streams", f"{streams.MOST_STREAMS}", "503"],
    ]  # fmt: skip
    return table(["what", "at most", "beyond it"], rows)


def told(found: dict[str, Any]) -> str:
    """Where and when something was measured."""
    return f"`{found['command']}`, {found['date']}, {found['cores']} cores, {versions(found['versions'])}.{note(found)}"


def throughput(found: dict[str, Any]) -> str:
    """Deliveries a second, beside bare SQLite."""
    best, median = found["best_per_second"], found["median_per_second"]
    names = {
        "served": f"through one server, {found['clients']} clients",
        "one_client": "through one server, one client",
        "bare": "SQLite alone, a commit for each delivery",
        "grouped": f"SQLite alone, {found['clients']} deliveries in a commit",
    }
    rows = [[what, f"{best[name]:,.0f}", f"{median[name]:,.0f}"] for name, what in names.items()]
    header = [f"deliveries of {found['rows']} rows a second, `synchronous={found['synchronous']}`", "best", "median"]
    ratios = (
        f"The server does {found['ratio_to_bare']:.2f} of what SQLite alone does with a commit for each delivery, and "
        f"{found['ratio_to_grouped']:.2f} of what it does with {found['clients']} in a commit; "
        f"the aim of {found['aim']:g} a second was {'met' if found['met'] else 'not met'}."
    )
    return f"{told(found)}\n\n{table(header, rows)}\n\n{ratios}"


def storms(found: dict[str, Any]) -> str:
    """Clients through kills."""
    rows = [
        [name, f"{one['clients']}", f"{one['deliveries']:,}", f"{one['kills']}", f"{one['retries']:,}",
         duration(one["seconds"]), f"{one['lost']}", f"{one['doubled']}"]
        for name, one in (("SQLite", found["sqlite"]), ("PostgreSQL", found["postgresql"]))
    ]  # fmt: skip
    header = ["database", "clients", "deliveries", "kills with −9", "tries again", "time", "lost", "doubled"]
    return f"{told(found)}\n\n{table(header, rows)}"


def fuzzed(found: dict[str, Any]) -> str:
    """Random requests."""
    rows = [
        [name, f"{one['operations']}", f"{one['fewest']:,}", f"{one['cases']:,}", f"{one['accepted']}",
         f"{sum(n for status, n in one['statuses'].items() if int(status) >= 500)}", f"{len(one['wrong'])}"]
        for name, one in (("SQLite", found["sqlite"]), ("PostgreSQL", found["postgresql"]))
    ]  # fmt: skip
    header = [
        "database",
        "operations",
        "cases of each, at least",
        "cases",
        "operations that took one",
        "5xx",
        "not in the document",
    ]
    return f"{told(found)}\n\n{table(header, rows)}"


def memory(found: dict[str, Any]) -> str:
    """Resident memory of the server's process under abuse."""
    names = {
        "half_open": "2,000 connections with half a head", "headers": "2,000 with 30 kB of one",
        "bodies": "200 bodies of 8 MB, half sent", "streams": "600 streams asked for",
    }  # fmt: skip
    rows = [["none", f"{found['start']:,.0f} MiB", ""]]
    rows += [
        [what, f"{found[name]:,.0f} MiB", duration(found[f"{name}_others_ms"] / 1e3)] for name, what in names.items()
    ]
    return f"{told(found)}\n\n{table(['misuse', 'memory', 'somebody else gets a status in'], rows)}"


def blocks() -> dict[str, str]:
    """Limits, and what was measured so far."""
    found = kept("server.json")
    parts = {"throughput": throughput, "storm": storms, "fuzz": fuzzed, "memory": memory}
    return {"server-limits": limits()} | {
        f"server-{name}": show(found[name]) for name, show in parts.items() if name in found
    }

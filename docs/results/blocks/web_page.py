"""docs/page.md: what `benchmarks/page.py` measured."""

from collections.abc import Callable

from blocks.text import duration, kept, note, table, versions


def size(value: float) -> str:
    """Bytes, in kB."""
    return f"{value / 1e3:,.0f} kB"


def spell(value: float) -> str:
    """Milliseconds."""
    return "none over 50 ms" if value == 0 else duration(value / 1e3)


FIGURES: dict[str, tuple[str, Callable[[float], str]]] = {
    "first_answer_ms": ("first bytes of the answer", spell),
    "first_paint_ms": ("first paint", spell),
    "past_ms": ("the past is there", spell),
    "longest_task_ms": ("longest task in the browser", spell),
    "bytes": ("transferred until the page is loaded", size),
    "bytes_with_past": ("transferred until the past is there", size),
}


def blocks() -> dict[str, str]:
    """The first visit to a server that has just started, and the second one."""
    found = kept("page.json")
    made, aims = found["campaign"], found["aims"]
    seeds = ", ".join(map(str, found["seeds"]))
    told = f"`{found['command']}`, {found['date']}, {found['cores']} cores, {versions(found['versions'])}, seed {seeds}.{note(found)}"
    about = (
        f"{made['events']:,} events, {made['groups']} groups, {made['labels']:,} labels told by {made['collectors']} collectors; "
        f"{found['rounds']} servers and browsers started anew; median (worst)."
    )
    rows = []
    for name, (what, form) in FIGURES.items():
        cells = [
            f"{form(found[visit]['median'][name])} ({form(found[visit]['worst'][name])})"
            for visit in ("fresh", "again")
        ]
        rows.append([what, *cells])
    aimed = {
        "first_paint_ms": f"first paint within {spell(aims['first_paint_ms'])}",
        "bytes_with_past": f"at most {size(aims['bytes_with_past'])} transferred",
    }
    verdicts = "; ".join(f"{words}, {'met' if found['met'][name] else 'not met'}" for name, words in aimed.items())
    return {
        "page": f"{told}\n\n{about}\n\n{table(['', 'server just started', 'second visit'], rows)}\n\nThe aims, by the worst: {verdicts}."
    }

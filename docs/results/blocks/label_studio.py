"""docs/label-studio.md: what `benchmarks/label_studio.py` found."""

from blocks.text import kept, note, table, versions


def blocks() -> dict[str, str]:
    """What people and machines did, and how campaign and project compare at the end."""
    found = kept("label-studio.json")
    did = found["people"]
    rows = [
        ["annotations made, changed, deleted", ", ".join(f"{did.get(k, 0):,}" for k in ("annotated", "changed", "deleted"))],
        ["tasks skipped", f"{did.get('skipped', 0):,}"],
        ["tasks added, deleted by the owner", f"{did.get('tasks added', 0):,}, {did.get('tasks deleted', 0):,}"],
        ["tasks annotated that nobody asked for", f"{did.get('annotated unasked', 0):,}"],
        ["times the sync was killed with SIGKILL", f"{found['kills']:,}"],
        ["two syncs at once", f"{found['two_at_once_seconds']:.0f} s"],
        ["server away while it restarted", f"{found['restart_seconds']:.0f} s"],
        ["**labels in the campaign, of which as in the project**", f"**{found['labels']:,}, {found['labels_equal']:,}**"],
        ["labels told twice", f"{found['told_twice']:,}"],
        ["corrections, withdrawals, skips in the ledger", ", ".join(f"{found[k]:,}" for k in ("corrected", "withdrawn", "skipped"))],
        ["requests complete, open", f"{found['requests_answered']:,}, {found['requests_open']:,}"],
        ["tasks that open requests wait for, in the tab", f"{found['waiting']:,}, {found['tasks_in_the_tab']:,}"],
        ["problems found, by `verify` too", f"{len(found['problems']):,}"],
    ]  # fmt: skip
    big = found["large"]
    made = f"`{found['command']}`, {found['date']}, {found['cores']} cores, {versions(found['versions'])}.{note(found)}"
    return {
        "label-studio": f"{made}\n\n{table(['in ' + format(found['seconds'] / 60, '.0f') + ' minutes', ''], rows)}\n\n"
        f"With {big['tasks']:,} tasks the first pass took {big['first_seconds']:.0f} s, which registers them all, and one that looks at all "
        f"of them {big['whole_seconds']:.1f} s."
    }

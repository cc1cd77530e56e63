"""docs/results-images.md: ceilings and costs."""

from typing import Any

from blocks.text import kept, short, table, versions

Found = dict[str, Any]


def ceilings(found: Found) -> str:
    """What more data of a group alone, or of everything, would give; every group after the last epoch."""
    lines, rows = [], []
    for one in found["ceilings"]:
        alone = one["trained_on"] in found["groups"]
        group = one["trained_on"] if alone else hard(found)
        values = [epoch[group] for epoch in one["accuracy"]]
        lines.append(
            f"- Ceiling: {short(values[-1])} on {group} after {len(values)} epochs on the {one['images']:,} images "
            f"{'alone' if alone else 'of all groups'} (best {short(max(values))}, epoch {1 + values.index(max(values))})."
        )
        rows.append([one["trained_on"], *(short(one["accuracy"][-1][z]) for z in found["groups"])])
    return "\n".join(lines) + "\n\n" + table(["trained on", *found["groups"]], rows)


def hard(found: Found) -> str:
    """The group that was trained on alone first: the worst-off one."""
    name: str = found["ceilings"][0]["trained_on"]
    return name


def top(found: Found) -> float:
    """The best accuracy on that group in any epoch of any ceiling."""
    return max(epoch[hard(found)] for one in found["ceilings"] for epoch in one["accuracy"])


def costs(found: Found) -> str:
    """Microseconds an image."""
    keys = ("update_us", "forward_us")
    return table(
        ["setting", "update, µs", "forward only, µs"],
        [[row["setting"], *(f"{row[key]:.0f}" for key in keys)] for row in found["costs"]],
    )


def sizes(found: Found) -> str:
    """Overhead and memory, and what made them."""
    one = found["overhead"]
    peaks = (f"{r['peak_mib']:.0f} MiB with {r['images']:,} images ({r['data_mib']:g} MiB)" for r in found["memory"])
    return (
        f"- Overhead: {one['rounds']} rounds cost {one['ratio']:.2f} times the CPU time of a bare PyTorch loop with the same "
        "passes on the same images, in the same process.\n"
        f"- Peak memory at chunk {found['chunk']}: {', '.join(peaks)}.\n\n{made(found)}"
    )


def made(found: Found) -> str:
    """Command, date, versions."""
    return f"(`{found['command']}`, {found['date']}, {found['cores']} cores, {versions(found['versions'])}.)"


def blocks() -> dict[str, str]:
    """Everything on the page."""
    found, spent = kept("image-ceilings.json"), kept("image-costs.json")
    every = {f"{data.replace(':', '-')}-ceilings": ceilings(one) for data, one in found["data"].items()}
    return every | {"ceilings-made": made(found), "images-costs": costs(spent), "images-sizes": sizes(spent)}

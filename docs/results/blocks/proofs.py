"""docs/certificates.md: what `benchmarks/proofs.py` measured."""

from blocks.text import kept, table, versions

_BEHAVIOURS = {"honest": "nothing hidden", "correct": "corrected", "abandon": "abandoned", "leave open": "left open"}


def blocks() -> dict[str, str]:
    """False certificates by every risk, and the power of proofs."""
    found = kept("proofs.json")
    made = f"`{found['command']}`, {found['date']}, " + versions(found["versions"])
    coverage = [
        [one["risk"], f"{one['campaigns']:,}", *(f"{one[name]:,}" for name in _BEHAVIOURS)] for one in found["coverage"]
    ]
    power = [
        [
            " and ".join(f"{rate:g}" for rate in one["rates"].values()),
            f"{one['target']:g}",
            ", ".join(f"{count} {outcome}" for outcome, count in sorted(one["outcomes"].items())),
            f"{one['within']}",
            f"{one['false']}",
            f"{one['labels']['median']:,} / {one['labels']['p80']:,} / {one['labels']['most']:,}",
        ]
        for one in found["power"]
    ]
    return {
        "proofs-coverage": f"{made}. False certificates:\n\n"
        + table(["risk", "campaigns", *_BEHAVIOURS.values()], coverage),
        "proofs-power": f"{made}; expected: {found['expected']:,}.\n\n"
        + table(
            [
                "true risks",
                "target",
                "outcomes of the proofs",
                "certified within 1.6 × expected",
                "false",
                "labels: median / 80 % / most",
            ],
            power,
        ),
    }

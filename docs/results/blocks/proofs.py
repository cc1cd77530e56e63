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
    looked = [
        [
            one["risk"],
            *(f"{one[name]:,} ({one[name] / one['runs']:.1%})" for name in ("worst", "intervals", "ordinary")),
        ]
        for one in found["every_label"]
    ]
    first = found["every_label"][0]
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
        "proofs-every-label": f"{made}; {first['runs']:,} runs of {first['labels']:,} labels a group for every risk:\n\n"
        + table(
            ["risk", "`worst_at_most` ever wrong", "`low` or `high` ever wrong", "Wilson's 95 % ever wrong"], looked
        ),
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

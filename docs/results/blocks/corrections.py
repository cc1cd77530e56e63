"""docs/certificates.md: what `benchmarks/corrections.py` measured."""

from blocks.text import kept, table, versions


def blocks() -> dict[str, str]:
    """The cost of corrections, and certificates under attack."""
    found = kept("corrections.json")
    made = f"`{found['command']}`, {found['date']}, " + versions(found["versions"])
    cost = [
        [f"{one['labels_a_group']:,}", *(f"{one['worst_at_most'][share]:.3f}" for share in ("0.0", "0.01", "0.02"))]
        for one in found["cost"]
    ]
    attacks = [
        [
            one["attack"],
            f"{one['labels']:,}",
            f"{one['campaigns']:,}",
            *(f"{one[rule]:,} ({one[rule] / one['campaigns']:.1%})" for rule in ("false", "naive_false")),
        ]
        for one in found["attacks"]
    ]
    header = [
        "what is done to the model's errors",
        "labels told",
        "campaigns",
        "false certificates",
        "by the naive rule",
    ]
    return {
        "corrections-cost": f"{made}.\n\n"
        + table(["labels a group since the freeze", "none corrected", "1 % corrected", "2 % corrected"], cost),
        "corrections-attacks": f"{made}.\n\n" + table(header, attacks),
    }

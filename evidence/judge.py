"""Give the verdicts of a reproduction again, from the values of every trial that it kept, and compare with what it published.

Run: python evidence/judge.py [FOLDER]        a folder of `evenhand reproduce`, by default evidence/results

Prints every claim with its verdict, its figures and its test. Exit code 1 where `results.json` says something else.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evenhand.experiments.base import Measured
from evenhand.experiments.catalogue import experiments
from evenhand.experiments.output import SCHEMA, VALUES
from evenhand.experiments.verdicts import FAMILY, LEVEL, Claim

RESULTS = Path(__file__).parent / "results"


def judged(folder: Path) -> Iterator[tuple[str, Claim, dict[str, Any] | None]]:
    """Every experiment's claims as they are judged now, each beside the same claim in `results.json`."""
    kept, results = (json.loads((folder / name).read_text(encoding="utf-8")) for name in (VALUES, "results.json"))
    wanted = {"schema": SCHEMA, "level": LEVEL, "comparisons_at_most": FAMILY}
    if differ := [key for key, value in wanted.items() if kept[key] != value]:
        sys.exit(f"{folder / VALUES} has another {differ[0]} than this version: run evenhand reproduce again")
    for name, experiment in experiments().items():
        published = {claim["text"]: claim for claim in results["experiments"].get(name, {}).get("claims", [])}
        values = {claim: Measured(**one) for claim, one in kept["experiments"].get(name, {}).items()}
        if lacking := published.keys() - values.keys():
            sys.exit(f"{folder / VALUES} has no values of {min(lacking)!r} of {name}, which results.json has")
        for claim in experiment.claims(values):
            yield name, claim, published.get(claim.text)


def main(arguments: list[str] | None = None) -> int:
    """Print what was found; the number of claims that differ decides the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=RESULTS)
    differ = 0
    for name, claim, published in judged(parser.parse_args(arguments).folder):
        print(f"{name}: {claim.verdict}: {claim.text}\n    {claim.evidence}\n    test: {claim.test}")
        if asdict(claim) != published:
            differ += 1
            print(f"    results.json says: {published}", file=sys.stderr)
    return int(differ > 0)


if __name__ == "__main__":
    sys.exit(main())

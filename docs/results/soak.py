"""Keeps the numbers of the long tests: a JUnit report of `make soak` becomes `soak.json`.

Run: python -m pytest -m soak --junitxml=.venv/soak.xml && python docs/results/soak.py .venv/soak.xml

Of several reports, the last one that has a test counts for it.
"""

import argparse
import json
import os
import platform
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

FILE = Path(__file__).parent / "soak.json"


def read(*reports: str) -> dict[str, Any]:
    """Seconds of the crowds, misses of the sequences."""
    roots = [ElementTree.fromstring(report) for report in reports]
    cases = {case.attrib["classname"] + case.attrib["name"]: case for root in roots for case in root.iter("testcase")}
    if any(case.find(bad) is not None for case in cases.values() for bad in ("failure", "error")):
        raise ValueError("some tests failed: nothing to keep")
    suite = next(roots[-1].iter("testsuite"))
    found: dict[str, Any] = {
        "date": suite.attrib["timestamp"][:10],
        "command": "python -m pytest -m soak",
        "cores": os.cpu_count(),
    }
    found["versions"] = {"python": platform.python_version()} | {p: version(p) for p in ("evenhand", "numpy")}
    found |= {"crowds": {}, "coverage": []}
    for case in cases.values():
        name, _, parameters = case.attrib["name"].rstrip("]").partition("[")
        values = {one.attrib["name"]: one.attrib["value"] for one in case.iter("property")}
        if crowd := re.fullmatch("test_(killed_two_hundred_times|fifty_at_once_ten_thousand_deliveries)", name):
            found["crowds"].setdefault(crowd[1], {})[parameters] = round(float(case.attrib["time"]), 1)
        if "misses" in values:
            kind, p = parameters.rsplit("-", 1)
            found["coverage"].append({"kind": kind, "p": float(p), "misses": int(values["misses"])})
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reports", nargs="+", type=Path)
    parser.add_argument("--note", help="what else a reader of the times has to know")
    given = parser.parse_args()
    made = read(*(path.read_text(encoding="utf-8") for path in given.reports))
    made |= {"note": given.note} if given.note else {}
    FILE.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

"""Keeps the numbers of the long tests: a JUnit report of `make soak` becomes `soak.json`.

Run: make soak && python docs/results/soak.py .venv/soak.xml
"""

import json
import os
import platform
import re
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

FILE = Path(__file__).parent / "soak.json"


def read(report: str) -> dict[str, Any]:
    """Seconds of the crowds, misses of the sequences."""
    root = ElementTree.fromstring(report)
    if any(case.find(bad) is not None for case in root.iter("testcase") for bad in ("failure", "error")):
        raise ValueError("some tests of this report failed: nothing to keep")
    suite = next(root.iter("testsuite"))
    found: dict[str, Any] = {"date": suite.attrib["timestamp"][:10], "command": "make soak", "cores": os.cpu_count()}
    found["versions"] = {"python": platform.python_version()} | {p: version(p) for p in ("evenhand", "numpy")}
    found |= {"crowds": {}, "coverage": []}
    for case in root.iter("testcase"):
        name, _, parameters = case.attrib["name"].rstrip("]").partition("[")
        values = {one.attrib["name"]: one.attrib["value"] for one in case.iter("property")}
        if crowd := re.fullmatch("test_(killed_two_hundred_times|fifty_at_once_ten_thousand_deliveries)", name):
            found["crowds"].setdefault(crowd[1], {})[parameters] = round(float(case.attrib["time"]), 1)
        if "misses" in values:
            kind, p = parameters.rsplit("-", 1)
            found["coverage"].append({"kind": kind, "p": float(p), "misses": int(values["misses"])})
    return found


if __name__ == "__main__":
    made = read(Path(sys.argv[1]).read_text(encoding="utf-8"))
    FILE.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")

"""Every script of the evidence on its smallest settings."""

import json

import pytest
from evidence.__main__ import MEASUREMENTS, RESULTS, main

SLOW = {"errata", "images", "minimax"}
SCRIPTS = [name for name, one in MEASUREMENTS.items() if not one.command]


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.soak] * (n in SLOW)) for n in SCRIPTS])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # what fairlearn does with pandas
def test_a_script_measures_what_the_pages_show(name, tmp_path):
    main([name, "--small", "--out", str(tmp_path)])
    found, kept = (json.loads((folder / f"{name}.json").read_text(encoding="utf-8")) for folder in (tmp_path, RESULTS))
    assert {"command", "date", "commit", "versions"} <= found["made"].keys() & kept["made"].keys()
    assert set(found) <= set(kept)

"""The model to deploy, `Minimax` and c0: what they buy and cost on thirteen sources.

Run: python benchmarks/models.py --out docs/results          (`--only aims price` for some parts, `--data-dir` for FashionMNIST)

Parts: rates (folds and rate of Minimax), boldness (c0), aims and price (chosen − plain), methods (published rivals),
costs (seconds, fairlearn). Finished cells are kept in a file, so that a run that is killed goes on.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from model_runs import boldness, comparison, costs, price, rates
from model_runs.cells import CONFIRM, Kept
from provenance import about, write_json

PARTS: dict[str, Callable[[Kept], Any]] = {
    "rates": rates.study,
    "boldness": boldness.study,
    "aims": price.aims,
    "price": price.price,
    "methods": comparison.compare,
    "costs": lambda kept: costs.costs(),
}
SEEDS = {
    "rates": [rates.CHOOSE, rates.CONFIRM],
    "boldness": [boldness.CHOOSE, CONFIRM],
    "aims": [price.FRESH],
    "price": [CONFIRM],
    "methods": [comparison.SEED],
    "costs": [costs.SEED],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="the folder of models.json; without it the figures are only printed")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--keep", type=Path, default=Path("build/models.jsonl"), help="where finished cells are kept")
    parser.add_argument("--data-dir", type=Path, help="a folder with fashion_mnist, as EVENHAND_DATA")
    given = parser.parse_args()
    if given.data_dir:
        os.environ["EVENHAND_DATA"] = str(given.data_dir)
    for name in given.only:
        found = PARTS[name](Kept(given.keep))
        print(json.dumps(found, indent=1), flush=True)
        if given.out:
            packages = ("numpy", "scipy", "scikit-learn", "fairlearn")
            run = about(f"models.py --out docs/results --only {name}", *packages, seeds=SEEDS[name])
            _write(given.out / "models.json", name, {"run": run, "found": found})


def _write(file: Path, name: str, found: dict[str, Any]) -> None:
    kept = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    kept[name] = found
    write_json(file, kept)


if __name__ == "__main__":
    main()

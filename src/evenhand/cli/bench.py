"""`evenhand bench`: how fast it is here, against named baselines."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenhand.cli.terminal import echo
from evenhand.errors import InputError
from evenhand.notation import JsonObject

if TYPE_CHECKING:
    from speed.timing import Outcome

__all__ = ["bench"]


def bench(
    only: Annotated[
        list[str] | None,
        typer.Option(help="run these alone: convergence, adult, refit, scoring, mann-kendall, memory, growth"),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full/--quick", help="the published form, some minutes; or a quick look")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print everything as JSON")] = False,
    plot: Annotated[Path | None, typer.Option(help="picture of the growth curves")] = None,
) -> None:
    """Measure how fast Evenhand is on this machine, against named baselines, on one thread."""
    from threadpoolctl import threadpool_limits

    _find_benchmarks()
    from speed.cases import CASES
    from speed.growth import curves, draw_curves
    from speed.timing import machine

    wanted = only or [*CASES, "growth"]
    if unknown := [name for name in wanted if name not in CASES and name != "growth"]:
        raise InputError(f"there is no benchmark {unknown[0]!r}; choose among {', '.join([*CASES, 'growth'])}")
    parts = ["evenhand bench", *(f"--only {name}" for name in only or ()), *(["--full"] if full else [])]
    found: JsonObject = {"machine": machine(), "command": " ".join(parts), "full": full}
    found |= {"benchmarks": [], "growth": []}
    with threadpool_limits(1):
        for name in wanted:
            if name == "growth":
                lines = curves(full)
                found["growth"] = [line.as_dict() for line in lines]
                if plot is not None:
                    draw_curves(lines, plot)
                if not as_json:
                    _show_growth(found["growth"])
            else:
                outcome = CASES[name](full)
                found["benchmarks"].append(outcome.as_dict())
                if not as_json:
                    _show(outcome)
    if as_json:
        typer.echo(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        echo(", ".join(f"{key} {value}" for key, value in found["machine"].items()))


def _find_benchmarks() -> None:
    """Make `speed` importable: it lies beside the package in a checkout, and is not installed."""
    # beside src/ in a checkout
    folder = Path(__file__).parents[3] / "benchmarks"
    if not (folder / "speed").is_dir():
        raise InputError("the benchmarks are in the repository, not in the package: clone it and run `make bench`")
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def _show(outcome: Outcome) -> None:
    sign = "≤" if outcome.unit == "bytes" else "≥"
    verdict = "reached" if outcome.reached else "not reached"
    echo(f"{outcome.name}: {outcome.ratio:.3g}× (target {sign} {outcome.target:g}, {verdict})")
    echo(f"  {outcome.work}; baseline: {outcome.baseline}")
    values = [_amount(value, outcome.unit) for value in (outcome.ours, outcome.theirs)]
    echo(f"  ours {values[0]}, baseline {values[1]}{'; ' + outcome.note if outcome.note else ''}")


def _amount(value: float, unit: str) -> str:
    return f"{value / 1e6:.2f} MB" if unit == "bytes" else f"{value * 1e6:,.1f} µs a {unit}"


def _show_growth(lines: list[JsonObject]) -> None:
    for line in lines:
        pairs = ", ".join(f"{n:,}: {1e6 * s:,.0f}" for n, s in zip(line["sizes"], line["seconds"], strict=True))
        echo(f"growth with {line['name']}: slope {line['slope']:.2f} (at most 1); µs a round at {pairs}")

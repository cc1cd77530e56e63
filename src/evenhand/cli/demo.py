"""`evenhand demo`: the main job on data that comes along."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["demo"]


def demo(
    out: Annotated[Path, typer.Option(help="folder for the pictures")] = Path("evenhand-demo"),
    trials: Annotated[int, typer.Option(help="how many trials")] = 50,
) -> None:
    """Two groups, one harder than the other: watch Evenhand find the fair mixture."""
    import evenhand as eh
    from evenhand.cli.simulate import print_result, save

    typer.echo("Two groups: u is easy, v is hard. Which share of the labels should each get?\n")
    rules = {"Evenhand": eh.Optimistic(), "Greedy": eh.Greedy(), "Uniform": eh.Uniform()}
    source = eh.SyntheticModel1.instance("I")
    result = eh.simulate(source, rules, budget=1000, trials=trials, progress=True)
    save(result, out)
    print_result(result, out)

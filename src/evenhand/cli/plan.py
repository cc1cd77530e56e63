"""`evenhand plan`: what the theory promises for a budget, and the budget for a promise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand.errors import InputError

if TYPE_CHECKING:
    from evenhand.claims.guarantees import Problem
    from evenhand.sources.synthetic.model1 import SyntheticModel1

__all__ = ["plan"]


def plan(
    source: Annotated[str | None, typer.Argument(help="synthetic1:I or synthetic1:II, whose risks are known")] = None,
    budget: Annotated[int | None, typer.Option(help="labels, training and validation together")] = None,
    promise: Annotated[
        float | None, typer.Option(help="excess risk you want promised: what budget does it take?")
    ] = None,
    groups: Annotated[int | None, typer.Option(help="number of groups")] = None,
    pi_min: Annotated[float | None, typer.Option(help="smallest share in the fair mixture")] = None,
    c: Annotated[float, typer.Option("--C", help="coupling constant of Assumption 3")] = 1.0,
    resolution: Annotated[float, typer.Option(help="smallest excess risk at which C is claimed")] = 0.0,
    kappa: Annotated[float | None, typer.Option(help="square-root form: its constant, in place of C")] = None,
    vc: Annotated[int, typer.Option(help="VC dimension of the classifiers")] = 3,
    printed: Annotated[bool, typer.Option(help="the VC bound as printed, one-sided")] = False,
    alpha: Annotated[float | None, typer.Option(help="Rademacher complexity B·N^-alpha, in place of --vc")] = None,
    b: Annotated[float, typer.Option("--B", help="its factor")] = 1.0,
    delta: Annotated[float, typer.Option(help="probability that the promise fails")] = 0.05,
    xi: Annotated[float, typer.Option(help="forced exploration")] = 0.5,
    a: Annotated[float | None, typer.Option("--A", help="between pi-min/2 and pi-min")] = None,
    epsilon0: Annotated[float | None, typer.Option(help="excess risk below which C holds")] = None,
    gap: Annotated[float | None, typer.Option(help="least excess risk away from the fair mixture")] = None,
    epsilon: Annotated[float | None, typer.Option(help="plan for ε-greedy with this ε")] = None,
    beta: Annotated[float | None, typer.Option(help="its slack")] = None,
    radius: Annotated[float, typer.Option(help="radius r of the lower bound's two instances")] = 1.0,
    as_json: Annotated[bool, typer.Option("--json", help="print everything as JSON")] = False,
    plot: Annotated[Path | None, typer.Option(help="picture of bound, lower bound and simulated excess risk")] = None,
    trials: Annotated[int, typer.Option(help="trials of the simulated curve; 0: none")] = 20,
) -> None:
    """What the theory promises for a budget, and the budget for a promise."""
    from evenhand.claims.bounds import Bound, RademacherBound, VCBound
    from evenhand.claims.guarantees.report import report

    model = _model(source)
    bound: Bound = VCBound(vc, delta, not printed) if alpha is None else RademacherBound(b, alpha, delta=delta)
    settings = {"groups": groups, "pi_min": pi_min, "C": c, "bound": bound, "resolution": resolution, "kappa": kappa}
    settings |= {"xi": xi, "A": a, "epsilon0": epsilon0, "gap": gap}
    problem = _problem(model, settings)
    found = report(problem, labels=budget, target=promise, epsilon=epsilon, beta=beta, radius=radius, model=model)
    if plot is not None:
        _plot(problem, model, plot, epsilon, beta, radius, trials)
    if as_json:
        typer.echo(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        _show(found, plot)


def _model(source: str | None) -> SyntheticModel1 | None:
    if source is None:
        return None
    from evenhand.sources.synthetic.model1 import SyntheticModel1

    name, _, which = source.partition(":")
    if name != "synthetic1":
        raise InputError(f"risks are known for synthetic1:I and synthetic1:II only, not {source!r}: leave it out")
    return SyntheticModel1.instance(which or "I")


def _problem(model: SyntheticModel1 | None, settings: dict[str, Any]) -> Problem:
    from evenhand.claims.guarantees import Problem
    from evenhand.claims.guarantees.report import problem_of

    if model is not None:
        return problem_of(model, **settings)
    missing = [name for name in ("groups", "pi_min") if settings[name] is None]
    if missing:
        raise InputError(f"give --{missing[0].replace('_', '-')}, or a source whose risks are known")
    return Problem(**settings)


def _plot(
    problem: Problem, model: SyntheticModel1 | None, file: Path, epsilon: float | None, beta: float | None,
    radius: float, trials: int,
) -> None:  # fmt: skip
    import numpy as np

    from evenhand.claims.guarantees.excess import simulated_excess
    from evenhand.plotting.guarantees import plot_plan

    simulated = None
    if model is not None and trials > 0:
        from evenhand.simulation.simulate import simulate

        rule = "optimistic" if epsilon is None else f"epsilon-greedy:epsilon={epsilon}"
        budgets = [50, 100, 200, 500, 1000, 2000]
        trace = simulate(model, [rule], budget=budgets[-1], trials=trials, progress=True).trace
        simulated = (np.array(budgets, dtype=float), simulated_excess(trace, model, budgets))
    plot_plan(problem, epsilon=epsilon, beta=beta, radius=radius, simulated=simulated).savefig(file, dpi=150)


def _show(found: dict[str, Any], plot: Path | None) -> None:
    from rich.console import Console
    from rich.table import Table

    from evenhand.claims.guarantees.promise import count

    console = Console()
    inputs = Table("input", "value", title="what is assumed", title_justify="left")
    for name, value in found["inputs"].items():
        inputs.add_row(name, "not known" if value is None else f"{value:g}" if isinstance(value, float) else str(value))
    console.print(inputs)
    if promise := found.get("promise"):
        table = Table("condition", "holds from (labels)", title="the promise's conditions", title_justify="left")
        for condition in promise["conditions"]:
            need = f"not known: give {condition['unknown']}" if condition["unknown"] else "never"
            table.add_row(condition["name"], need if condition["labels"] is None else count(condition["labels"]))
        console.print(table)
    console.print("\n".join(_sentences(found)), highlight=False)
    if plot is not None:
        console.print(f"picture in {plot}", highlight=False)


def _sentences(found: dict[str, Any]) -> list[str]:
    from evenhand.claims.guarantees.promise import count

    lines = []
    if found.get("exploration", {}).get("stuck"):
        look = found["exploration"]
        lines.append(
            f"no promise: ε-greedy over-explores and stays away from the fair mixture (ε above {look['largest_epsilon']:.4g})"
        )
        if look["tau0_labels"] is not None:
            lines.append(f"that is certain from {count(look['tau0_labels'])} labels")
        if "floor" in look:
            lines.append(
                f"excess risk stays above {look['floor']:.5f} from there, and ends near {look['last_floor']:.5f}"
            )
    if promise := found.get("promise"):
        head, *rest = promise["text"].split("; ")
        speaks = [part for part in rest if "speak" in part]
        lines.append("; ".join([head, *speaks]) + f" ({promise['labels']} labels are {promise['rounds']} rounds)")
    if budget := found.get("budget"):
        need = "no budget gives it" if budget["labels"] is None else f"it takes {count(budget['labels'])} labels"
        lines.append(f"to be promised an excess risk of {budget['target']:g}: {need}")
    if lower := found.get("lower_bound"):
        near, far = lower["radii"]
        lines.append(
            f"no rule has a mean excess risk below {lower['value']:.3g} on both of the instances with radii "
            f"{near:g} and {far:.4g}, whichever group is harder"
        )
    return [*lines, found["coupling_term"], *found["assumed"]]

"""`evenhand plan`: what the theory promises for a budget, and the budget for a promise; or what a pilot says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenhand.cli import table_options as options
from evenhand.errors import InputError
from evenhand.notation import JsonObject

if TYPE_CHECKING:
    from evenhand.claims.guarantees import Problem
    from evenhand.sources.synthetic.model1 import SyntheticModel1


@options.reads_tables
def plan(
    context: typer.Context,
    source: Annotated[str | None, typer.Argument(help="synthetic1:I or synthetic1:II, whose risks are known")] = None,
    pilot: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE", help="try the rules on labelled rows you have: a CSV or Parquet path, adult or german"
        ),
    ] = None,
    budget: Annotated[int | None, typer.Option(help="labels, training and validation together")] = None,
    promise: Annotated[
        float | None, typer.Option(help="excess risk you want promised: what budget does it take?")
    ] = None,
    groups: Annotated[int | None, typer.Option(help="number of groups")] = None,
    pi_min: Annotated[float | None, typer.Option(help="smallest share in the fair mixture")] = None,
    fair: Annotated[str | None, typer.Option(help="the whole fair mixture, in place of --pi-min: 0.2,0.8")] = None,
    c: Annotated[float | None, typer.Option("--C", help="coupling constant of Assumption 3; 1 without --kappa")] = None,
    resolution: Annotated[float, typer.Option(help="smallest excess risk at which C is claimed")] = 0.0,
    kappa: Annotated[float | None, typer.Option(help="square-root form: its constant, in place of C")] = None,
    vc: Annotated[int, typer.Option(help="VC dimension of the classifiers")] = 3,
    printed: Annotated[bool, typer.Option(help="the VC bound as printed, one-sided")] = False,
    alpha: Annotated[float | None, typer.Option(help="Rademacher complexity B·N^-alpha, in place of --vc")] = None,
    b: Annotated[float, typer.Option("--B", help="the factor B of --alpha")] = 1.0,
    delta: Annotated[float, typer.Option(help="probability that the promise fails")] = 0.05,
    xi: Annotated[float, typer.Option(help="ξ: a group with fewer than (all examples)^ξ examples comes first")] = 0.5,
    a: Annotated[float | None, typer.Option("--A", help="between pi-min/2 and pi-min")] = None,
    epsilon0: Annotated[float | None, typer.Option(help="excess risk below which C holds")] = None,
    gap: Annotated[float | None, typer.Option(help="least excess risk away from the fair mixture")] = None,
    epsilon: Annotated[float | None, typer.Option(help="plan for ε-greedy with this ε, exploring uniformly")] = None,
    population: Annotated[str | None, typer.Option(help="and exploring by these population shares: 0.3,0.7")] = None,
    beta: Annotated[float | None, typer.Option(help="the slack of --alpha")] = None,
    radius: Annotated[float, typer.Option(help="radius r of the lower bound's two instances")] = 1.0,
    as_json: Annotated[bool, typer.Option("--json", help="print everything as JSON")] = False,
    plot: Annotated[Path | None, typer.Option(help="picture of bound, lower bound and simulated excess risk")] = None,
    trials: Annotated[
        int | None, typer.Option(help="trials of the simulated curve (20; 0: none), or of the pilot (40)")
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(help="pilot: begin no further trials after these minutes; two are always run")
    ] = None,
    strategy: Annotated[
        list[str] | None, typer.Option(help="pilot: a rule to try beside Uniform; uncurated and optimistic by default")
    ] = None,
    learner: Annotated[str | None, typer.Option(help="pilot: what is trained, as for simulate")] = None,
    risk: Annotated[str, typer.Option(help='pilot: what "worse off" means, as for simulate')] = "error",
    positive: Annotated[str | None, typer.Option(help="pilot: the positive class, which fnr and fpr are about")] = None,
    final: Annotated[
        str, typer.Option(help="pilot: the model that is judged, chosen as final_model does, or plain (quicker)")
    ] = "chosen",
    batch: Annotated[
        int, typer.Option(help="pilot: examples drawn in a round to train on, and the same number to validate")
    ] = 1,
    warmup: Annotated[int | None, typer.Option(help="pilot: rounds at the start that take the groups in turn")] = None,
    validation: Annotated[float, typer.Option(help="pilot: share of the labels that is not trained on")] = 0.5,
    seed: Annotated[int, typer.Option(help="pilot: the same seed gives the same answer")] = 0,
    jobs: Annotated[int, typer.Option(help="pilot: how many processes share the work")] = 1,
    *,
    table: options.TableOptions,
) -> None:
    """Say what the theory promises for a budget, or which budget a promise takes; with --pilot, which rule to buy labels by."""
    from evenhand.cli.pilot import check_options, run_pilot

    check_options(context, pilot is not None)
    if pilot is not None:
        asked = options.given(
            budget=budget, learner=learner, risk=risk, positive=positive, final=final, batch=batch, warmup=warmup,
            validation=validation, trials=trials, minutes=minutes, seed=seed, jobs=jobs, rules=strategy,
        )  # fmt: skip
        run_pilot(pilot, table, asked, as_json)
        return
    from evenhand.claims.bounds import Bound, RademacherBound, VCBound
    from evenhand.claims.guarantees.report import report

    model = _model(source)
    bound: Bound = VCBound(vc, delta, not printed) if alpha is None else RademacherBound(b, alpha, delta=delta)
    constant = 1.0 if c is None and kappa is None else c
    settings = {"groups": groups, "pi_min": pi_min, "fair": _numbers("fair", fair), "bound": bound, "C": constant}
    settings |= {"resolution": resolution, "kappa": kappa, "xi": xi, "A": a, "epsilon0": epsilon0, "gap": gap}
    problem = _problem(model, settings)
    shares = _numbers("population", population)
    found = report(
        problem, labels=budget, target=promise, epsilon=epsilon, beta=beta, shares=shares, radius=radius, model=model
    )
    if plot is not None:
        _plot(problem, model, plot, epsilon, beta, radius, 20 if trials is None else trials)
    if as_json:
        typer.echo(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        _show(found, plot)


def _numbers(name: str, text: str | None) -> list[float] | None:
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"--{name} takes numbers separated by commas, got {text!r}") from None


def _model(source: str | None) -> SyntheticModel1 | None:
    if source is None:
        return None
    from evenhand.sources.synthetic.model1 import SyntheticModel1

    name, _, which = source.partition(":")
    if name != "synthetic1":
        raise InputError(f"risks are known for synthetic1:I and synthetic1:II only, not {source!r}: leave it out")
    return SyntheticModel1.instance(which or "I")


def _problem(model: SyntheticModel1 | None, settings: JsonObject) -> Problem:
    from evenhand.claims.guarantees import Problem
    from evenhand.claims.guarantees.report import problem_of

    if model is not None:
        return problem_of(model, **settings)
    if settings["fair"] is not None:
        # what the mixture says itself
        settings["groups"] = settings["groups"] or len(settings["fair"])
        settings["pi_min"] = settings["pi_min"] or min(settings["fair"])
    missing = [name for name in ("groups", "pi_min") if settings[name] is None]
    if missing:
        raise InputError(
            "to try the rules on labelled rows, give --pilot people.csv --label hired --group sex --budget 500; for what the "
            f"theory promises, give --{missing[0].replace('_', '-')}, or a source whose risks are known, such as synthetic1:I"
        )
    return Problem(**settings)


def _plot(
    problem: Problem, model: SyntheticModel1 | None, file: Path, epsilon: float | None, beta: float | None,
    radius: float, trials: int,
) -> None:  # fmt: skip
    import numpy as np

    from evenhand.claims.guarantees.excess import simulated_excess
    from evenhand.plotting.guarantees import plot_plan

    simulated = {}
    if model is not None and trials > 0:
        from evenhand.simulation.simulate import simulate

        # the rule that is promised something, and the one that people run
        rules = (
            [problem.rule, "optimistic"] if epsilon is None else [f"epsilon-greedy:epsilon={epsilon},explore=uniform"]
        )
        budgets = [50, 100, 200, 500, 1000]
        trace = simulate(model, rules, budget=budgets[-1], trials=trials, progress=True).trace
        simulated = {
            r: (np.array(budgets, dtype=float), simulated_excess(trace, model, budgets, strategy=r)) for r in rules
        }
    plot_plan(problem, epsilon=epsilon, beta=beta, radius=radius, simulated=simulated).savefig(file, dpi=150)


def _show(found: JsonObject, plot: Path | None) -> None:
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


def _sentences(found: JsonObject) -> list[str]:
    """The promise and the budget, the figures of the paper's remarks, the lower bound, and what is assumed."""
    lines = _said_exploring(found, "exploring uniformly") if "exploration" in found else _said_promise(found)
    if population := found.get("population"):
        lines += _said_exploring(population, "exploring by the population's shares")
    lines += _said_remarks(found)
    if lower := found.get("lower_bound"):
        near, far = lower["radii"]
        lines.append(
            f"no rule has a mean excess risk below {lower['value']:.3g} on both of the instances with radii "
            f"{near:g} and {far:.4g}, whichever group is harder"
        )
    return [*lines, *found["assumed"]]


def _said_exploring(found: JsonObject, how: str) -> list[str]:
    from evenhand.claims.guarantees.promise import count

    look, lines = found["exploration"], []
    if look["stuck"]:
        lines.append(
            f"no promise: ε-greedy, {how}, over-explores and stays away from the fair mixture (ε above "
            f"{look['largest_epsilon']:.4g})"
        )
        if look["tau0_labels"] is not None:
            lines.append(f"that is certain from {count(look['tau0_labels'])} labels")
        if "floor" in look:
            lines.append(
                f"excess risk stays above {look['floor']:.5f} from there, and ends near {look['last_floor']:.5f}"
            )
    return lines + _said_promise(found, f", {how}")


def _said_promise(found: JsonObject, how: str = "") -> list[str]:
    from evenhand.claims.guarantees.promise import count
    from evenhand.claims.search import BEYOND

    lines = []
    if promise := found.get("promise"):
        head, *rest = promise["text"].split("; ")
        speaks = [part for part in rest if "speak" in part]
        lines.append("; ".join([head, *speaks]) + f" ({promise['labels']} labels are {promise['rounds']} rounds)")
        if promise["floor"] > 0:
            lines.append(
                f"no budget brings that promise below {promise['floor']:.4g}, because C ends at its resolution"
            )
        if promise["note"]:
            lines.append(promise["note"])
        if not how:
            lines.append("it is for that very rule: `optimistic` as campaigns run it, with c0/√N, has no promise")
    if budget := found.get("budget"):
        need = f"it takes {BEYOND}" if budget["labels"] is None else f"it takes {count(budget['labels'])} labels"
        lines.append(f"to be promised an excess risk of {budget['target']:g}{how}: {need}")
    return lines


def _said_remarks(found: JsonObject) -> list[str]:
    remarks = found.get("remarks")
    if remarks is None:
        return [found["coupling_term"]]
    lines = []
    if order := remarks["order"]:
        lines.append(
            f"Remark 1: the promise is of the order {order['form']} = {order['value']:.4g}; constants and logarithms make "
            f"it {order['hidden']:.3g} times that"
        )
    lines.append(f"Remark 3: {remarks['comparison']['text']}")
    lines.append(f"{found['coupling_term']}; without it the first phase may add B₀' = {remarks['first_phase']:.4g}")
    if greedy := remarks.get("greedy"):
        good, bad = greedy["at_the_fair_mixture"], greedy["before_the_run"]
        lines.append(
            f"Remark 2: the greedy rule's own bound (Abernethy et al.) is {good['value']:.4g} if it ends on the fair mixture "
            f"with {good['examples']:.0f} examples of the smallest group; nothing keeps it from {bad['value']:.3g}, with one"
        )
    return lines

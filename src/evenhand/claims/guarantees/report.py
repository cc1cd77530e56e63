"""Everything the theory says about one problem, as plain values: what `evenhand plan` prints."""

import numpy as np
from numpy.typing import ArrayLike

from evenhand.claims.bounds import VCBound
from evenhand.claims.guarantees.coupling import first_phase, may_go, square_root_constant, uncoupled
from evenhand.claims.guarantees.exploring import epsilon_greedy, epsilon_greedy_labels_for, exploration
from evenhand.claims.guarantees.lower import lower_bound, other_radius
from evenhand.claims.guarantees.optimism import labels_for, optimistic
from evenhand.claims.guarantees.problem import Problem
from evenhand.claims.guarantees.promise import Promise
from evenhand.claims.guarantees.remarks import abernethy, compare, order_of
from evenhand.errors import InputError
from evenhand.notation import JsonObject
from evenhand.sources.synthetic.model1 import SyntheticModel1


def assumed(problem: Problem) -> list[str]:
    """The four assumptions, with what is known against them for a problem like this."""
    no_one = "; no problem with three or more groups has it" if problem.groups > 2 else ""
    if problem.kappa is not None:
        third = f"π(z)·|ΔL(z)| ≤ {problem.kappa:g}·√excess, the square-root form"
    elif problem.resolution > 0:
        third = f"C = {problem.C:g} holds for excess risks from {problem.resolution:g} up, and below that nothing more"
    else:
        third = f"C = {problem.C:g} holds for every excess risk, which Assumption 1 rules out: give resolution or kappa"
    return [
        f"Assumption 1: a larger share of a group always lowers its risk{no_one}",
        "Assumption 2: every group's own best rule is better on it than on any other group (probe it in your data)",
        f"Assumption 3: {third}",
        "Assumption 4: the deviation sequence holds for every group and every count at once",
    ]


def report(
    problem: Problem,
    *,
    labels: int | None = None,
    target: float | None = None,
    epsilon: float | None = None,
    beta: float | None = None,
    shares: ArrayLike | None = None,
    radius: float = 1.0,
    model: SyntheticModel1 | None = None,
) -> JsonObject:
    """The promise for the budget `labels`, and the budget for the promise `target`; with `epsilon` also for ε-greedy.

    ε-greedy is planned with uniform exploration and, if population `shares` are given, with those as well.
    """
    if labels is None and target is None:
        raise InputError("give a budget, a promise, or both")
    if shares is not None and epsilon is None:
        raise InputError("population shares are for ε-greedy: give epsilon too")
    if shares is not None and problem.fair is None:
        raise InputError("population shares need the whole fair mixture: give fair, or a source whose risks are known")
    found: JsonObject = {
        "schema": 2,
        "units": {"labels": "all labels, training and validation", "rounds": "training examples, labels/2"},
        "inputs": _inputs(problem, model),
        "assumed": assumed(problem),
        "coupling_term": str(may_go(problem)),
    }
    if epsilon is None:
        found |= _answers(problem, labels, target)
    else:
        found |= _exploring(problem, epsilon, beta, None, labels, target, model)
        if shares is not None:
            found["population"] = _exploring(problem, epsilon, beta, shares, labels, target, model)
    if labels is not None:
        found["remarks"] = _remarks(problem, labels, target or 0.1)
        if labels >= 2 and labels > 1 / (2 * radius**2):
            pair = (radius, other_radius(labels, radius))
            found["lower_bound"] = {"value": lower_bound(labels, radius), "labels": labels, "radii": list(pair)}
    return found


def problem_of(model: SyntheticModel1, **settings: object) -> Problem:
    """A problem whose groups, fair mixture and gap are those of a model with known risks."""
    fair = model.pi_star()
    known = {"groups": len(model.groups), "pi_min": float(fair.min()), "gap": model.gap, "fair": fair.tolist()}
    given = {name: value for name, value in settings.items() if value is not None}
    if given.keys() & {"groups", "pi_min"}:
        # other groups or another smallest share than the
        # model's: its mixture is then not the one that is meant
        known.pop("fair")
    return Problem(**{**known, **given})


def _answers(problem: Problem, labels: int | None, target: float | None) -> JsonObject:
    found: JsonObject = {}
    if labels is not None:
        found["promise"] = _plain(optimistic(problem, labels))
    if target is not None:
        found["budget"] = {"target": target, "labels": labels_for(problem, target)}
    return found


def _exploring(
    problem: Problem, epsilon: float, beta: float | None, shares: ArrayLike | None, labels: int | None,
    target: float | None, model: SyntheticModel1 | None,
) -> JsonObject:  # fmt: skip
    look = exploration(epsilon, problem.fair or _least_fair(problem), delta=problem.failure, shares=shares)
    stuck = look.stuck is not None
    where = {"largest_epsilon": look.largest, "stuck": stuck, "tau0_labels": _twice(look.tau0)}
    if model:
        where |= {"floor": look.floor(model), "last_floor": look.last_floor(model)}
    found: JsonObject = {"exploration": where}
    if labels is not None:
        promise = None if stuck else epsilon_greedy(problem, epsilon, labels, beta, shares=shares)
        found["promise"] = None if promise is None else _plain(promise)
    if target is not None:
        need = None if stuck else epsilon_greedy_labels_for(problem, epsilon, target, beta, shares=shares)
        found["budget"] = {"target": target, "labels": need}
    return found


def _remarks(problem: Problem, labels: int, target: float) -> JsonObject:
    """The paper's remarks, as numbers."""
    order = order_of(problem, labels)
    compared = compare(problem, labels, target)
    found: JsonObject = {
        "order": None if order is None else vars(order),
        "comparison": {**compared.as_dict(), "text": str(compared)},
        "first_phase": first_phase(problem, labels),
        "uncoupled": _plain(uncoupled(problem, labels)),
    }
    if isinstance(problem.bound, VCBound) and problem.groups == 2:
        fair = max(1.0, problem.pi_min * (labels // 2))
        bounds = {"at_the_fair_mixture": fair, "before_the_run": 1.0}
        found["greedy"] = {
            name: {"examples": n, "value": abernethy([n], problem.bound.d, problem.failure)}
            for name, n in bounds.items()
        }
    return found


def _plain(promise: Promise) -> JsonObject:
    return {**promise.as_dict(), "text": str(promise)}


def _inputs(problem: Problem, model: SyntheticModel1 | None) -> JsonObject:
    gap = "computed from the model" if callable(problem.gap) else problem.gap
    names = ("groups", "pi_min", "fair", "C", "resolution", "kappa", "A", "xi")
    inputs: JsonObject = {name: getattr(problem, name) for name in names}
    inputs |= {"delta": problem.failure, "epsilon0": problem.epsilon0, "gap": gap, "bound": repr(problem.bound)}
    if model is not None:
        inputs["source"] = model.name
        inputs["kappa_at_fair_mixture"] = square_root_constant(model, model.pi_star())
    return inputs


def _least_fair(problem: Problem) -> list[float]:
    """A mixture with this π_min, which is all that is known and all that uniform exploration depends on."""
    m = problem.groups
    if m == 1:
        return [1.0]
    return [problem.pi_min, *np.full(m - 1, (1 - problem.pi_min) / (m - 1)).tolist()]


def _twice(rounds: int | None) -> int | None:
    return None if rounds is None else 2 * rounds

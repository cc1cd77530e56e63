"""Everything the theory says about one problem, as plain values: what `evenhand plan` prints."""

from typing import Any

import numpy as np

from evenhand.claims.guarantees.coupling import square_root_constant, two_terms
from evenhand.claims.guarantees.exploring import epsilon_greedy, epsilon_greedy_labels_for, exploration
from evenhand.claims.guarantees.lower import lower_bound, other_radius
from evenhand.claims.guarantees.optimism import labels_for, optimistic
from evenhand.claims.guarantees.problem import Problem
from evenhand.errors import InputError
from evenhand.sources.synthetic.model1 import SyntheticModel1

ASSUMED = (
    "Assumption 1: a larger share of a group always lowers its risk",
    "Assumption 2: every group's own best rule is better on it than on any other group (probe it in your data)",
    "Assumption 3: C holds down to the stated resolution; no smooth problem has a C for every excess risk",
    "Assumption 4: the deviation sequence holds for every group and every count at once",
)


def report(
    problem: Problem,
    *,
    labels: int | None = None,
    target: float | None = None,
    epsilon: float | None = None,
    beta: float | None = None,
    radius: float = 1.0,
    model: SyntheticModel1 | None = None,
) -> dict[str, Any]:
    """Budget → promise for `labels`, promise → budget for `target`; of ε-greedy where `epsilon` is given."""
    if labels is None and target is None:
        raise InputError("give a budget, a promise, or both")
    found: dict[str, Any] = {
        "schema": 1,
        "units": {"labels": "all labels, training and validation", "rounds": "training examples, labels/2"},
        "inputs": _inputs(problem, model),
        "assumed": list(ASSUMED),
        "coupling_term": str(two_terms(problem.deviation, problem.xi, problem.groups)),
    }
    stuck = None
    if epsilon is not None:
        fair = model.pi_star() if model else _least_fair(problem)
        look = exploration(epsilon, fair, delta=problem.failure)
        stuck = look.stuck is not None
        found["exploration"] = {"largest_epsilon": look.largest, "stuck": stuck, "tau0_labels": _twice(look.tau0)}
        if model:
            found["exploration"] |= {"floor": look.floor(model), "last_floor": look.last_floor(model)}
    if labels is not None:
        found["promise"] = None if stuck else _promise(problem, epsilon, labels, beta)
        if labels >= 2 and labels > 1 / (2 * radius**2):
            pair = (radius, other_radius(labels, radius))
            found["lower_bound"] = {"value": lower_bound(labels, radius), "labels": labels, "radii": list(pair)}
    if target is not None:
        found["budget"] = {"target": target, "labels": None if stuck else _budget(problem, epsilon, target, beta)}
    return found


def problem_of(model: SyntheticModel1, **settings: Any) -> Problem:
    """A problem whose groups, π_min and gap are those of a model with known risks."""
    known = {"groups": len(model.groups), "pi_min": float(model.pi_star().min()), "gap": model.gap}
    return Problem(**{**known, **{name: value for name, value in settings.items() if value is not None}})


def _promise(problem: Problem, epsilon: float | None, labels: int, beta: float | None) -> dict[str, Any]:
    promise = optimistic(problem, labels) if epsilon is None else epsilon_greedy(problem, epsilon, labels, beta)
    return {**promise.as_dict(), "text": str(promise)}


def _budget(problem: Problem, epsilon: float | None, target: float, beta: float | None) -> int | None:
    if epsilon is None:
        return labels_for(problem, target)
    return epsilon_greedy_labels_for(problem, epsilon, target, beta)


def _inputs(problem: Problem, model: SyntheticModel1 | None) -> dict[str, Any]:
    gap = "computed from the model" if callable(problem.gap) else problem.gap
    inputs = {name: getattr(problem, name) for name in ("groups", "pi_min", "C", "resolution", "kappa", "A", "xi")}
    inputs |= {"delta": problem.failure, "epsilon0": problem.epsilon0, "gap": gap, "bound": repr(problem.bound)}
    if model is not None:
        inputs["source"] = model.name
        inputs["kappa_at_fair_mixture"] = square_root_constant(model, model.pi_star())
    return inputs


def _least_fair(problem: Problem) -> list[float]:
    """A mixture with this π_min: all that is known, and all that uniform exploration depends on."""
    m = problem.groups
    if m == 1:
        return [1.0]
    return [problem.pi_min, *np.full(m - 1, (1 - problem.pi_min) / (m - 1)).tolist()]


def _twice(rounds: int | None) -> int | None:
    return None if rounds is None else 2 * rounds

"""What the theorems promise for a budget, and the budget for a promise.

A `Problem` names what must be known or assumed; `optimistic` and `epsilon_greedy` turn a budget into a `Promise`,
`labels_for` and `epsilon_greedy_labels_for` a promise into a budget. All budgets are in labels: a round costs two.
"""

from evenhand.claims.guarantees.coupling import TwoTerms, coupling_ratio, square_root_constant, two_terms
from evenhand.claims.guarantees.exploring import (
    Exploration,
    epsilon_greedy,
    epsilon_greedy_labels_for,
    exploration,
    largest_beta,
)
from evenhand.claims.guarantees.lower import lower_bound, lower_bound_pair, other_radius
from evenhand.claims.guarantees.optimism import labels_for, optimistic, smallest_budget
from evenhand.claims.guarantees.phases import Phase, phases
from evenhand.claims.guarantees.probe import Probe, probe
from evenhand.claims.guarantees.problem import Problem
from evenhand.claims.guarantees.promise import Condition, Promise

__all__ = [
    "Condition",
    "Exploration",
    "Phase",
    "Probe",
    "Problem",
    "Promise",
    "TwoTerms",
    "coupling_ratio",
    "epsilon_greedy",
    "epsilon_greedy_labels_for",
    "exploration",
    "labels_for",
    "largest_beta",
    "lower_bound",
    "lower_bound_pair",
    "optimistic",
    "other_radius",
    "phases",
    "probe",
    "smallest_budget",
    "square_root_constant",
    "two_terms",
]

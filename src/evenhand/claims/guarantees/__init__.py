"""What the theorems promise for a budget, and the budget for a promise.

A `Problem` names what must be known or assumed; `optimistic`, `uncoupled` and `epsilon_greedy` turn a budget into a
`Promise` for one rule, and `…labels_for` turns a promise into a budget. All budgets are in labels: a round costs two.
`probe` looks at Assumption 2 in data, `pareto` at the front of group risks.
"""

from evenhand.claims.guarantees.coupling import (
    TwoTerms,
    coupling_ratio,
    first_phase,
    square_root_constant,
    two_terms,
    uncoupled,
    uncoupled_labels_for,
)
from evenhand.claims.guarantees.data import Front, Probe, pareto, probe
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
from evenhand.claims.guarantees.problem import Problem
from evenhand.claims.guarantees.promise import Condition, Promise
from evenhand.claims.guarantees.remarks import Comparison, Order, abernethy, compare, order_of

__all__ = [
    "Comparison",
    "Condition",
    "Exploration",
    "Front",
    "Order",
    "Phase",
    "Probe",
    "Problem",
    "Promise",
    "TwoTerms",
    "abernethy",
    "compare",
    "coupling_ratio",
    "epsilon_greedy",
    "epsilon_greedy_labels_for",
    "exploration",
    "first_phase",
    "labels_for",
    "largest_beta",
    "lower_bound",
    "lower_bound_pair",
    "optimistic",
    "order_of",
    "other_radius",
    "pareto",
    "phases",
    "probe",
    "smallest_budget",
    "square_root_constant",
    "two_terms",
    "uncoupled",
    "uncoupled_labels_for",
]

"""The candidates for the model, fitted again by scikit-learn fold by fold: are their risks what the report says?"""

from __future__ import annotations

from typing import Any

import numpy as np

from evenhand.arrays import Floats, Ints, Values
from evenhand.curation.recomputing import logistic, risk_of

__all__ = ["candidates_agree", "group_weights"]

NEAR = 0.01
"""How far a candidate's risk may lie from the one recomputed: fits in folds are rougher, so single rows may tip over."""


def group_weights(group: Values, weights: dict[str, float], strength: float) -> Floats | None:
    """The weight of every row where groups were re-weighted by so much; None for equal weights."""
    if not strength:
        return None
    names, place, size = np.unique(group, return_inverse=True, return_counts=True)
    q = np.array([weights[name] for name in names.tolist()])
    found = (1 + strength * (q * len(group) / size - 1))[place]
    return np.asarray(found * len(group) / found.sum())


def candidates_agree(report: dict[str, Any], X: Floats, y: Ints, group: Values) -> tuple[bool, str]:
    """Whether the candidates' risks are those of logistic regressions of scikit-learn on the same folds; and in words."""
    choice = report["choice"]
    fold, wrong = np.array(choice["folds"]), []
    for candidate in choice["candidates"]:
        predicted, chances = np.zeros(len(y), dtype=np.int64), np.zeros((len(y), len(report["classes"])))
        for k in np.unique(fold):
            fit, rest = fold != k, fold == k
            weight = group_weights(group[fit], choice["weights"], candidate["strength"])
            if len(np.unique(y[fit])) < 2:
                predicted[rest], chances[rest] = y[fit][0], np.eye(len(report["classes"]))[y[fit][0]]
                continue
            model = logistic(X[fit], y[fit], weight, C=candidate["C"], tol=1e-6)
            predicted[rest] = model.predict(X[rest])
            chances[np.ix_(rest, model.classes_)] = model.predict_proba(X[rest])
        for name, stated in candidate["by_group"].items():
            part = group == name
            found = risk_of(y[part], predicted[part], chances[part], report)
            # a row or two of a small group may tip over between two solvers
            if found is not None and stated is not None and abs(found[0] - stated) > NEAR + 1.5 / part.sum():
                wrong.append(f"{candidate['name']}, {name}: {stated:.4f} is {found[0]:.4f}")
        worst = max(value for value in candidate["by_group"].values() if value is not None)
        wrong += [f"{candidate['name']}: {candidate['risk']}"] * (not np.isclose(worst, candidate["risk"]))
    return not wrong, "; ".join(wrong[:5]) or f"{len(choice['candidates'])} candidates on the same folds"

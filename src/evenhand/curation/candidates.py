"""The candidates for the model, fitted again by scikit-learn fold by fold: are their risks what the report says?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from evenhand.arrays import Floats, Ints, Values
from evenhand.curation.recomputing import classifier_of, logistic, risk_of
from evenhand.notation import JsonObject

__all__ = ["candidates_agree", "group_weights", "refits_of"]

Refit = Callable[[Floats, Ints, Floats | None, float | None], Any]

NEAR = 0.01
"""How far a candidate's risk may lie from the recomputed one: fits in folds are rough, and a row may change class."""


def group_weights(group: Values, weights: dict[str, float], strength: float) -> Floats | None:
    """The weight of every row if groups are re-weighted with this strength; None for equal weights."""
    if not strength:
        return None
    names, place, size = np.unique(group, return_inverse=True, return_counts=True)
    q = np.array([weights[name] for name in names.tolist()])
    # from equal weights (strength 0) to groups weighted as q says (strength 1), whatever their sizes
    found = (1 + strength * (q * len(group) / size - 1))[place]
    return np.asarray(found * len(group) / found.sum())


def refits_of(archive: dict[str, bytes]) -> Refit | None:
    """How scikit-learn fits a candidate; None if the stored model does not say."""
    form, data = classifier_of(archive)
    if form == "logistic" and "encoder.json" in archive:
        return lambda X, y, weight, C: logistic(X, y, weight, C=C or 1.0, tol=1e-6)
    if form != "skops":
        return None
    from skops.io import loads

    estimator = loads(data)
    if not isinstance(estimator, LogisticRegression):  # others may draw random numbers
        return None
    return lambda X, y, weight, C: clone(estimator).set_params(C=C).fit(X, y, weight)


def candidates_agree(report: JsonObject, fit_again: Refit, X: Floats, y: Ints, group: Values) -> tuple[bool, str]:
    """Whether scikit-learn's models on the same folds have the candidates' risks; and the outcome in words."""
    choice = report["choice"]
    fold, wrong = np.array(choice["folds"]), []
    for candidate in choice["candidates"]:
        predicted, chances = np.zeros(len(y), dtype=np.int64), np.zeros((len(y), len(report["classes"])))
        for k in np.unique(fold):
            fit, rest = fold != k, fold == k
            weight = group_weights(group[fit], choice["weights"], candidate["strength"])
            # scikit-learn refuses to fit one class
            if len(np.unique(y[fit])) < 2:
                predicted[rest], chances[rest] = y[fit][0], np.eye(len(report["classes"]))[y[fit][0]]
                continue
            model = fit_again(X[fit], y[fit], weight, candidate["C"])
            predicted[rest] = model.predict(X[rest])
            chances[np.ix_(rest, model.classes_)] = model.predict_proba(X[rest])
        for name, stated in candidate["by_group"].items():
            part = group == name
            found = risk_of(y[part], predicted[part], chances[part], report)
            # a row or two of a small group may change class between two solvers
            if found is not None and stated is not None and abs(found[0] - stated) > NEAR + 1.5 / part.sum():
                wrong.append(f"{candidate['name']}, {name}: {stated:.4f} is {found[0]:.4f}")
        worst = max(value for value in candidate["by_group"].values() if value is not None)
        wrong += [f"{candidate['name']}: {candidate['risk']}"] * (not np.isclose(worst, candidate["risk"]))
    return not wrong, "; ".join(wrong[:5]) or f"{len(choice['candidates'])} candidates on the same folds"

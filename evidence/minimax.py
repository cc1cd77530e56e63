"""`Minimax`: its folds and rate, published methods with the same aim, and fairlearn's reduction, on the same rows."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from fairlearn.reductions import BoundedGroupLoss, ExponentiatedGradient, ZeroOneLoss
from sklearn.linear_model import LogisticRegression

import evenhand as eh
from evenhand.learners.choosing import fit_chosen
from evidence.rivals import Mixture, adaptive_weights, mixture_of_models
from evidence.sources import SOURCES, Sample, digits, fashion, is_even, over_data_sets, sample, source_of

Found = dict[str, Any]
SETTINGS = [(folds, rate) for folds in (0, 5) for rate in (0.25, 0.5, 1.0, 2.0, 4.0)]
METHODS: dict[str, Callable[[Sample, int], Any]] = {
    "plain": lambda s, trial: eh.Logistic().fit(s.X, s.y),
    "final_model": lambda s, trial: fit_chosen(eh.Logistic(), s.X, s.y, s.groups, seed=trial),
    "Minimax": lambda s, trial: eh.Minimax(eh.Logistic()).fit(s.X, s.y, groups=s.groups, seed=trial),
    "mixture (Diana et al.)": lambda s, trial: mixture_of_models(s.X, s.y, s.groups),
    "APStar (Martinez et al.)": lambda s, trial: adaptive_weights(s.X, s.y, s.groups),
}


def gains(
    settings: list[tuple[int, float]], seed: int, places: tuple[int, ...], trials: int, names: list[str]
) -> list[Found]:
    """By how much every setting lowers the worst group's test error: the mean over data sets, and the least cell."""
    cells = []
    for name in names:
        for even in (True,) if is_even(source_of(name)) else (True, False):
            for budget in (SOURCES[name].budgets[place] for place in places):
                lower = np.zeros(len(settings))
                for trial in range(trials):
                    rows = sample(source_of(name), budget, seed, trial, even=even)
                    plain = rows.errors(eh.Logistic().fit(rows.X, rows.y)).max()
                    for k, (folds, rate) in enumerate(settings):
                        learner = eh.Minimax(eh.Logistic(), folds=folds, rate=rate)
                        fitted = learner.fit(rows.X, rows.y, groups=rows.groups, seed=trial)
                        lower[k] += 100 * (plain - rows.errors(fitted).max()) / trials
                cells.append((name, budget, lower))
    found = []
    for k, (folds, rate) in enumerate(settings):
        least = min(cells, key=lambda cell: cell[2][k])
        over = over_data_sets((name, lower[k]) for name, _, lower in cells)
        row = {"folds": folds, "rate": rate, "cells": len(cells), "gain": over}
        found.append({**row, "least": least[2][k], "least_at": f"{least[0]}, {least[1]}"})
    return found


def rates(small: bool) -> Found:
    """Every setting on the choosing seed; the best one and its neighbours on a fresh one."""
    trials, names = (1, ["wine"]) if small else (10, list(SOURCES))
    choosing = gains(SETTINGS[5:7] if small else SETTINGS, 303, (1,), trials, names)
    best = max(choosing, key=lambda row: row["gain"]["mean"])
    compared = sorted({(best["folds"], best["rate"]), (5, 4.0), (0, best["rate"])})
    return {"trials": trials, "choosing": choosing, "confirming": gains(compared, 404, (0, 1, 2), trials, names)}


def methods(small: bool) -> Found:
    """Every method on every source at its largest budget: worst-group test error, and median seconds of a fit."""
    cells, trials = [], 1 if small else 10
    for name in ["wine"] if small else SOURCES:
        budget, even = SOURCES[name].budgets[-1], is_even(source_of(name))
        error: dict[str, list[float]] = {method: [] for method in METHODS}
        seconds: dict[str, list[float]] = {method: [] for method in METHODS}
        for trial in range(trials):
            # labels as they come, by the population's shares, where these are uneven
            rows = sample(source_of(name), budget, 505, trial, even=even)
            for method, fit in METHODS.items():
                model, spent = timed(lambda fit=fit, rows=rows, trial=trial: fit(rows, trial))
                seconds[method].append(spent)
                risks = model.risks(rows.errors) if isinstance(model, Mixture) else rows.errors(model)
                error[method].append(float(risks.max()))
        cells.append({
            "source": name, "budget": budget, "even": even,
            "seconds": {method: float(np.median(values)) for method, values in seconds.items()},
            "error": {method: float(np.mean(values)) for method, values in error.items()},
        })  # fmt: skip
    return {"trials": trials, "cells": cells}


def costs(small: bool) -> Found:
    """Seconds of `final_model()` in a campaign with these labels, and of `Minimax` beside fairlearn's reduction."""
    cases = (
        {} if small else {"FashionMNIST": (fashion(), 2000, True), "Adult": (eh.datasets.load("adult"), 10_000, False)}
    )
    final = {}
    for name, (source, budget, even) in cases.items():
        rows = sample(source, budget, 606, 0, even=even)
        X = rows.X.toarray() if hasattr(rows.X, "toarray") else rows.X
        campaign = eh.Campaign(list(source.groups), "uniform", "logistic", budget=10, classes=list(source.classes))
        campaign.add(X, rows.y, rows.groups)
        model, seconds = timed(campaign.final_model)
        final[name] = {"seconds": seconds, "rows": list(X.shape), "chosen": model.choice.chosen}
    sources: dict[str, tuple[Any, int]] = {"digits": (digits(), 100 if small else 1000)}
    if not small:
        sources |= {
            "synthetic1:I": (eh.SyntheticModel1.instance("I"), 5000),
            "adult": (eh.datasets.load("adult"), 5000),
        }
    beside = []
    for name, (source, budget) in sources.items():
        runs = [
            fairlearn_beside(sample(source, budget, 606, t, even=name != "adult")) for t in range(1 if small else 5)
        ]
        errors = {key: float(np.mean([run[0][key] for run in runs])) for key in runs[0][0]}
        # the least time is the one that was disturbed least
        least = {key: min(run[1][key] for run in runs) for key in runs[0][1]}
        ratios = {key: least["fairlearn"] / least[key] for key in ("minimax", "in_sample")}
        beside.append({"source": name, "rows": budget, "error": errors, "seconds": least, "ratio": ratios})
    return {"final_model": final, "fairlearn": beside}


def fairlearn_beside(rows: Sample) -> tuple[dict[str, float], dict[str, float]]:
    """Errors and seconds; fairlearn is told the risk `Minimax` reached as its bound, which it would have to search for."""
    X = rows.X.toarray() if hasattr(rows.X, "toarray") else rows.X
    classes, y = np.unique(rows.y, return_inverse=True)

    def errors(model: Any) -> Any:
        return rows.errors(Named(model, classes))

    fair, ours = timed(lambda: eh.Minimax(eh.Logistic()).fit(X, y, groups=rows.groups))
    quick, in_sample = timed(lambda: eh.Minimax(eh.Logistic(), folds=0).fit(X, y, groups=rows.groups))
    risk = max(float((fair.predict(X) != y)[rows.groups == z].mean()) for z in np.unique(rows.groups))
    bound = BoundedGroupLoss(ZeroOneLoss(), upper_bound=risk)
    reduction = ExponentiatedGradient(LogisticRegression(max_iter=1000), bound)
    _, theirs = timed(lambda: reduction.fit(X, y, sensitive_features=rows.groups))
    # one of its models is drawn for every prediction: the mean by their weights
    drawn = reduction.weights_.to_numpy() @ np.array([errors(model) for model in reduction.predictors_])
    plain = errors(eh.Logistic().fit(X, y))
    found = {"plain": plain, "minimax": errors(fair), "in_sample": errors(quick), "fairlearn": drawn}
    return (
        {name: float(values.max()) for name, values in found.items()},
        {"minimax": ours, "in_sample": in_sample, "fairlearn": theirs},
    )


class Named:
    """A model of 0 and 1 that answers with the source's labels."""

    def __init__(self, model: Any, classes: Any) -> None:
        self.model, self.classes = model, classes

    def predict(self, X: Any) -> Any:
        """The predicted label of every row."""
        X = X.toarray() if hasattr(X, "toarray") else X
        return self.classes[np.asarray(self.model.predict(X), dtype=np.int64)]


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What came out, and seconds of the processor, which other work disturbs less than the clock."""
    started = time.process_time()
    return work(), time.process_time() - started


def measure(small: bool) -> Found:
    """All three."""
    return {part.__name__: part(small) for part in (rates, methods, costs)}

"""What the model to deploy costs, and `Minimax` beside fairlearn's reduction on the same rows in the same process."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from fairlearn.reductions import BoundedGroupLoss, ExponentiatedGradient, ZeroOneLoss
from sklearn.linear_model import LogisticRegression

import evenhand as eh
from evenhand.arrays import Floats
from model_runs.samples import Sample, draw
from model_runs.sources import digits, fashion

__all__ = ["costs"]

REPEATS = 5
SEED = 606


def costs() -> dict[str, Any]:
    """Both, one after the other."""
    return {"final_model": final_model_seconds(), "fairlearn": fairlearn_beside_minimax()}


def final_model_seconds() -> dict[str, Any]:
    """Seconds of `final_model()` in a campaign that has these labels."""
    cases = {
        "fashion, 2,000 × 61 dense": (fashion(), 2000, True, True),
        "Adult, 10,000 labels": (eh.datasets.load("adult"), 10_000, False, False),
    }
    found = {}
    for name, (source, budget, even, constant) in cases.items():
        sample = draw(source, budget, SEED, 0, even=even)
        X = np.column_stack((sample.X, np.ones(len(sample.y)))) if constant else sample.X
        campaign = eh.Campaign(
            list(source.groups), eh.Uniform(), eh.Logistic(), budget=10, classes=list(source.classes)
        )
        campaign.add(X if constant else X.toarray(), sample.y, sample.groups)
        seconds, model = _timed(campaign.final_model)
        found[name] = {"seconds": seconds, "rows": list(X.shape), "chosen": model.choice.chosen}
        print(name, found[name], flush=True)
    return found


def fairlearn_beside_minimax() -> list[dict[str, Any]]:
    """One fit each: fairlearn is told the risk `Minimax` reached as its bound, which it would have to search for."""
    sources = {
        "synthetic1:I": (eh.SyntheticModel1.instance("I"), 5000),
        "digits": (digits(), 1000),
        "adult": (eh.datasets.load("adult"), 5000),
    }
    found = []
    for name, (source, budget) in sources.items():
        rows = [_one(draw(source, budget, SEED, trial, even=name != "adult")) for trial in range(REPEATS)]
        mean = {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
        # the least time is the one that was disturbed least
        least = {key: min(row[key] for row in rows) for key in rows[0] if key.endswith("seconds")}
        ratios = {
            f"{ours}_ratio": least["fairlearn_seconds"] / least[f"{ours}_seconds"] for ours in ("minimax", "in_sample")
        }
        found.append({"source": name, "rows": budget, "trials": REPEATS, **mean, **least, **ratios})
        print(found[-1], flush=True)
    return found


def _one(sample: Sample) -> dict[str, float]:
    X = sample.X.toarray() if hasattr(sample.X, "toarray") else sample.X
    y = (sample.y == np.unique(sample.y)[1]).astype(int)
    ours, fair = _timed(lambda: eh.Minimax(eh.Logistic()).fit(X, y, groups=sample.groups))
    in_sample, quick = _timed(lambda: eh.Minimax(eh.Logistic(), folds=0).fit(X, y, groups=sample.groups))
    risk = max(float((fair.predict(X) != y)[sample.groups == z].mean()) for z in np.unique(sample.groups))
    reduction = ExponentiatedGradient(
        LogisticRegression(max_iter=1000), BoundedGroupLoss(ZeroOneLoss(), upper_bound=risk)
    )
    theirs, _ = _timed(lambda: reduction.fit(X, y, sensitive_features=sample.groups))
    return {
        "minimax_seconds": ours,
        "in_sample_seconds": in_sample,
        "fairlearn_seconds": theirs,
        "plain_error": sample.worst(_Named(eh.Logistic().fit(X, y), sample)),
        "minimax_error": sample.worst(_Named(fair, sample)),
        "in_sample_error": sample.worst(_Named(quick, sample)),
        "fairlearn_error": float(_expected(reduction, sample).max()),
    }


class _Named:
    """A model of 0 and 1 that answers with the source's labels."""

    def __init__(self, model: Any, sample: Sample) -> None:
        self.model, self.classes = model, np.unique(sample.y)

    def predict(self, X: Any) -> Any:
        """The predicted label of every row."""
        X = X.toarray() if hasattr(X, "toarray") else X
        return self.classes[np.asarray(self.model.predict(X), dtype=np.int64)]


def _expected(reduction: Any, sample: Sample) -> Floats:
    """Group errors of a reduction, which draws one of its models for every prediction: the mean by their weights."""
    weights = reduction.weights_.to_numpy()
    errors = [sample.errors(_Named(model, sample)) for model in reduction.predictors_]
    return np.asarray(weights @ np.array(errors))


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of the processor, which other work disturbs less than the clock, and what came out."""
    started = time.process_time()
    value = work()
    return time.process_time() - started, value

"""A learner from the text a ledger holds."""

from __future__ import annotations

import hashlib
import importlib
import os
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from evenhand.errors import InputError

if TYPE_CHECKING:
    from evenhand.learners.base import Loss

__all__ = ["ALLOW", "learner_digest", "learner_from_text", "wants_numbers"]

ALLOW = "EVENHAND_ALLOW"
"""The environment variable that lists the packages a `factory:` may come from, separated by commas."""


def learner_from_text(text: str | None, loss: Loss = "zero_one") -> Any:
    """The learner: `logistic:C=1`, a scikit-learn class by path, `factory:package.module.function`, or None.

    A factory is a function of yours without arguments that gives a learner, a scikit-learn classifier or Pipeline, or a
    torch module. It is imported only from packages that `EVENHAND_ALLOW` names on the machine that fits.
    """
    if text is None:
        return None
    from evenhand.learners import as_learner
    from evenhand.learners.parsing import parse_learner

    if not text.startswith("factory:"):
        return as_learner(parse_learner(text), loss)
    factory = _factory(text.removeprefix("factory:"))
    made = factory()
    if hasattr(made, "parameters") and not hasattr(made, "get_params"):
        from evenhand.learners.torch.learner import TorchLearner

        made = TorchLearner(factory)
    return as_learner(made, loss)


def wants_numbers(learner: Any) -> bool:
    """Whether a learner fails on text and missing values."""
    from evenhand.learners import Logistic, SklearnLearner
    from evenhand.learners.torch.learner import TorchLearner

    if isinstance(learner, SklearnLearner):
        from sklearn.utils import get_tags

        composed = hasattr(learner.estimator, "steps")
        return not composed and not get_tags(learner.estimator).input_tags.allow_nan
    return isinstance(learner, Logistic | TorchLearner)


def learner_digest(text: str | None, seed: int) -> str:
    """A fingerprint of what fitted: the learner's text, its seed, the versions behind it."""
    parts = (text, seed, version("evenhand"), version("scikit-learn"), version("numpy"))
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _factory(path: str) -> Any:
    module, _, name = path.rpartition(".")
    allowed = [entry.strip() for entry in os.environ.get(ALLOW, "").split(",") if entry.strip()]
    if not any(f"{module}.".startswith(f"{entry}.") for entry in allowed):
        raise InputError(
            f"the factory {path!r} is not allowed here: set {ALLOW}={module.partition('.')[0] or path} if you trust it"
        )
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InputError(f"there is no factory {path!r}: {error}") from None
    if not callable(found):
        raise InputError(f"{path!r} is no function: a factory is called without arguments and gives a learner")
    return found

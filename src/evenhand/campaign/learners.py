"""A learner from the text a ledger holds."""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from evenhand.risks import ERROR, Risk

if TYPE_CHECKING:
    from evenhand.learners.base import Learner

__all__ = ["encodes", "learner_digest", "learner_from_text", "wants_numbers"]


def learner_from_text(text: str | None, risk: Risk = ERROR) -> Any:
    """The learner a text describes, ready for the risk; None where somebody else trains."""
    if text is None:
        return None
    from evenhand.learners import as_learner
    from evenhand.learners.parsing import parse_learner

    return as_learner(parse_learner(text), risk)


def wants_numbers(learner: Learner) -> bool:
    """Whether a learner fails on text and missing values."""
    from evenhand.learners import Logistic, SklearnLearner
    from evenhand.learners.columns import needs_columns
    from evenhand.learners.torch.learner import TorchLearner

    if needs_columns(learner):
        return False
    if isinstance(learner, SklearnLearner):
        from sklearn.utils import get_tags

        # a pipeline may impute and encode in its first step, but its tags describe the last
        composed = hasattr(learner.estimator, "steps")
        return not composed and not get_tags(learner.estimator).input_tags.allow_nan
    return isinstance(learner, Logistic | TorchLearner)


def encodes(learner: Any) -> bool:
    """Whether a learner encodes all columns it is given, so that free text must not be among them."""
    return bool(getattr(learner, "encodes", False))


def learner_digest(text: str | None, seed: int) -> str:
    """A fingerprint of what fits: the learner's text, its seed, and the versions of the libraries behind it."""
    parts = (text, seed, version("evenhand"), version("scikit-learn"), version("numpy"))
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]

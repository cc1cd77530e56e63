"""Learners written as text: `logistic:C=1`, a scikit-learn class by its import path, or a user's factory."""

from __future__ import annotations

import importlib
from typing import Any

from evenhand import extending
from evenhand.errors import InputError
from evenhand.learners.logistic.learner import Logistic
from evenhand.learners.sklearn import SklearnLearner
from evenhand.learners.table import TableLearner
from evenhand.notation import parse_settings

__all__ = ["ALLOWED", "describe_learner", "parse_learner"]

ALLOWED = ("sklearn.",)
"""A text may name import paths that begin with one of these; all others need `factory:` and the allow-list."""


def parse_learner(text: str) -> Any:
    """The learner a text describes.

    A factory gives a learner, a scikit-learn classifier or Pipeline, or a torch module.

    >>> parse_learner("logistic:C=0.5")
    Logistic(C=0.5)
    >>> parse_learner("sklearn.naive_bayes.GaussianNB").estimator
    GaussianNB()
    """
    if extending.is_factory(text):
        return _made(text)
    name, _, tail = text.partition(":")
    settings = parse_settings(tail, where=f"learner {name!r}")
    if name == "logistic":
        return _make(Logistic, settings, text)
    if name == "table":
        settings = {key: "none" if value is None else value for key, value in settings.items()}  # scale=none is a name
        return _make(TableLearner, settings, text)
    # scikit-learn's own classes only: an import runs code, and this text may come from a ledger somebody sent
    if name.startswith(ALLOWED) and "." in name:
        own = {key: settings.pop(key) for key in ("update", "columns") if key in settings}
        return SklearnLearner(_make(_classifier(name), settings, text), **own)
    raise InputError(
        f"unknown learner {name!r}: use logistic, table (logistic with text encoded), a scikit-learn classifier by its path, "
        "e.g. sklearn.ensemble.RandomForestClassifier:n_estimators=50, or factory:package.module.function"
    )


def describe_learner(learner: Any) -> str | None:
    """The text that `parse_learner` reads back to this learner, or None where there is none."""
    if isinstance(learner, TableLearner):
        said = [f"C={learner.C}"] * (learner.C != 1.0) + [f"scale={learner.scale}"] * (learner.scale != "standard")
        return f"table:{','.join(said)}" if said else "table"
    prefix, settings = "", {}
    if isinstance(learner, SklearnLearner):
        own = (("update", learner.update, "refit"), ("columns", learner.columns, "auto"))
        settings = {key: value for key, value, default in own if value != default}
        learner = learner.estimator
        prefix = f"{type(learner).__module__}."
        if not prefix.startswith(ALLOWED):
            return None
    elif not isinstance(learner, Logistic):
        return None
    # only settings that differ are written, and only if a text can carry them all: half a description would lie
    default = type(learner)().get_params() if not prefix or _plain(learner) else None
    if default is None:
        return None
    settings |= {k: v for k, v in learner.get_params(deep=False).items() if v != default[k]}
    name = f"{prefix}{type(learner).__name__}" if prefix else "logistic"
    tail = ",".join(f"{key}={value}" for key, value in settings.items())
    return f"{name}:{tail}" if tail else name


def _plain(estimator: Any) -> bool:
    """Whether every setting is a number, a truth value, None or a text, and all have defaults."""
    values = estimator.get_params(deep=False).values()
    try:
        type(estimator)()
    except TypeError:
        return False
    return all(value is None or isinstance(value, bool | int | float | str) for value in values)


def _made(text: str) -> Any:
    found = extending.make(text, "learner", _why_no_learner)
    if not _is_module(found):
        return found
    from evenhand.learners.torch.learner import TorchLearner

    # every trial and every fit from scratch needs a new module: the factory is kept, not the module it made
    return TorchLearner(extending.parse_factory(text))


def _why_no_learner(found: Any) -> str | None:
    return None if hasattr(found, "fit") or _is_module(found) else "it has no fit(X, y)"


def _is_module(found: Any) -> bool:
    """Whether this is a torch module; torch itself is not imported for the test."""
    return hasattr(found, "parameters") and not hasattr(found, "get_params")


def _make(kind: Any, settings: dict[str, Any], text: str) -> Any:
    try:
        return kind(**settings)
    except TypeError as error:
        raise InputError(f"learner {text!r}: {error}") from error


def _classifier(path: str) -> Any:
    from sklearn.base import is_classifier

    module, _, name = path.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        raise InputError(f"scikit-learn has no {path!r}") from None
    if not (isinstance(found, type) and hasattr(found, "fit") and is_classifier(found())):
        raise InputError(f"{path!r} is not a classifier")
    return found

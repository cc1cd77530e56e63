"""Stored models are read without a pickle."""

import pickle
import zipfile
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import evenhand as eh
from evenhand.errors import InputError
from evenhand.learners.sklearn import ConstantModel, SklearnModel
from evenhand.learners.storing import dump_model, load_model

X = np.random.default_rng(0).normal(size=(60, 3))
y = np.where(X[:, 0] > 0, "yes", "no")


def network() -> Any:
    from torch import nn

    return nn.Linear(3, 2)


MODELS = {
    "constant": lambda: ConstantModel("yes", 3),
    "logistic": lambda: eh.Logistic().fit(X, y),
    "skops": lambda: SklearnModel(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)),
    "torch": lambda: eh.TorchLearner(network).fit(X.astype(np.float32), y),
}


@pytest.mark.parametrize("form", MODELS)
def test_a_model_is_stored_and_read_without_a_pickle(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if form == "torch":
        pytest.importorskip("torch")
    rows = X.astype(np.float32) if form == "torch" else X
    model = MODELS[form]()
    expected = model.predict(rows)
    # packages that skops imports use a pickle while they are imported
    dump_model(model)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a pickle")

    for name in ("load", "loads", "Unpickler", "dump", "dumps", "Pickler"):
        monkeypatch.setattr(pickle, name, refuse)
    found, data = dump_model(model)
    again = load_model(found, data, eh.TorchLearner(network) if form == "torch" else None)
    assert found == form
    assert np.array_equal(again.predict(rows), expected)
    if zipfile.is_zipfile(BytesIO(data)):
        assert not [name for name in zipfile.ZipFile(BytesIO(data)).namelist() if name.endswith((".pkl", ".pickle"))]


def test_arrays_that_hold_a_pickle_are_refused() -> None:
    file = BytesIO()
    np.savez(file, classes=np.array([{"any": "object"}], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle"):
        load_model("logistic", file.getvalue())


def test_a_model_outside_of_the_trusted_types_is_refused() -> None:
    with pytest.raises(InputError, match="cannot be stored, so it cannot be frozen"):
        dump_model(SklearnModel(DecisionTreeClassifier().fit(X, y)))

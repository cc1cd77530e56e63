"""Fitted models as bytes that are safe to load: plain arrays, `skops`, `safetensors`; never a pickle."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np

from evenhand.errors import InputError
from evenhand.learners.base import Model
from evenhand.learners.choosing import FinalModel
from evenhand.learners.logistic.learner import Logistic
from evenhand.learners.minimax import Minimax
from evenhand.learners.sklearn import ConstantModel, SklearnModel
from evenhand.learners.table import TableEncoder, TableModel
from evenhand.tables.encoder import Encoder
from evenhand.tables.schema import Schema

__all__ = ["dump_model", "load_model"]


def dump_model(model: Model) -> tuple[str, bytes]:
    """A model's format and bytes; one that cannot be stored safely is refused with the reason."""
    if isinstance(model, ConstantModel):
        label = model.label.item() if hasattr(model.label, "item") else model.label
        return "constant", json.dumps({"label": label, "examples": model.examples}).encode()
    if isinstance(model, Logistic):
        # the gradient's norm too: a loaded model still shows how exactly it was solved
        settings = np.array([model.C, model.tol, model.gradient_norm_])
        names = getattr(model, "feature_names_in_", None)
        named = {} if names is None else {"names": np.asarray(names, dtype=str)}
        return "logistic", _arrays(
            classes=_unboxed(model.classes_), coef=model.coef_, intercept=model.intercept_, settings=settings, **named
        )
    if isinstance(model, TableModel):
        return "table", _table(model)
    # only the model inside predicts; how it was chosen is in the ledger
    if isinstance(model, Minimax | FinalModel):
        return dump_model(model.model_ if isinstance(model, Minimax) else model.model)
    if isinstance(model, SklearnModel):
        return "skops", _skops(model.estimator)
    if hasattr(model, "trainer") and hasattr(model, "module"):
        return "torch", _safetensors(model)
    raise InputError(
        f"a {type(model).__name__} cannot be stored, so it cannot be frozen: use Logistic, a scikit-learn classifier or a "
        "TorchLearner"
    )


def load_model(form: str, data: bytes, learner: Any = None) -> Model:
    """The model that `dump_model` wrote; a network needs its learner, whose factory makes the module."""
    if form == "constant":
        return ConstantModel(**json.loads(data))
    if form == "logistic":
        found = _loaded(data)
        C, tol, norm = found["settings"].tolist()
        theta = np.column_stack((found["coef"], found["intercept"]))
        model = Logistic.fitted(Logistic(C=C, tol=tol), found["classes"], theta, norm)
        # as they were stored, bit for bit: `fitted` centres the intercepts again
        model.coef_, model.intercept_ = found["coef"], found["intercept"]
        if "names" in found:
            model.feature_names_in_ = found["names"].astype(object)
        return model
    if form == "table":
        found = _loaded(data)
        about = json.loads(found["about"].tobytes())
        encoder = TableEncoder(Schema.from_json(about["schema"]), Encoder.from_json(about["encoder"]))
        return TableModel(encoder, load_model("logistic", found["classifier"].tobytes()))  # type: ignore[arg-type]
    if form == "skops":
        from skops.io import loads

        # nothing but skops' own list: a ledger may come
        # from anybody, and loading must not run their code
        return SklearnModel(loads(data, trusted=None))
    if form == "torch":
        return _network(data, learner)
    raise InputError(f"a model stored as {form!r} is not known to this version: upgrade")


def _table(model: TableModel) -> bytes:
    about = json.dumps({"schema": model.encoder.schema.to_json(), "encoder": model.encoder.encoder.to_json()}).encode()
    return _arrays(
        about=np.frombuffer(about, dtype=np.uint8),
        classifier=np.frombuffer(dump_model(model.classifier)[1], dtype=np.uint8),
    )


def _arrays(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def _loaded(data: bytes) -> dict[str, Any]:
    with np.load(io.BytesIO(data), allow_pickle=False) as found:
        return dict(found)


def _unboxed(classes: object) -> Any:
    """Classes as an array without Python objects."""
    return np.array(np.asarray(classes).tolist())


def _skops(estimator: Any) -> bytes:
    try:
        from skops.io import dumps, get_untrusted_types
    except ImportError:
        raise InputError("storing a scikit-learn model needs skops: pip install skops") from None
    try:
        data = dumps(estimator)
    except Exception as error:  # skops raises whatever the object's own state raises
        raise InputError(f"{type(estimator).__name__} cannot be stored, so it cannot be frozen: {error}") from error
    unknown = get_untrusted_types(data=data)
    if unknown:
        raise InputError(
            f"{type(estimator).__name__} cannot be stored, so it cannot be frozen: loading it would need to trust "
            f"{', '.join(unknown)}{_because_of(estimator)}"
        )
    return bytes(data)


def _because_of(estimator: Any) -> str:
    """Which of its parts cannot be stored, for the error."""
    from skops.io import dumps, get_untrusted_types

    steps = [part for _, part in getattr(estimator, "steps", ())]
    inner = [*steps, *(part for _, part, _ in getattr(estimator, "transformers_", ()))]
    for part in inner:
        if hasattr(part, "get_params") and get_untrusted_types(data=dumps(part)):
            return _because_of(part) or f", because of {type(part).__name__}"
    return ""


def _safetensors(model: Any) -> bytes:
    from safetensors.torch import save

    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in model.module.state_dict().items()}
    return bytes(save(tensors, metadata={"classes": json.dumps(np.asarray(model.classes).tolist())}))


def _network(data: bytes, learner: Any) -> Model:
    from safetensors.torch import load

    from evenhand.learners.torch.learner import TorchModel
    from evenhand.learners.torch.trainer import Trainer

    if learner is None or not hasattr(learner, "module_factory"):
        raise InputError("this model is a network: give the learner whose factory makes it")
    # the header of safetensors: its length, then JSON; `load` gives the tensors alone
    size = int.from_bytes(data[:8], "little")
    classes = np.array(json.loads(json.loads(data[8 : 8 + size])["__metadata__"]["classes"]))
    trainer = Trainer(learner, 0)
    trainer.module.load_state_dict(load(data))
    return TorchModel(trainer, classes)

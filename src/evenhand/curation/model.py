"""The model of a curated set: it takes rows as they are, and is stored as plain arrays."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.arrays import Floats, Values
from evenhand.errors import InputError
from evenhand.files import write_atomically
from evenhand.learners.choosing import FinalModel
from evenhand.learners.storing import dump_model, load_model
from evenhand.notation import JsonObject
from evenhand.tables.encoder import Encoder
from evenhand.tables.reading import read
from evenhand.tables.schema import Schema
from evenhand.tables.stored import as_frame

__all__ = ["CHUNK", "CuratedModel", "chances_of", "fitted", "save_model", "unstored"]

CHUNK = 20_000
"""How many rows are encoded at a time, so that many test rows do not fill the memory."""

_ENDINGS = {"logistic": "npz", "table": "npz", "constant": "json", "skops": "skops", "torch": "safetensors"}


@dataclass(frozen=True)
class CuratedModel:
    """A classifier with the schema of its rows: rows go in as they are, from any frame or file, labels come out.

    Attributes:
        schema: what the columns hold; later rows are read as it says.
        encoder: how they become features, learned from the training rows; None where the classifier takes columns.
        classifier: what was fitted on the features.
        choice: how it was chosen among candidates, where it was.
    """

    schema: Schema
    encoder: Encoder | None
    classifier: Any
    choice: Any = None

    @property
    def classes(self) -> Values:
        """The labels it knows, sorted."""
        return np.asarray(self.classifier.classes)

    @property
    def columns(self) -> list[str]:
        """The columns it predicts from."""
        return list(self.schema.features) if self.encoder is None else self.encoder.layout.columns

    def predict(self, rows: Any) -> Values:
        """The predicted label of every row of a frame or file."""
        return np.concatenate([np.asarray(self.classifier.predict(X)) for X in self._features(rows)])

    def predict_proba(self, rows: Any) -> Floats:
        """The probability of every class, where the classifier gives one."""
        return np.concatenate([np.asarray(self.classifier.predict_proba(X)) for X in self._features(rows)])

    def _features(self, rows: Any) -> Iterator[Any]:
        """What the classifier takes, some thousand rows at a time."""
        frame = read(rows)
        frame.refuse_skipped()
        schema = self.schema if self.encoder is None else self.schema.only(self.columns)
        for found, _ in schema.batches(frame):
            typed = found.refuse(frame.name)
            yield as_frame(typed) if self.encoder is None else self.encoder(typed)

    def save(self, path: str | PathLike[str]) -> None:
        """Write a zip archive: `schema.json`, `encoder.json`, `about.json` and the classifier as arrays, skops or safetensors."""
        save_model(path, self.classifier, self.schema, self.encoder)

    @classmethod
    def load(cls, path: str | PathLike[str], learner: Any = None) -> CuratedModel:
        """Load a model that `save` wrote; no code in it is run. A network needs its learner, which makes the module."""
        try:
            with zipfile.ZipFile(path) as archive:
                about = json.loads(archive.read("about.json"))
                data = archive.read(about["classifier"])
                schema = Schema.from_json(json.loads(archive.read("schema.json")))
                has = "encoder.json" in archive.namelist()
                encoder = Encoder.from_json(json.loads(archive.read("encoder.json"))) if has else None
        except (FileNotFoundError, zipfile.BadZipFile, KeyError, ValueError, TypeError) as error:
            raise InputError(f"{path} holds no model of a curated set: {error}") from None
        return cls(schema, encoder, load_model(about["format"], data, learner))


def save_model(path: str | PathLike[str], model: Any, schema: Schema, encoder: Encoder | None = None) -> None:
    """Write a model as a zip archive that is safe to open: what its rows are, how they become features, and its arrays."""
    classifier = fitted(model)
    form, data = dump_model(classifier)
    name = f"classifier.{_ENDINGS[form]}"
    about = {"schema": 1, "format": form, "classifier": name, "classes": np.asarray(classifier.classes).tolist()}
    parts: dict[str, JsonObject] = {"about.json": about, "schema.json": schema.to_json()}
    parts |= {} if encoder is None else {"encoder.json": encoder.to_json()}

    def write(file: Path) -> None:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for part, values in parts.items():
                archive.writestr(part, json.dumps(values))
            archive.writestr(name, data)

    write_atomically(Path(path), write)


def fitted(model: Any) -> Any:
    """The fitted model itself, without its encoder or the reason for choosing it."""
    if isinstance(model, CuratedModel):
        # wrapped twice if the classifier itself was chosen among candidates
        return fitted(model.classifier)
    return model.model if isinstance(model, FinalModel) else model


def unstored(model: Any) -> list[str]:
    """A list with a note on why a model is not among the files; empty if it is."""
    try:
        # really tried: only an attempt shows whether skops can store an estimator
        dump_model(fitted(model))
    except InputError as error:
        return [f"the model is not among the files: {error}"]
    return []


def chances_of(model: Any, X: Any, classes: Values) -> Floats | None:
    """The probability of each of these classes, 0 for one the model has not seen; None if it gives no probabilities."""
    if not hasattr(model, "predict_proba"):
        return None
    given = np.asarray(model.predict_proba(X))
    # the model may have seen fewer classes than the test rows have
    found = np.zeros((len(given), len(classes)))
    place = {label: k for k, label in enumerate(classes.tolist())}
    found[:, [place[label] for label in np.asarray(model.classes).tolist()]] = given
    return found

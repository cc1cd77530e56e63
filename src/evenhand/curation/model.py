"""The model of a curated set: it takes rows as they are, and is stored as plain arrays."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from evenhand.arrays import Floats, Values
from evenhand.errors import InputError
from evenhand.files import write_atomically
from evenhand.learners.base import Model
from evenhand.learners.choosing import FinalModel
from evenhand.learners.storing import dump_model, load_model
from evenhand.notation import JsonObject
from evenhand.sources.table.columns import Coded, Layout
from evenhand.sources.table.encoding import Encoders
from evenhand.sources.table.problems import missing_column
from evenhand.sources.table.raw import as_frame
from evenhand.sources.table.reading import CsvFormat, read

__all__ = ["CHUNK", "CuratedModel", "RawModel", "chances_of", "fitted", "save_model", "unstored"]

CHUNK = 20_000
"""How many rows are encoded at a time, so that many test rows do not fill the memory."""

_ENDINGS = {"logistic": "npz", "table": "npz", "constant": "json", "skops": "skops", "torch": "safetensors"}


@dataclass(frozen=True)
class CuratedModel:
    """A classifier with its encoder: rows of the table go in as they are, labels come out.

    Attributes:
        layout: which column is a number and which a category.
        encoder: how they become features, learned from the training rows.
        classifier: what was fitted on the features.
        choice: how it was chosen among candidates, where it was.
    """

    layout: Layout
    encoder: Encoders
    classifier: Any
    choice: Any = None

    @property
    def classes(self) -> Values:
        """The labels it knows, sorted."""
        return np.asarray(self.classifier.classes)

    @property
    def columns(self) -> list[str]:
        """The columns it predicts from."""
        return self.layout.columns

    def predict(self, rows: Any) -> Values:
        """The predicted label of every row of a frame or file."""
        return np.concatenate([np.asarray(self.classifier.predict(X)) for X in self._features(rows)])

    def predict_proba(self, rows: Any) -> Floats:
        """The probability of every class, where the classifier gives one."""
        return np.concatenate([np.asarray(self.classifier.predict_proba(X)) for X in self._features(rows)])

    def _features(self, rows: Any) -> Sequence[Any]:
        table = _read(rows, self.columns)
        try:
            return self.features(self.layout.code(table))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InputError(f"a column has another type than where the model was trained: {error}") from None

    def features(self, rows: Coded) -> list[Any]:
        """Features of coded rows, some thousand at a time."""
        parts = [rows[i : i + CHUNK] for i in range(0, len(rows), CHUNK)]
        return [self.encoder.encode(part, np.zeros(len(part), dtype=np.int64)) for part in parts]

    def save(self, path: str | PathLike[str]) -> None:
        """Write a zip archive: `encoder.json`, `about.json` and the classifier as plain arrays, skops or safetensors."""
        save_model(path, self.classifier, self._encoder())

    def _encoder(self) -> JsonObject:
        # an encoder has a row for each trial of a simulation: a curated set is one trial
        arrays = {name: getattr(self.encoder, name)[0].tolist() for name in ("low", "scale", "fill", "seen")}
        return {**asdict(self.layout), "names": self.layout.names, **arrays, "dense": self.encoder.dense}

    @classmethod
    def load(cls, path: str | PathLike[str], learner: Any = None) -> CuratedModel | RawModel | Model:
        """Load a model that `save` wrote; no code in it is run. A network needs its learner, which makes the module.

        A model from a `Labelling` has its encoder inside and is returned as it is.
        """
        try:
            with zipfile.ZipFile(path) as archive:
                about = json.loads(archive.read("about.json"))
                data = archive.read(about["classifier"])
                kept = json.loads(archive.read("encoder.json")) if "encoder.json" in archive.namelist() else None
        except (FileNotFoundError, zipfile.BadZipFile, KeyError, ValueError) as error:
            raise InputError(f"{path} holds no model of a curated set: {error}") from None
        # the learner `table` carries its encoding within its own arrays
        if kept is None:
            return load_model(about["format"], data, learner)
        # the encoder of a Pipeline is part of it: only the columns' names were kept
        if "columns" in kept:
            return RawModel(kept["columns"], kept["text"], load_model(about["format"], data, learner))
        categories = tuple((name, tuple(values), missing) for name, values, missing in kept["categories"])
        layout = Layout(tuple(kept["numbers"]), tuple(kept["gaps"]), categories)
        low, scale, fill, seen = (np.array(kept[name], dtype=float)[None] for name in ("low", "scale", "fill", "seen"))
        encoder = Encoders(low, scale, fill, seen, bool(kept["dense"]))
        return cls(layout, encoder, load_model(about["format"], data, learner))


@dataclass(frozen=True)
class RawModel:
    """A classifier that makes its own features from columns: rows of the table go in as they are, labels come out.

    Attributes:
        columns: the columns it predicts from.
        text: those of them that are text, whatever a file's cells look like.
        classifier: what was fitted.
        choice: how it was chosen among candidates, where it was.
    """

    columns: Sequence[str]
    text: Sequence[str]
    classifier: Any
    choice: Any = None

    @property
    def classes(self) -> Values:
        """The labels it knows, sorted."""
        return np.asarray(self.classifier.classes)

    def predict(self, rows: Any) -> Values:
        """The predicted label of every row of a frame or file."""
        return np.asarray(self.classifier.predict(self._frame(rows)))

    def predict_proba(self, rows: Any) -> Floats:
        """The probability of every class, where the classifier gives one."""
        return np.asarray(self.classifier.predict_proba(self._frame(rows)))

    def _frame(self, rows: Any) -> pd.DataFrame:
        return as_frame(_read(rows, self.columns, self.text), self.columns)

    def save(self, path: str | PathLike[str]) -> None:
        """Write a zip archive: `encoder.json` with the names of the columns, `about.json`, and the classifier by skops."""
        save_model(path, self.classifier, {"columns": list(self.columns), "text": list(self.text)})


def _read(rows: Any, columns: Sequence[str], text: Sequence[str] = ()) -> pa.Table:
    """A frame or file that has these columns; those of `text` are text, whatever they look like."""
    frame = read(rows, CsvFormat(text=tuple(text)))
    absent = [name for name in columns if name not in frame.schema.names]
    if absent:
        raise InputError(missing_column(absent[0], frame.schema.names, "the model predicts from it"))
    return frame.table


def save_model(path: str | PathLike[str], classifier: Any, encoder: JsonObject | None = None) -> None:
    """Write a model as a zip archive that is safe to open: what it is, how rows become features, and its arrays."""
    classifier = fitted(classifier)
    form, data = dump_model(classifier)
    name = f"classifier.{_ENDINGS[form]}"
    about = {"schema": 1, "format": form, "classifier": name, "classes": np.asarray(classifier.classes).tolist()}

    def write(file: Path) -> None:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("about.json", json.dumps(about))
            if encoder is not None:
                archive.writestr("encoder.json", json.dumps(encoder))
            archive.writestr(name, data)

    write_atomically(Path(path), write)


def fitted(model: Any) -> Any:
    """The fitted model itself, without its encoder or the reason for choosing it."""
    if isinstance(model, CuratedModel | RawModel):
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

"""Reads the server's answers: requests, receipts, example sets and models, like those of a campaign on this machine."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from datetime import datetime

from evenhand.campaign.requests import Examples, Receipt, Refused, Request
from evenhand.campaign.scores import as_examples
from evenhand.campaign.state import State
from evenhand.learners import Model
from evenhand.learners.choosing import Choice, FinalModel
from evenhand.learners.storing import load_model
from evenhand.ledger.base import Example
from evenhand.ledger.text import as_text
from evenhand.notation import JsonMapping
from evenhand.strategies.decision import Decision


def request_of(record: JsonMapping, groups: Sequence[str]) -> Request:
    """A request as it was handed out."""
    scores = record["scores"]
    return Request(
        id=record["request"],
        group=record["group"],
        size=record["size"],
        decision=Decision.from_dict(tuple(groups), record["decision"]),
        told=record["size"] - record["outstanding"],
        examples=tuple(record["examples"]),
        until=moment_of(record["until"]),
        collector=record["collector"],
        event=record["event"],
        rests_on=scores["rest_on"],
        scores_age=scores["age_seconds"],
        behind=scores["labels_behind"],
    )


def moment_of(text: str | None) -> float | None:
    """A moment in seconds since 1970, to the second.

    >>> moment_of("1970-01-01T00:01:00Z")
    60.0
    """
    return None if text is None else datetime.fromisoformat(text).timestamp()


def receipt_of(record: JsonMapping) -> Receipt:
    """The receipt of a delivery."""
    found = {name: value for name, value in record.items() if name != "repeated"}
    refused = tuple(Refused(**row) for row in found.pop("refused"))
    return Receipt(**{**found, "new_classes": tuple(record["new_classes"])}, refused=refused)


def examples_of(record: JsonMapping) -> Examples:
    """Labelled examples, with features in the type they came in."""
    state = State()
    state.columns, state.label_kind = record["columns"], record["label_kind"]
    columns = (record[name] for name in ("ids", "groups", "labels", "rows"))
    # read by the code that reads a ledger, so that frames and labels come back as exactly the same types
    return as_examples(
        state,
        [
            Example(name, group, label=label, features=as_text(row))
            for name, group, label, row in zip(*columns, strict=True)
        ],
    )


def model_of(record: JsonMapping | None) -> Model | None:
    """A model, read without trusting its sender; None where there is none."""
    return None if record is None else load_model(record["format"], base64.b64decode(record["data"]))


def final_model_of(record: JsonMapping) -> FinalModel:
    """The model to deploy, with the reason for it."""
    return FinalModel(model_of(record), Choice.from_dict(record["choice"]))

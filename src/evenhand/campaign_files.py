"""A campaign as a folder: `campaign.json`, and the rows as they were told in `rows.arrow` and `labels.arrow`."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather

from evenhand.campaign import Campaign
from evenhand.decision import Decision
from evenhand.engine import rows
from evenhand.engine.labels import Labels
from evenhand.engine.shelf import Delivery
from evenhand.engine.single import SingleMemory
from evenhand.engine.torch_memory import TorchMemory
from evenhand.files import write_atomically
from evenhand.learners.text import describe_learner, parse_learner
from evenhand.request import Request
from evenhand.stats import RunningTrend
from evenhand.strategies import Rule, Strategy, parse_strategy

__all__ = ["load", "save"]

_COUNTED = ("counts", "held", "scored", "loss_sum", "available", "fresh", "asked")


def save(campaign: Campaign, folder: str | PathLike[str]) -> None:
    """Write a campaign to a folder; the rows first, so that a folder with `campaign.json` is whole."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    deliveries = campaign._shelf.deliveries
    if deliveries:
        X = rows.stack([d.X for d in deliveries])
        write_atomically(folder / "rows.arrow", lambda path: _write(rows.as_table(X), path))
        write_atomically(folder / "labels.arrow", lambda path: _write(_labels(campaign), path))
    text = json.dumps(_state(campaign), indent=1, allow_nan=False)
    write_atomically(folder / "campaign.json", lambda path: path.write_text(text, encoding="utf-8"))


def load(
    folder: str | PathLike[str], *, strategy: Strategy | None = None, learner: Any = None, stop: Any = None
) -> Campaign:
    """The campaign that `save` wrote, ready to go on."""
    folder = Path(folder)
    try:
        state = json.loads((folder / "campaign.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"{folder} holds no saved campaign: campaign.json is missing") from None
    settings = state["settings"]
    campaign = Campaign(
        settings["groups"],
        strategy or _strategy(settings["strategy"]),
        learner or _learner(settings["learner"]),
        classes=settings["classes"] if settings["classes_fixed"] else None,
        seed=tuple(settings["seed"]),
        stop=stop,
        **{key: settings[key] for key in ("budget", "batch", "warmup", "validation", "population")},
    )
    _restore(campaign, state, folder)
    return campaign


def _state(campaign: Campaign) -> dict[str, Any]:
    engine, shelf = campaign._engine, campaign._shelf
    memory = shelf.memory
    deliveries = shelf.deliveries
    return {
        "schema": 1,
        "settings": {
            "groups": list(campaign.groups),
            "strategy": str(campaign.strategy) if isinstance(campaign.strategy, Rule) else None,
            "learner": False if campaign.learner is None else describe_learner(campaign.learner),
            "budget": campaign.budget,
            "batch": campaign.batch,
            "warmup": engine.warmup,
            "validation": engine.validation,
            "classes": shelf.labels.classes,
            "classes_fixed": shelf.labels.fixed,
            "population": None if engine.population is None else engine.population.tolist(),
            "seed": [engine.seed, int(engine.trials[0])],
        },
        "engine": {name: getattr(engine, name)[0].tolist() for name in _COUNTED},
        "recent": [[v for v in series if v == v] for series in engine.recent.window[0].tolist()],
        "open": [
            {"id": r.id, "size": r.size, "validating": r.validating, "decision": r.decision.as_dict()}
            for r in campaign.open_requests
        ],
        "told": campaign._docket.told,
        "abandoned": sorted(campaign._docket.abandoned),
        "labels_used": campaign.labels_used,
        "monitor": campaign.monitor.as_dict(),
        "fits": memory.fits if isinstance(memory, SingleMemory | TorchMemory) else [],
        "rows": {"kind": rows.kind_of(deliveries[0].X), "width": deliveries[0].X.shape[1]} if deliveries else None,
    }


def _labels(campaign: Campaign) -> pa.Table:
    shelf = campaign._shelf
    parts = shelf.deliveries
    return pa.table(
        {
            "request": np.concatenate([np.full(len(d.group), d.request) for d in parts]),
            "delivery": np.concatenate([np.full(len(d.group), i) for i, d in enumerate(parts)]),
            "label": np.concatenate([shelf.labels.codes(d.y) for d in parts]),
            "group": np.concatenate([d.group for d in parts]),
            "validation": np.concatenate([d.validation for d in parts]),
        }
    )


def _restore(campaign: Campaign, state: dict[str, Any], folder: Path) -> None:
    engine = campaign._engine
    if state["rows"] is not None:
        _restore_rows(campaign, state, folder)
    for name in _COUNTED:
        getattr(engine, name)[0] = state["engine"][name]
    for series in np.arange(len(campaign.groups)):
        values = state["recent"][series]
        engine.recent.window[0, series, : len(values)] = values
    engine.recent = RunningTrend.of(engine.recent.window)
    for record in state["open"]:
        decision = Decision.from_dict(campaign.groups, record["decision"])
        request = Request(record["id"], decision.group, record["size"], record["validating"], decision)
        campaign._docket.open[request.id] = request
        campaign._expect(request, +1)
    campaign._docket.told = {int(number): mark for number, mark in state["told"].items()}
    campaign._docket.abandoned = set(state["abandoned"])
    campaign.labels_used = state["labels_used"]
    campaign.monitor.restore(state["monitor"], _frozen(campaign, state["monitor"]))


def _frozen(campaign: Campaign, monitor: dict[str, Any]) -> Any:
    """The frozen model again, from the training examples it had; None where that gives another model."""
    refits = not getattr(campaign.learner, "incremental", False)
    if monitor["since"] is None or monitor["own"] or campaign.learner is None or not refits:
        return None
    training = campaign._shelf.examples(validation=False)
    first = np.arange(len(training.y)) < monitor["trained_on"]
    X = campaign._shelf.matrix(rows.take(training.X, first))
    return campaign.learner.fit(X, training.y[first], seed=campaign._shelf.seed)


def _restore_rows(campaign: Campaign, state: dict[str, Any], folder: Path) -> None:
    X = rows.from_table(feather.read_table(folder / "rows.arrow"), state["rows"]["kind"], state["rows"]["width"])
    kept = {name: column.to_numpy() for name, column in _columns(folder / "labels.arrow").items()}
    labels = Labels(state["settings"]["classes"], fixed=state["settings"]["classes_fixed"])
    campaign._shelf.labels = labels
    for delivery in np.unique(kept["delivery"]):
        mask = kept["delivery"] == delivery
        y = [labels.classes[code] for code in kept["label"][mask]]
        request = int(kept["request"][mask][0])
        campaign._shelf.put(Delivery(request, rows.take(X, mask), y, kept["group"][mask], kept["validation"][mask]))
    campaign._engine.memory = campaign._shelf.memory
    if isinstance(campaign._shelf.memory, SingleMemory | TorchMemory) and state["fits"]:
        campaign._shelf.memory.replay(state["fits"])


def _columns(path: Path) -> dict[str, Any]:
    table = feather.read_table(path)
    return dict(zip(table.column_names, table.columns, strict=True))


def _write(table: pa.Table, path: Path) -> None:
    feather.write_feather(table, path)


def _strategy(text: str | None) -> Strategy:
    if text is None:
        raise ValueError("this campaign's strategy is one of your own: give it again, load(folder, strategy=...)")
    return parse_strategy(text)[1]


def _learner(text: str | bool | None) -> Any:
    if text is None:
        raise ValueError("this campaign's learner is one of your own: give it again, load(folder, learner=...)")
    return parse_learner(text) if isinstance(text, str) else None

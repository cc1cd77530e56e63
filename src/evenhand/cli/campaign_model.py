"""`evenhand campaign model`: the model to deploy, and its predictions for rows in a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand.cli.campaign_shared import DEFAULT, AsJson, Database, Name, opened, say
from evenhand.errors import InputError
from evenhand.notation import JsonObject

if TYPE_CHECKING:
    from evenhand.campaign import Campaign
    from evenhand.campaign.labels import Label
    from evenhand.tables.frame import Frame

__all__ = ["model"]


def model(
    name: Name,
    file: Annotated[Path | None, typer.Argument(help="rows to predict: CSV, JSON lines or Parquet")] = None,
    out: Annotated[Path | None, typer.Option(help="a new CSV file for the rows and what the model predicts")] = None,
    db: Database = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Train on every label so far, and say how good the model is; with a file, predict its rows."""
    with opened(db, name, as_json) as campaign:
        if (file is None) != (out is None):
            raise InputError("give a file of rows and --out, a new file for the predictions, or neither")
        if out is not None and out.exists():
            raise InputError(f"{out} is there already: name a new file")
        found = _about(campaign)
        lines = [
            f"{found['learner']}, trained on {found['labels']:,} labels; classes {', '.join(map(str, found['classes']))}",
            *(f"  {group}: {text}" for group, text in found["validation"].items()),
            f"chosen to deploy: {found['choice']['chosen']}, because {found['choice']['why']}",
        ]
        if file is not None and out is not None:
            table, labels, sure = campaign.predict_file(file)
            found["predicted"] = _write(out, table, labels, sure)
            lines.append(f"{found['predicted']:,} rows with predictions in {out}")
        say(found, as_json, "\n".join(lines))


def _about(campaign: Campaign) -> JsonObject:
    """The final model in plain values; accuracies are those of the model in training, which sees no validation label."""
    made = campaign.final_model()
    campaign.refit()
    status = campaign.status()
    validation = {
        group: f"{facts['accuracy']:.0%} of {facts['n']} validation labels right"
        if facts["n"]
        else f"{facts['validation'] or 'no'} validation labels, not scored yet"
        for group, facts in status["groups"].items()
    }
    classes = [label.item() if hasattr(label, "item") else label for label in made.classes]
    return {
        "learner": status["learner"],
        "labels": status["examples"],
        "classes": classes,
        "validation": validation,
        "choice": made.choice.as_dict(),
    }


def _write(out: Path, table: Frame, labels: list[Label], sure: list[float] | None) -> int:
    """Write the rows with two more columns."""
    import pyarrow as pa

    from evenhand.notation import free_name
    from evenhand.tables.writing import write_table

    more: dict[str, list[Any]] = {"predicted": labels}
    if sure is not None:
        more["probability"] = [round(chance, 6) for chance in sure]
    found = table.read()
    for name, values in more.items():
        found = found.append_column(free_name(name, found.column_names), pa.array(values))
    write_table(out, found)
    return int(found.num_rows)

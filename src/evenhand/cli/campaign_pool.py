"""`evenhand campaign pool` and `skip`, and the rows to label as a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenhand.cli import table_options as options
from evenhand.cli.campaign_shared import DEFAULT, AsJson, Database, Name, Reason, User, opened, say, user_name

if TYPE_CHECKING:
    from evenhand.campaign import Campaign
    from evenhand.campaign.requests import Request

__all__ = ["check_todo", "pool", "skip", "write_todo"]

_FEW = 100
"""Examples of a group below which little can be certified: 100 labels without an error bound it by about 0.07 in two groups."""


def pool(
    name: Name,
    file: Annotated[Path, typer.Argument(help="CSV, a Parquet file, or a folder of Parquet files")],
    id: Annotated[str, typer.Option("--id", help="the column of the ids")] = "id",
    group: Annotated[
        list[str] | None,
        typer.Option("--group", help="a column that tells the group, with bins such as age:30,60; repeat"),
    ] = None,
    features: options.Feature = None,
    ignore: options.Ignore = None,
    number: options.Number = None,
    text: options.Text = None,
    image: options.Image = None,
    vector: options.Vector = None,
    missing: options.Missing = None,
    exclude: options.Exclude = None,
    merge_below: options.MergeBelow = None,
    merge_spellings: options.MergeSpellings = False,
    max_categories: options.MaxCategories = None,
    use_group_as_feature: options.UseGroup = False,
    scale: options.Scale = None,
    separator: options.Separator = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    by: User = None,
    db: Database = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Register rows that are not labelled yet, so that requests name the rows to label; repeat to add more."""
    with opened(db, name, as_json) as campaign:
        found = campaign.pool(
            file,
            id=id,
            group=group or campaign.settings["group"],
            by=user_name(by),
            notice=None if as_json else typer.echo,
            **options.given(
                features=features, ignore=ignore, numbers=number, text=text, image=image, vector=vector, missing=missing,
                exclude=exclude, merge_below=merge_below, merge_spellings=merge_spellings, max_categories=max_categories,
                use_group_as_feature=use_group_as_feature, scale=scale, separator=separator, decimal=decimal,
                encoding=encoding,
            ),
        )  # fmt: skip
        notes = [f"{sum(found.groups.values()):,} examples in the pool"]
        notes += [f"{found.labelled:,} labelled rows taken in"] if found.labelled else []
        notes += [f"{found.known:,} known already"] if found.known else []
        lines = [", ".join(notes), *(f"  {group}: {count:,}" for group, count in found.groups.items())]
        from evenhand.tables.problems import names

        if few := [group for group, count in found.groups.items() if count < _FEW]:
            lines.append(
                f"note: fewer than {_FEW} examples of {names(few)}: such a group is soon used up, and a certificate needs new "
                "labels of every group. Make one group of the small ones with --merge-below, or leave them out with --exclude"
            )
        say(found._asdict(), as_json, "\n".join(lines))


def skip(
    name: Name,
    id: Annotated[str, typer.Argument(help="the example's id")],
    reason: Reason = None,
    by: User = None,
    db: Database = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Set aside an example that nobody can label: it leaves its request and the pool."""
    with opened(db, name, as_json) as campaign:
        campaign.skip(id, reason=reason, by=user_name(by))
        say({"skipped": id}, as_json, f"{id} skipped")


def check_todo(campaign: Campaign, target: Path, show: Sequence[str] | None = None) -> None:
    """Refuse a file that rows to label cannot be written to, before anything is asked for."""
    from evenhand.errors import InputError

    if target.exists():
        raise InputError(f"{target} is there already: name a new file")
    if not target.absolute().parent.is_dir() or not os.access(target.absolute().parent, os.W_OK):
        raise InputError(f"{target} cannot be written: its folder does not exist, or you may not write in it")
    if campaign.status()["pool"] is None and campaign.groups:
        raise InputError("--out writes the rows of a pool, and this campaign has none: register one with campaign pool")
    if show:
        campaign.to_label([], show)


def write_todo(campaign: Campaign, requests: Sequence[Request], target: Path, show: Sequence[str] | None = None) -> int:
    """Write the rows of requests as CSV or Parquet, with an empty column for the label first; returns their number."""
    import pyarrow as pa

    from evenhand.tables.writing import write_csv, write_table

    names, rows = campaign.to_label(requests, show)
    if target.suffix.lower() not in (".parquet", ".pq"):
        return write_csv(target, names, rows)
    columns = [pa.array(column) for column in zip(*rows, strict=True)] or [pa.nulls(0)] * len(names)
    write_table(target, pa.table([columns[0].cast(pa.string()), *columns[1:]], names=names))
    return len(rows)

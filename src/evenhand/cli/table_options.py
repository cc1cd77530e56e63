"""The options of tables, the same in every command that reads one."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from evenhand.notation import JsonObject

__all__ = [
    "Decimal", "Encoding", "Exclude", "Feature", "Group", "Id", "Ignore", "Label", "MaxCategories", "MergeBelow", "Missing", "Scale",
    "Separator", "SplitBy", "Test", "Unseen", "UseGroup", "given",
]  # fmt: skip

Label = Annotated[str | None, typer.Option("--label", help="the column to predict")]
Group = Annotated[
    list[str] | None,
    typer.Option("--group", help="a column that tells the group, or age:25,45,65; may be given many times"),
]
Test = Annotated[str | None, typer.Option("--test", help="a test file, a share to hold out (0.3), or none")]
Feature = Annotated[list[str] | None, typer.Option("--feature", help="predict from these columns only; many times")]
Ignore = Annotated[list[str] | None, typer.Option("--ignore", help="a column to leave out; may be given many times")]
Exclude = Annotated[list[str] | None, typer.Option("--exclude", help="a group to leave out; may be given many times")]
UseGroup = Annotated[bool, typer.Option("--use-group-as-feature", help="predict from the group columns too")]
Missing = Annotated[str | None, typer.Option("--missing", help="missing numbers: category (default) or median")]
Scale = Annotated[str | None, typer.Option("--scale", help="numbers: standard (default), minmax or none")]
MaxCategories = Annotated[int | None, typer.Option("--max-categories", help="refuse text columns with more values")]
Unseen = Annotated[str | None, typer.Option("--unseen", help="test categories the pool has not: error or ignore")]
Id = Annotated[str | None, typer.Option("--id", help="a column that names every row; no feature")]
SplitBy = Annotated[str | None, typer.Option("--split-by", help="a column, e.g. a person: its rows stay on one side")]
MergeBelow = Annotated[int | None, typer.Option("--merge-below", help="groups with fewer rows become one, other")]
Separator = Annotated[str | None, typer.Option("--separator", help="what separates the cells of a CSV file")]
Decimal = Annotated[str | None, typer.Option("--decimal", help="the decimal mark of a CSV file")]
Encoding = Annotated[str | None, typer.Option("--encoding", help="the encoding of a CSV file")]


def given(**options: Any) -> JsonObject:
    """The options that were given on the command line; all others have the defaults of the table."""
    return {name: value for name, value in options.items() if value is not None and value is not False and value != []}

"""The options of tables, the same in every command that reads one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand.errors import InputError
from evenhand.notation import JsonObject

if TYPE_CHECKING:
    from evenhand.sources.base import Source

__all__ = [
    "NAMES", "Decimal", "Encoding", "Exclude", "Feature", "Ignore", "Image", "MaxCategories", "MergeBelow", "MergeSpellings", "Missing",
    "Number", "Scale", "Separator", "TableOptions", "Text", "UseGroup", "Vector", "given", "reads_tables",
]  # fmt: skip

Label = Annotated[str | None, typer.Option("--label", help="the column to predict")]
Group = Annotated[
    list[str] | None,
    typer.Option(
        "--group", help="a column that tells the group; age:25,45,65 makes age bands; repeat for several columns"
    ),
]
Test = Annotated[str | None, typer.Option("--test", help="a test file, a share to hold out (0.3), or none")]
Feature = Annotated[
    list[str] | None, typer.Option("--feature", help="predict from this column; repeat; by default from all others")
]
Ignore = Annotated[list[str] | None, typer.Option("--ignore", help="a column to leave out; repeat")]
Exclude = Annotated[list[str] | None, typer.Option("--exclude", help="a group to leave out; repeat")]
UseGroup = Annotated[bool, typer.Option("--use-group-as-feature", help="predict from the group columns too")]
Number = Annotated[
    list[str] | None, typer.Option("--number", help="a column of texts such as $1,000 to read as numbers; repeat")
]
Text = Annotated[list[str] | None, typer.Option("--text", help="a column of texts to read, not of categories; repeat")]
Image = Annotated[list[str] | None, typer.Option("--image", help="a column of paths of images; repeat")]
Vector = Annotated[list[str] | None, typer.Option("--vector", help="a column of vectors; repeat")]
Missing = Annotated[
    list[str] | None,
    typer.Option("--missing", help="a word for a missing value, beside the empty cell; repeat"),
]
MergeSpellings = Annotated[
    bool,
    typer.Option("--merge-spellings", help="groups or labels that differ only by case, blanks or Unicode form are one"),
]
Fill = Annotated[
    str | None,
    typer.Option("--fill", help="what a missing number becomes: category (a category of its own, default) or median"),
]
Scale = Annotated[
    str | None,
    typer.Option(
        "--scale", help="how numbers are scaled: standard (mean 0, deviation 1; default), minmax (0 to 1) or none"
    ),
]
MaxCategories = Annotated[
    int | None,
    typer.Option(
        "--max-categories",
        help="leave out columns of categories with more different values than this; by default 1000, or nearly as many as rows",
    ),
]
Unseen = Annotated[
    str | None, typer.Option("--unseen", help="categories that only the test file has: error (default) or ignore")
]
Id = Annotated[str | None, typer.Option("--id", help="a column with an id for every row; it is not predicted from")]
SplitBy = Annotated[
    str | None,
    typer.Option("--split-by", help="a column that names e.g. a person: all rows of a person are used in the same way"),
]
Stratify = Annotated[
    bool | None,
    typer.Option("--stratify/--no-stratify", help="hold the test share out of every group, or of all rows at random"),
]
MergeBelow = Annotated[
    int | None, typer.Option("--merge-below", help="groups with fewer rows than this become one group, called other")
]
Separator = Annotated[str | None, typer.Option("--separator", help="what separates the cells of a CSV file")]
Decimal = Annotated[str | None, typer.Option("--decimal", help="the decimal mark of a CSV file")]
Encoding = Annotated[str | None, typer.Option("--encoding", help="the encoding of a CSV file")]


def given(**options: Any) -> JsonObject:
    """The options that were given on the command line; all others have the defaults of the table."""
    return {name: value for name, value in options.items() if value is not None and value is not False and value != []}


@dataclass(frozen=True)
class TableOptions:
    """What was said on the command line about a table.

    Attributes:
        label: the column to predict.
        groups: the columns that tell the group.
        test: a test file, a share to hold out, or none.
        settings: the other options that were given, by the names `Table` has for them.
    """

    label: str | None
    groups: list[str] | None
    test: str | None
    settings: JsonObject

    def source(self, text: str, **more: Any) -> Source:
        """The source that a text names, read with these options; others that may be None come as `more`."""
        from evenhand.sources.catalogue import open_source

        others = self.settings | given(**more)
        return open_source(text, label=self.label, groups=self.groups or (), test=self.test, **others)

    def table(self, text: str, purpose: str, **more: Any) -> JsonObject:
        """What `curate` and `pilot` take: a path and how to read it, or a data set, which has its settings already."""
        from evenhand.sources.catalogue import parse_test
        from evenhand.sources.table.table import Table

        if Path(text).exists():
            test = {} if self.test is None else {"test": parse_test(self.test)}
            return {"data": Path(text), "label": self.label, "groups": self.groups, **self.settings, **test, **more}
        table = self.source(text, **more)
        if not isinstance(table, Table):
            raise InputError(f"{text!r} is no table: {purpose}")
        return {"data": table}


def _table_options(
    label: Label = None,
    group: Group = None,
    test: Test = None,
    feature: Feature = None,
    ignore: Ignore = None,
    exclude: Exclude = None,
    number: Number = None,
    text: Text = None,
    image: Image = None,
    vector: Vector = None,
    missing: Missing = None,
    merge_spellings: MergeSpellings = False,
    use_group_as_feature: UseGroup = False,
    fill: Fill = None,
    scale: Scale = None,
    max_categories: MaxCategories = None,
    unseen: Unseen = None,
    id: Id = None,
    split_by: SplitBy = None,
    stratify: Stratify = None,
    merge_below: MergeBelow = None,
    separator: Separator = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
) -> TableOptions:
    settings = given(
        features=feature, ignore=ignore, exclude=exclude, use_group_as_feature=use_group_as_feature,
        numbers=number, text=text, image=image, vector=vector, missing=missing,
        spellings="merge" if merge_spellings else None, fill=fill, scale=scale, max_categories=max_categories, unseen=unseen, id=id, split_by=split_by,
        merge_below=merge_below, separator=separator, decimal=decimal, encoding=encoding,
    )  # fmt: skip
    # False is a choice here, but means "not given" for the other flags
    settings |= {} if stratify is None else {"stratify": stratify}
    return TableOptions(label, group, test, settings)


_PARAMETERS = inspect.signature(_table_options, eval_str=True).parameters
NAMES = frozenset(_PARAMETERS)
"""The options of tables, by the names of their parameters."""


def reads_tables(command: Callable[..., None]) -> Callable[..., None]:
    """The command with all options of tables where it has a parameter `table`, which gets them as `TableOptions`."""

    @wraps(command)
    def run(**values: Any) -> None:
        table = _table_options(**{name: values.pop(name) for name in NAMES})
        command(table=table, **values)

    own = inspect.signature(command, eval_str=True)
    shown: list[inspect.Parameter] = []
    for name, parameter in own.parameters.items():
        shown += _PARAMETERS.values() if name == "table" else [parameter]
    # typer reads the options from the signature or the annotations, by its version; by keyword alone, so that options with
    # a default may stand before some without
    by_keyword = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in shown]
    run.__signature__ = own.replace(parameters=by_keyword)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in by_keyword}
    return run

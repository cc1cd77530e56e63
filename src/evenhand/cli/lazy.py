"""Groups of commands that are imported and built one at a time.

Building a command costs typer about a millisecond for each of its options. A person who waits for `campaign ask` should not wait for
the other thirty commands too, so a group holds their addresses and builds the one that was typed. `--help` builds them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

import typer
from typer.core import TyperGroup
from typer.main import get_command

_Built = TypeVar("_Built")


class _BuiltWhenRead(MutableMapping[str, _Built]):
    """A mapping that knows its keys and builds a value when it is first read."""

    def __init__(self, names: Mapping[str, str], build: Callable[[str, str], _Built]) -> None:
        self._waiting, self._build = dict(names), build
        self._built: dict[str, _Built] = {}

    def __getitem__(self, name: str) -> _Built:
        if name not in self._built:
            self._built[name] = self._build(name, self._waiting[name])
        return self._built[name]

    def __setitem__(self, name: str, value: _Built) -> None:
        # typer adds its own commands to the mapping
        self._waiting[name], self._built[name] = "", value

    def __delitem__(self, name: str) -> None:
        del self._waiting[name]
        self._built.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._waiting)

    def __len__(self) -> int:
        return len(self._waiting)


def lazy_app(name: str, help: str, addresses: Mapping[str, str]) -> typer.Typer:
    """A group of commands, none of which is imported before it is run.

    Args:
        name: what is typed for the group.
        help: what the group is for.
        addresses: the commands in the order of the help, each as `module:function` below `evenhand.cli`, or `module:app`
            for a group within this one.
    """

    class Lazy(TyperGroup):
        def __init__(self, **given: Any) -> None:
            super().__init__(**given)
            self.commands = _BuiltWhenRead(addresses, _built)

        def format_commands(self, ctx: Any, formatter: Any) -> None:
            """List every command with its whole first sentence: click would cut it at the end of the line."""
            rows = [(name, self.commands[name].get_short_help_str(limit=1000)) for name in self.list_commands(ctx)]
            with formatter.section("Commands"):
                formatter.write_dl(rows)

    app = typer.Typer(
        name=name,
        cls=Lazy,
        help=help,
        no_args_is_help=True,
        add_completion=False,
        # an internal error is reported in a line and a log file, see `main`
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # the boxes of rich cut names of options on a terminal of 80 columns
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    # without a callback typer takes an app that has no commands of its own for an empty one
    app.callback(help=help)(lambda: None)
    return app


def _built(name: str, address: str) -> Any:
    """A command, whose arguments are shown in capitals as is usual: typer writes them in braces."""
    command = get_command(_app(name, address))
    for given in command.params:
        if given.param_type_name == "argument" and given.metavar is None and given.name is not None:
            given.metavar = given.name.upper() if given.required else f"[{given.name.upper()}]"
    return command


@cache
def _app(name: str, address: str) -> typer.Typer:
    """The group at an address, or an app that is the one command there."""
    module, _, attribute = address.partition(":")
    found: Callable[..., None] | typer.Typer = getattr(import_module(f"evenhand.cli.{module}"), attribute)
    if isinstance(found, typer.Typer):
        return found
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    alone.command(name)(found)
    return alone

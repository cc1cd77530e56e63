"""The command line. Heavy imports stay inside the commands, so that `--help` is quick."""

from __future__ import annotations

import sys

import typer

from evenhand.cli import bench, campaign, curate, demo, plan, reproduce, simulate, sweep, verify
from evenhand.errors import InputError

__all__ = ["app", "main"]

app = typer.Typer(
    name="evenhand",
    help="Which group to label next, so that your budget serves the worst-off group best.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(demo.demo)
app.command()(simulate.simulate)
app.command()(curate.curate)
app.add_typer(campaign.app, name="campaign")
app.command()(plan.plan)
app.command()(reproduce.reproduce)
app.command()(sweep.sweep)
app.command()(bench.bench)
app.command()(verify.verify)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(version("evenhand"))
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """Which group to label next, so that your budget serves the worst-off group best."""


def main() -> None:
    """Run the command line.

    Exit codes: 0 done, 1 internal error or a broken database, 2 bad input, 3 nothing to ask, 4 data absent, 130 interrupted.
    """
    try:
        app()
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        sys.exit(130)
    except (InputError, FileNotFoundError, IsADirectoryError, PermissionError) as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(2)
    except Exception as error:
        typer.echo(f"internal error: {type(error).__name__}: {error}\nThe details are in {_log()}", err=True)
        sys.exit(1)


def _log() -> str:
    """The traceback of the error at hand, in a file."""
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile("w", prefix="evenhand-", suffix=".log", delete=False, encoding="utf-8") as file:
        traceback.print_exc(file=file)
    return file.name

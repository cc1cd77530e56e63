"""The command line. Heavy imports stay inside the commands, so that `--help` is quick."""

from __future__ import annotations

import gc
import sys

import typer

from evenhand.cli.lazy import lazy_app
from evenhand.errors import EvenhandError, InputError

__all__ = ["app", "main"]

COMMANDS = {
    "demo": "demo:demo",
    "simulate": "simulate:simulate",
    "curate": "curate:curate",
    "campaign": "campaign:app",
    "plan": "plan:plan",
    "reproduce": "reproduce:reproduce",
    "serve": "serve:serve",
    "token": "token:app",
    "sync": "sync:app",
}
app = lazy_app(
    "evenhand",
    "Which group to label next, so that your budget serves the worst-off group best.",
    COMMANDS,
)


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
    # imported modules stay: searching them for garbage 50 times would take a tenth of a short command's time
    gc.set_threshold(100_000)
    try:
        app()
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        sys.exit(130)
    except SystemExit as end:
        # typer turns a Ctrl-C that no command handled into a silent exit: somebody would wonder what was kept
        if isinstance(getattr(end.__context__, "__cause__", None), KeyboardInterrupt):
            typer.echo("interrupted", err=True)
        raise
    except (InputError, FileNotFoundError, IsADirectoryError, PermissionError) as error:
        # the three file errors are nearly always about a path that the user named
        typer.echo(f"error: {error}", err=True)
        sys.exit(2)
    except EvenhandError as error:
        # a learner or a database that failed: its message says what to do, a traceback would not
        typer.echo(f"error: {error}", err=True)
        sys.exit(1)
    except Exception as error:
        typer.echo(f"internal error: {type(error).__name__}: {error}\nThe details are in {_log()}", err=True)
        sys.exit(1)


def _log() -> str:
    """Write the traceback of the current error to a file; returns its path."""
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile("w", prefix="evenhand-", suffix=".log", delete=False, encoding="utf-8") as file:
        traceback.print_exc(file=file)
    return file.name

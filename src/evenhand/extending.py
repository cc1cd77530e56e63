"""Your own code by name: `factory:package.module.function`, with settings as in `factory:package.module.function:depth=3`.

Such a text may come from a database or from somebody else's script, so naming a module is not enough to import it: the
environment variable `EVENHAND_ALLOW` lists the packages that this machine trusts.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import os
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from evenhand.errors import InputError
from evenhand.notation import parse_settings

ALLOW = "EVENHAND_ALLOW"
"""The environment variable that lists the packages code may come from, separated by commas."""

_MARK = "factory:"
_SHOWN = 80
"""How many characters of an object a message shows; a whole table would fill the screen."""


@dataclass(frozen=True)
class Factory:
    """A user's function and the settings it is called with.

    It can be sent to another process where the function's module can be imported.
    """

    path: str
    function: Callable[..., Any]
    settings: Mapping[str, object]

    def __call__(self) -> Any:
        """Call the function; if it fails, that is an `InputError`, since the input named it."""
        try:
            return self.function(**self.settings)
        except Exception as error:
            inside = _place(error)
            hint = "" if inside else "; a factory is called with the settings after its second colon and nothing else"
            raise InputError(f"the factory {self.path!r} failed: {_described(error)}{hint}") from error

    def __repr__(self) -> str:
        settings = "".join(f", {key}={value!r}" for key, value in self.settings.items())
        return f"Factory({self.path}{settings})"


def is_factory(text: str) -> bool:
    """Whether a text names a factory.

    >>> is_factory("factory:shop.models.make"), is_factory("logistic")
    (True, False)
    """
    return text.startswith(_MARK)


def split_name(text: str) -> tuple[str, str]:
    """Split a text into its name (for a factory: with the import path) and its settings.

    >>> split_name("factory:shop.models.make:depth=3"), split_name("optimistic:c0=1")
    (('factory:shop.models.make', 'depth=3'), ('optimistic', 'c0=1'))
    """
    mark = _MARK if is_factory(text) else ""
    name, _, tail = text.removeprefix(mark).partition(":")
    return mark + name, tail


def parse_factory(text: str) -> Factory:
    """The factory that a text names, imported but not yet called."""
    name, tail = split_name(text)
    path = name.removeprefix(_MARK)
    return Factory(path, find(path, "factory"), parse_settings(tail, where=f"factory {path!r}"))


def make(text: str, kind: str, wrong: Callable[[object], str | None]) -> Any:
    """The object that a text's factory makes; `wrong` says why an object is not of this kind, or gives None."""
    factory = parse_factory(text)
    found = factory()
    if isinstance(found, type):
        raise InputError(f"the factory {factory.path!r} gave the class {found.__name__}: give an object of it")
    if (reason := wrong(found)) is not None:
        shown = repr(found) if len(repr(found)) < _SHOWN else f"an object of type {type(found).__name__}"
        raise InputError(f"the factory {factory.path!r} gave {shown}, which is not a {kind}: {reason}")
    return found


def find(path: str, what: str) -> Callable[..., object]:
    """The function at an import path in a package that `EVENHAND_ALLOW` names; error messages call it `what`."""
    module, _, name = path.rpartition(".")
    if not module or not all(part.isidentifier() for part in path.split(".")):
        raise InputError(f"cannot read the {what} {path!r}: write package.module.function")
    if not _allowed(module):
        raise InputError(f"the {what} {path!r} is not allowed here: {_advice(module)}")
    found = _attribute(_imported(module, what, path), name, what, path)
    if not callable(found):
        raise InputError(f"the {what} {path!r} is not a function, but of type {type(found).__name__}")
    # a trusted package may have imported os.system: trust covers only what the package defines itself
    home = getattr(found, "__module__", None) if inspect.isroutine(found) or inspect.isclass(found) else None
    if home is not None and not _allowed(home):
        raise InputError(f"the {what} {path!r} is defined in {home!r}, which is not allowed here: {_advice(home)}")
    return found


def _trusted() -> list[str]:
    return [entry.strip() for entry in os.environ.get(ALLOW, "").split(",") if entry.strip()]


def _allowed(module: str) -> bool:
    return any(f"{module}.".startswith(f"{entry}.") for entry in _trusted())


def _advice(module: str) -> str:
    return f"set {ALLOW}={','.join([*_trusted(), module.partition('.')[0]])} if you trust it"


def _imported(module: str, what: str, path: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        # an installed module may itself import one that is not installed, which is a different mistake
        if error.name is not None and f"{module}.".startswith(f"{error.name}."):
            raise InputError(
                f"there is no {what} {path!r}: no module {error.name!r} is installed or in a folder of PYTHONPATH"
            ) from None
        raise InputError(f"the {what} {path!r} cannot be imported: {_described(error)}") from error
    except Exception as error:
        raise InputError(f"the {what} {path!r} cannot be imported: {_described(error)}") from error


def _attribute(module: ModuleType, name: str, what: str, path: str) -> object:
    try:
        return getattr(module, name)
    except AttributeError:
        near = difflib.get_close_matches(name, vars(module), n=1)
        hint = f", did you mean {near[0]!r}?" if near else ""
        raise InputError(f"there is no {what} {path!r}: {module.__name__} has no {name!r}{hint}") from None


def _described(error: Exception) -> str:
    """The error and, if it came from the user's code, the file and line."""
    text = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
    return f"{text}{_place(error)}"


def _place(error: Exception) -> str:
    """File and line of an error; empty if no user code was reached."""
    # an error raised by the call itself, such as a missing argument, ends in this file
    last = traceback.extract_tb(error.__traceback__)[-1]
    if last.filename == __file__ or last.filename.startswith("<frozen"):
        return ""
    return f" ({os.path.basename(last.filename)}, line {last.lineno})"

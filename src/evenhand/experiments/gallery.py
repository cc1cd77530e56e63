"""One page with every figure beside what the paper says of it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files

__all__ = ["render"]


def render(entries: Mapping[str, object]) -> str:
    """The gallery of these entries of `results.json`, as HTML that stands beside the figures."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["number"] = number
    template = files("evenhand.experiments").joinpath("gallery.html").read_text(encoding="utf-8")
    return environment.from_string(template).render(entries=entries)


def number(value: float | None, sd: float | None = None) -> str:
    """A number with its standard deviation.

    >>> number(0.2034, 0.083), number(None)
    ('0.203 ± 0.083', '—')
    """
    if value is None:
        return "—"
    return f"{value:.3f}" if sd is None else f"{value:.3f} ± {sd:.3f}"

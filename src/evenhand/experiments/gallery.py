"""One page with every figure and what the paper says about it."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["render"]


def render(entries: Mapping[str, object]) -> str:
    """The gallery of these entries of `results.json`, as HTML for the folder of the figures."""
    from evenhand.report.pages import environment

    templates = environment()
    templates.filters["number"] = number
    return templates.get_template("gallery.html").render(entries=entries)


def number(value: float | None, sd: float | None = None) -> str:
    """A number with its standard deviation.

    >>> number(0.2034, 0.083), number(None)
    ('0.203 ± 0.083', '—')
    """
    if value is None:
        return "—"
    return f"{value:.3f}" if sd is None else f"{value:.3f} ± {sd:.3f}"

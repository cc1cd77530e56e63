"""The environment of all templates: pages of the server, and reports that are files."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

from jinja2 import BaseLoader, ChoiceLoader, Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from evenhand.report.campaign_charts import CHARTS, FULL, REASONS
from evenhand.report.charts import colour_of
from evenhand.report.plane import NARROW, WIDTH, isolated
from evenhand.report.view import PERCENT, CampaignView

# a hyphen before a number that stands alone; those inside words and dates stay
_MINUS = re.compile(r"(?<![\w.-])-(?=\d)")
TEMPLATES = Path(__file__).parent / "templates"


def environment(*folders: Path) -> Environment:
    """Templates from these folders, and those that reports and pages share."""
    loader: BaseLoader = ChoiceLoader([FileSystemLoader(folder) for folder in (*folders, TEMPLATES)])
    found = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    found.filters |= {"count": _count, "percent": _percent, "time": _time, "colour": colour_of, "isolated": isolated}
    found.filters |= {"rounded": _rounded, "sentence": _sentence, "no_percent": lambda text: text.removesuffix(PERCENT)}
    found.filters["minus"] = lambda text: _MINUS.sub("−", text)
    found.globals |= {"charts": CHARTS, "drawn": _drawn, "reasons": REASONS, "FULL": FULL}
    return found


@cache
def look() -> str:
    """The style sheet that all pages and reports share."""
    return (TEMPLATES / "look.css").read_text(encoding="utf-8")


def both(draw: Callable[[int], str], width: int = WIDTH) -> Markup:
    """A chart drawn twice, for a page and for a phone, where its letters would be too small; one of them is shown."""
    wide = draw(width)
    if not wide:
        return Markup("")
    return Markup(f'<div class="wide">{wide}</div><div class="narrow">{draw(NARROW)}</div>')


def campaign_report(view: CampaignView, made: str) -> str:
    """A campaign's page as one self-contained file."""
    return environment().get_template("campaign_report.html").render(v=view, made=made)


def _drawn(name: str, view: CampaignView, width: int | None = None) -> Markup:
    """A chart of a campaign, for page and phone; empty if there is nothing to draw."""
    return both(lambda width: CHARTS[name].draw(view, width), width or CHARTS[name].width)


def _count(value: float | None) -> str:
    return "—" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def _rounded(value: float | None) -> str:
    """A rate for planning, rounded to a whole number if it is large."""
    return "—" if value is None else f"{value:,.0f}" if value >= 10 or value == 0 else f"{value:.1f}"


def _sentence(text: str) -> str:
    """A reason as a sentence."""
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}."


def _percent(value: float | None) -> str:
    return "—" if value is None else f"{100 * value:.0f}\u00a0%"


def _time(moment: str | None, kind: str = "") -> Markup:
    """A moment that a script may show in the viewer's time zone; without the script it is in UTC."""
    if moment is None:
        return Markup("—")
    shown = moment.replace("T", " ").removesuffix("Z")[:16]
    about = Markup(' data-time="{}"').format(kind) if kind else Markup("")
    return Markup('<time datetime="{}"{}>{} UTC</time>').format(escape(moment), about, shown)

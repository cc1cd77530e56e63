"""Every page is what its results render to."""

import json

import pytest

from evidence import render


@pytest.mark.parametrize("page", render.pages(), ids=lambda page: page.name)
def test_a_page_is_what_its_results_render_to(page):
    text = page.read_text(encoding="utf-8")
    assert render.render(text) == text, f"docs/{page.name} is not as its results render: run make evidence"


def test_a_page_follows_its_results(monkeypatch):
    known = json.loads(
        '{"made": {"a": 0.5}, "rows": [{"n": 1000, "part": 0.25}, {"n": 7, "part": -1.0}]}', object_hook=render.Box
    )
    monkeypatch.setattr(render, "names", lambda: {"found": known, "short": lambda value: f"{value:.2f}"[1:]})
    table = "<!--rows found.rows\n|{n:,}|{short(part)}|\n-->\n| labels | part |\n|---|---|\n"
    old = f"It is <!--=found.made.a-->0.4<!--/--> points.\n\n{table}| 1 | 2 |\n| 3 | 4 |\n| 5 | 6 |\n\nMore."
    assert (
        render.render(old)
        == f"It is <!--=found.made.a-->0.5<!--/--> points.\n\n{table}| 1,000 | .25 |\n| 7 | 1.00 |\n\nMore."
    )

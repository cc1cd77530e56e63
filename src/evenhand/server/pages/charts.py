"""Every chart as a separate picture, and its numbers as CSV."""

from __future__ import annotations

import csv
import io
from typing import Literal

from fastapi import Request
from fastapi.responses import Response

from evenhand.errors import NotFound
from evenhand.report.campaign_charts import CHARTS
from evenhand.report.pages import look
from evenhand.report.plane import WIDTH
from evenhand.server.access import Viewing
from evenhand.server.pages.campaign import seen
from evenhand.server.pages.shared import new_router
from evenhand.tables.writing import guarded_cell

__all__ = ["router"]

router = new_router()


@router.get("/campaigns/{name}/charts/{chart}.{kind}")
def chart(request: Request, seat: Viewing, chart: str, kind: Literal["svg", "csv"]) -> Response:
    """A chart, or its numbers."""
    if chart not in CHARTS:
        raise NotFound(f"there is no chart {chart!r}: there are {', '.join(CHARTS)}")
    view = seen(request, seat, patient=True)
    headers = {"Content-Disposition": f'attachment; filename="{chart}.{kind}"'}
    if kind == "csv":
        names, rows = CHARTS[chart].numbers(view)
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow([guarded_cell(name) for name in names])
        writer.writerows([guarded_cell(cell) for cell in row] for row in rows)
        return Response(text.getvalue(), 200, headers, "text/csv; charset=utf-8")
    drawn = CHARTS[chart].draw(view, WIDTH)
    if not drawn:
        raise NotFound("there is nothing to draw yet")
    # a separate file has its style inside; it is downloaded, so the pages' security policy does not apply to it
    alone = drawn.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    alone = alone.replace("</title>", f"</title><style>{look()}</style>", 1)
    return Response(alone, 200, headers, "image/svg+xml")

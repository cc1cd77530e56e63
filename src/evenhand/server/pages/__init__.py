"""The web pages for viewing campaigns and working on them; they are rendered here and work without scripts.

- `listing`: all campaigns; `creating`: a new one; `campaign`: one, with its `charts` and `events`.
- `requests`: taking one, giving it up, its own page; `uploads`: files that are checked before anything is stored.
- `leading`: correcting labels, taking them back, changing settings, proofs, closing.
- `shared`: how all of them are rendered; `past`: histories that follow their campaigns; `static`: style and scripts.
- `problems`: errors as pages, for people.
"""

from evenhand.server.pages import (
    campaign,
    charts,
    creating,
    events,
    leading,
    listing,
    requests,
    static,
    uploads,
)

__all__ = ["ROUTERS"]

ROUTERS = [part.router for part in (static, listing, creating, campaign, charts, events, requests, uploads, leading)]

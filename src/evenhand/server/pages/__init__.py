"""The pages: campaigns to look at and to work on, rendered here, without a script that must run.

- `listing`: all campaigns; `creating`: a new one; `campaign`: one, with its `charts` and `events`.
- `requests`: taking one, giving it up, its own page; `uploads`: files looked through before anything is stored.
- `leading`: labels corrected and taken back, settings changed, proofs, the end.
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

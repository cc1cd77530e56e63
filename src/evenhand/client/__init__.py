"""The client: campaigns on a server, with the verbs of `Campaign`.

`connect(url, token)` gives a `Server`, whose `campaign(name)` is a `RemoteCampaign`.

- `server`: the campaigns of a server; `campaign`, `looking`: the verbs that change a campaign, and those that look.
- `connection`: requests that are sent again where that is safe; `problems`: errors of the server as the same exceptions.
- `sending`, `receiving`: rows, tables and settings on their way out; requests, receipts, claims and models as they come in.
"""

from evenhand.client.server import connect

__all__ = ["connect"]

"""The client: campaigns on a server, with the verbs of `Campaign`.

`connect(url, token)` returns a `Server`, whose `campaign(name)` is a `RemoteCampaign`.

- `server`: the campaigns of a server; `campaign`, `looking`: the verbs that change a campaign, and those that look.
- `connection`: requests that are sent again where that is safe; `problems`: the server's errors as exceptions.
- `sending`, `receiving`: rows, tables and settings to send; requests, receipts, claims and models received.
"""

from evenhand.client.server import connect

__all__ = ["connect"]

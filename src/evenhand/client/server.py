"""The campaigns of a server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self
from urllib.parse import quote

from evenhand.client.campaign import RemoteCampaign
from evenhand.client.connection import Connection
from evenhand.client.sending import settings_body
from evenhand.errors import NotFound
from evenhand.notation import JsonObject

if TYPE_CHECKING:
    from evenhand.strategies import Strategy


def connect(url: str, token: str | None = None, *, timeout: float = 60.0, patience: float = 30.0) -> Server:
    """Connect to a server and use its campaigns with the same verbs as on this machine.

    Args:
        url: where the server is, e.g. `https://host/evenhand`.
        token: what `evenhand token create` printed; none is needed on the server's own machine.
        timeout: seconds to wait for an answer that needs no fit.
        patience: for how many seconds a request that gets no answer is sent again; no step is taken twice that way.
    """
    return Server(Connection(url, token, timeout, patience))


class Server:
    """Campaigns on a server; `with connect(...) as server:` releases its connections. May be used from many threads."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __repr__(self) -> str:
        return f"<Server {self._connection.url}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.release()

    def release(self) -> None:
        """Close the connections."""
        self._connection.close()

    def campaigns(self) -> list[str]:
        """The names of the campaigns that the token may see."""
        return [about["name"] for about in self._campaigns()]

    def _campaigns(self) -> list[JsonObject]:
        return list(self._connection.get("/api/campaigns")["campaigns"])

    def campaign(self, name: str) -> RemoteCampaign:
        """An existing campaign."""
        return RemoteCampaign(self._connection, name, f"/api/campaigns/{self._part(name)}")

    def _part(self, name: str) -> str:
        """A campaign's name as a part of a path, or its number where a path cannot hold the name."""
        if "/" not in name and not name.startswith("~") and name not in ("", ".", ".."):
            return quote(name, safe="")
        # proxies rewrite %2F and .. in addresses: a campaign with such a name is addressed by its number
        found = [about["number"] for about in self._campaigns() if about["name"] == name]
        if not found:
            raise NotFound(f"there is no campaign {name!r}")
        return f"~{found[0]}"

    def create(
        self,
        name: str,
        groups: Sequence[str] | None = None,
        strategy: str | Strategy = "optimistic",
        learner: object = "logistic",
        *,
        budget: int,
        refit: str | int = "background",
        lease: str | float | None = "1d",
        **settings: object,
    ) -> RemoteCampaign:
        """Create a campaign with the settings of `Campaign.create`; `refit` is `"background"` unless given.

        Strategy, learner, risk and stopping rule may be objects if a text describes them completely; your own code
        cannot be sent over HTTP.
        """
        body = settings_body(name, groups, strategy, learner, budget=budget, refit=refit, lease=lease, **settings)
        # sent again, it would find the campaign that the first try made
        self._connection.post("/api/campaigns", body, repeat="never")
        return self.campaign(name)

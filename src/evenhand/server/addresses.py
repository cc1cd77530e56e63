"""Addresses that webhooks may be sent to: public ones, unless the operator allows a host.

A name is resolved once, all its addresses are checked, and the connection is made to the checked address: changing what
the name points to a moment later gains nothing.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence
from typing import Any

import httpcore
import httpx

from evenhand.errors import InputError

_UNICAST = ipaddress.ip_network("2000::/3")
"""The addresses of the IPv6 internet. Whatever lies outside is local, or stands for an IPv4 address or a router's step."""
_NOT_PUBLIC = tuple(
    map(
        ipaddress.ip_network,
        (
            "192.0.0.0/24",  # kept for protocols; a cloud answers with its machines' secrets here
            "192.88.99.0/24",  # once the way to IPv6 by 6to4
            "168.63.129.16/32",  # looks public, but is the host of a virtual machine in Azure
            "3fff::/20",  # for documentation
        ),
    )
)
"""Addresses that Python takes for public ones, in this version or an older one."""


def checked_address(url: str, allowed: Sequence[str] = ()) -> str:
    """The address of a URL's host; refused if it is private, link-local, loopback or otherwise not public."""
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, TypeError):
        raise InputError(f"{url!r} is not a URL") from None
    if parsed.scheme not in ("http", "https") or not parsed.host or parsed.userinfo:
        raise InputError(f"{url!r} cannot be sent to: give http:// or https:// and a host, without a password")
    try:
        found = socket.getaddrinfo(parsed.host, parsed.port or parsed.scheme, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise InputError(f"the host {parsed.host!r} cannot be found: {error}") from None
    addresses = [str(address[4][0]) for address in found]
    if parsed.host.lower() not in {host.lower() for host in allowed} and not all(
        _is_public(address) for address in addresses
    ):
        raise InputError(
            f"{parsed.host!r} is {addresses[0]}, which is not a public address: start the server with "
            f"--allow-webhook-host {parsed.host} if that is meant"
        )
    return addresses[0]


def _is_public(address: str) -> bool:
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return _is_public(str(found.ipv4_mapped))
        # 6to4 and Teredo stand for an IPv4 address: what counts is where the packets finally arrive
        if found not in _UNICAST or found.sixtofour is not None or found.teredo is not None:
            return False
    return found.is_global and not found.is_multicast and not any(found in network for network in _NOT_PUBLIC)


class _Pinned(httpcore.AsyncNetworkBackend):
    """Connects to one address, whatever the host's name; the certificate must still be the host's."""

    def __init__(self, address: str) -> None:
        self._address, self._real = address, httpcore.AnyIOBackend()

    async def connect_tcp(self, host: str, port: int, *args: Any, **kwargs: Any) -> httpcore.AsyncNetworkStream:
        return await self._real.connect_tcp(self._address, port, *args, **kwargs)


class _Transport(httpx.AsyncHTTPTransport):
    def __init__(self, address: str) -> None:
        super().__init__(trust_env=False)
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=httpx.create_ssl_context(), network_backend=_Pinned(address)
        )


def pinned(address: str, *, timeout: float) -> httpx.AsyncClient:
    """A client that connects to this checked address for every host, and follows no redirects."""
    return httpx.AsyncClient(transport=_Transport(address), timeout=timeout, follow_redirects=False, trust_env=False)

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

__all__ = ["checked_address", "pinned"]

_TRANSLATED = ipaddress.ip_network("64:ff9b::/96")


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
        # IPv6 addresses that stand for an IPv4 address: what counts is where the packets finally arrive
        if found.sixtofour is not None or found.teredo is not None or found in _TRANSLATED:
            return False
        mapped = found.ipv4_mapped
        return _is_public(str(mapped)) if mapped is not None else found.is_global and not found.is_multicast
    return found.is_global and not found.is_multicast


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

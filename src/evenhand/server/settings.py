"""The settings of a server."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

_MIB = 2**20


@dataclass(frozen=True)
class Settings:
    """The settings of a server.

    Attributes:
        url: the database, `sqlite:///file.db` or `postgresql://…`.
        host, port: where it listens.
        root_path: the path under which a proxy serves it, such as `/evenhand`.
        allowed_hosts: host names it may be reached by, besides those of this machine's loopback.
        webhook_hosts: hosts that webhooks may be sent to although their addresses are private.
        max_body: the largest body of a request in bytes; `max_upload`: that of a pool.
        max_wait: how many seconds an ask waits for a refit at most.
        workers: how many processes fit models.
    """

    url: str
    host: str = "127.0.0.1"
    port: int = 8000
    root_path: str = ""
    allowed_hosts: tuple[str, ...] = ()
    webhook_hosts: tuple[str, ...] = ()
    max_body: int = 8 * _MIB
    max_upload: int = 256 * _MIB
    max_wait: float = 30.0
    workers: int = 1

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it, as far as its settings tell: loopback, no proxy's path, no other name."""
        return is_loopback(self.host) and not self.root_path and not self.allowed_hosts


def is_loopback(host: str) -> bool:
    """Whether a host is this machine itself.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0"), is_loopback("[::1]")
    (True, True, False, True)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False

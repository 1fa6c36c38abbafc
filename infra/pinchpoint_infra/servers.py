"""Names the servers of an embedded farm: ``tier`` for a tier with one host, else ``tier.host``."""

from __future__ import annotations

from typing import NamedTuple


class Server(NamedTuple):
    """One server of an embedded farm.

    Attributes:
        name: ``tier``, or ``tier.host`` if the tier has several hosts.
        tier: tier of the server.
        host: host in the farm: name of the tier with a number.
    """

    name: str
    tier: str
    host: str


def servers_of(tier: str, hosts: int) -> tuple[Server, ...]:
    """Return the servers of a tier with a number of hosts."""
    names = [f"{tier}{number}" for number in range(1, hosts + 1)]
    return tuple(Server(tier if hosts == 1 else f"{tier}.{host}", tier, host) for host in names)

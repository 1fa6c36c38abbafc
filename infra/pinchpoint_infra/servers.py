"""The names of an embedded farm's servers: of a tier with one host the tier's, else ``tier.host``."""

from __future__ import annotations

from typing import NamedTuple


class Server(NamedTuple):
    """One server of an embedded farm.

    Attributes:
        name: ``tier``; ``tier.host`` where the tier has several hosts.
        tier: its tier.
        host: its host in the farm: the tier's name with a number.
    """

    name: str
    tier: str
    host: str


def servers_of(tier: str, hosts: int) -> tuple[Server, ...]:
    """The servers of a tier with that number of hosts."""
    names = [f"{tier}{number}" for number in range(1, hosts + 1)]
    return tuple(Server(tier if hosts == 1 else f"{tier}.{host}", tier, host) for host in names)

"""The kinds of collector farm.yaml may name: one line each at the end of this file."""

from __future__ import annotations

import difflib

from pinchpoint_collectors.agent.collector import AgentKind
from pinchpoint_collectors.databases.cassandra import CassandraKind
from pinchpoint_collectors.databases.mariadb import MariadbKind
from pinchpoint_collectors.databases.mongodb import MongodbKind
from pinchpoint_collectors.databases.postgres import PostgresKind
from pinchpoint_collectors.databases.sqlserver import SqlserverKind
from pinchpoint_collectors.databases.valkey import ValkeyKind
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.local import LocalKind
from pinchpoint_collectors.prometheus import PrometheusKind
from pinchpoint_collectors.record import Kind
from pinchpoint_collectors.ssh import SshKind
from pinchpoint_collectors.windows.kind import WindowsKind

_KINDS: dict[str, Kind] = {}


def register(kind: Kind) -> None:
    """Make a kind known by its name. Raises ``ValueError`` when the name is taken."""
    if kind.name in _KINDS:
        raise ValueError(f"a collector kind named {kind.name!r} is registered already")
    _KINDS[kind.name] = kind


def names() -> tuple[str, ...]:
    """The names of all kinds, sorted."""
    return tuple(sorted(_KINDS))


def kind(name: str) -> Kind:
    """The kind of that name. Raises ``CollectorError`` that lists every name and the nearest."""
    try:
        return _KINDS[name]
    except KeyError:
        nearest = difflib.get_close_matches(name, _KINDS, n=1)
        hint = f"; nearest: {nearest[0]}" if nearest else ""
        raise CollectorError(f"no collector kind {name!r}; allowed: {', '.join(names())}{hint}") from None


register(LocalKind())
register(SshKind())
register(PostgresKind())
register(ValkeyKind())
register(CassandraKind())
register(MongodbKind())
register(WindowsKind())
register(MariadbKind())
register(SqlserverKind())
register(PrometheusKind())
register(AgentKind())

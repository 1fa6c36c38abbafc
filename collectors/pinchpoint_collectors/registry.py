"""Registry of the kinds of collectors for farm.yaml, one line each."""

from __future__ import annotations

from importlib import import_module

from pinchpoint_collectors.common.names import allowed
from pinchpoint_collectors.common.plugins import PlugIn, PlugInError, plug_ins
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import Kind

GROUP = "pinchpoint.collectors"
"""Group of the entry points of packages that add kinds of collectors: ``name = module:Class``."""

_OWN = {
    "agent": "agent.collector:AgentKind",
    "aws": "platforms.aws:AwsKind",
    "azure": "platforms.azure:AzureKind",
    "cassandra": "databases.cassandra:CassandraKind",
    "local": "local:LocalKind",
    "mariadb": "databases.mariadb:MariadbKind",
    "mongodb": "databases.mongodb:MongodbKind",
    "postgres": "databases.postgres:PostgresKind",
    "prometheus": "prometheus:PrometheusKind",
    "sqlserver": "databases.sqlserver:SqlserverKind",
    "ssh": "ssh:SshKind",
    "valkey": "databases.valkey:ValkeyKind",
    "windows": "windows.collector:WindowsKind",
}
_KINDS: dict[str, Kind | str | PlugIn] = {**_OWN, **plug_ins(GROUP, _OWN)}
"""Name -> kind, or the place of its class, which is imported on request."""


def register(kind: Kind) -> None:
    """Register a kind under its name. Raises ``ValueError`` if the name is in use."""
    if kind.name in _KINDS:
        raise ValueError(f"a collector kind named {kind.name!r} is registered already")
    _KINDS[kind.name] = kind


def names() -> tuple[str, ...]:
    """Return the names of all kinds, sorted."""
    return tuple(sorted(_KINDS))


def kind(name: str) -> Kind:
    """Return the kind with a name. Raises ``CollectorError`` that lists every name and the nearest one."""
    if name not in _KINDS:
        raise CollectorError(f"no collector kind {name!r}; {allowed(name, names())}")
    result = _KINDS[name]
    if isinstance(result, PlugIn):
        try:
            result = _KINDS[name] = result.load("name")()
        except PlugInError as error:
            raise CollectorError(f"collector kind {error}") from error
    if isinstance(result, str):
        module, _, class_name = result.partition(":")
        result = _KINDS[name] = getattr(import_module(f"{__package__}.{module}"), class_name)()
    return result

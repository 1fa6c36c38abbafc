"""Registry of the formats that ``pinchpoint import`` reads, one line each at the end of this module."""

from __future__ import annotations

from pinchpoint_collectors.common.legible import ForeignFileError
from pinchpoint_collectors.common.names import allowed
from pinchpoint_collectors.imports.awr import Awr
from pinchpoint_collectors.imports.blg import Blg
from pinchpoint_collectors.imports.cloud import AzureMonitorJson, CloudWatchJson
from pinchpoint_collectors.imports.crawl_log import CrawlLog
from pinchpoint_collectors.imports.dmv import Dmv
from pinchpoint_collectors.imports.dstat import Dstat
from pinchpoint_collectors.imports.esxtop import Esxtop
from pinchpoint_collectors.imports.get_counter import GetCounter
from pinchpoint_collectors.imports.iostat import Iostat
from pinchpoint_collectors.imports.jmeter import JMeter
from pinchpoint_collectors.imports.mapped_csv import MappedCsv
from pinchpoint_collectors.imports.mysql_sessions import MysqlSessions
from pinchpoint_collectors.imports.mysql_status import MysqlStatus
from pinchpoint_collectors.imports.nmon import Nmon
from pinchpoint_collectors.imports.node_exporter import NodeExporter
from pinchpoint_collectors.imports.perfmon import Perfmon
from pinchpoint_collectors.imports.pidstat import Pidstat
from pinchpoint_collectors.imports.record import BinaryFormat, Format
from pinchpoint_collectors.imports.sadf import Sadf
from pinchpoint_collectors.imports.sadf_csv import SadfCsv
from pinchpoint_collectors.imports.sar import Sar
from pinchpoint_collectors.imports.screens import Screens
from pinchpoint_collectors.imports.top import Top
from pinchpoint_collectors.imports.vmstat import Vmstat

_FORMATS: dict[str, Format] = {}
BINARY: dict[str, BinaryFormat] = {each.name: each for each in (Blg(),)}
"""Binary formats, recognised by their first bytes."""


def register(format_: Format) -> None:
    """Register a format under its name. Raises ``ValueError`` if the name is in use."""
    if format_.name in _FORMATS:
        raise ValueError(f"a format named {format_.name!r} is registered already")
    _FORMATS[format_.name] = format_


def names() -> tuple[str, ...]:
    """Return the names of all text formats, in the order of registration."""
    return tuple(_FORMATS)


def listed() -> str:
    """Return all formats, one per line, with a description."""
    return "\n".join(f"  {name}: {format_.says}" for name, format_ in _FORMATS.items())


def format_named(name: str) -> Format:
    """Return the format with a name.

    Raises ``ForeignFileError`` that lists every name and the nearest one.
    """
    try:
        return _FORMATS[name]
    except KeyError:
        raise ForeignFileError(f"no kind {name!r}; {allowed(name, _FORMATS)}") from None


def recognised(head: str) -> Format:
    """Return the format of a file with this start. Raises ``ForeignFileError`` that quotes the start."""
    for format_ in _FORMATS.values():
        if format_.recognises(head):
            return format_
    first = next((line for line in head.splitlines() if line.strip()), "")
    seen = f"it begins with {first[:80]!r}" if first else "it is empty"
    raise ForeignFileError(f"unknown kind of file: {seen}; the known kinds:\n{listed()}")


register(Esxtop())
register(Perfmon())
register(GetCounter())
register(Sadf())
register(SadfCsv())
register(Sar())
register(Iostat())
register(Pidstat())
register(Vmstat())
register(Top())
register(Screens())
register(Dstat())
register(Nmon())
register(JMeter())
register(NodeExporter())
register(AzureMonitorJson())
register(CloudWatchJson())
register(Dmv())
register(MysqlStatus())
register(MysqlSessions())
register(Awr())
register(CrawlLog())
register(MappedCsv())

"""Which processes of a machine are a tier's, as farm.yaml says it."""

from __future__ import annotations

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import Processes, Watch


def process_names(watch: Watch, kind: str) -> tuple[str, ...] | None:
    """The names that the option ``process`` gives; None where it does not. Raises ``CollectorError``."""
    name = watch.options.get("process")
    if name is None:
        return None
    names = [name] if isinstance(name, str) else name
    if not (isinstance(names, list | tuple) and names and all(n and isinstance(n, str) for n in names)):
        raise CollectorError(
            f"host {watch.host!r}, collector {kind!r}: process: found {name!r}; "
            "allowed: a name or a list of names"
        )
    return tuple(names)


def tier_processes(watch: Watch) -> Processes | None:
    """Those its ``process`` or ``port`` option says, else the watch's own. Raises ``CollectorError``."""
    name, port = watch.options.get("process"), watch.options.get("port")
    where = f"host {watch.host!r}, collector 'local'"
    if name is not None and port is not None:
        raise CollectorError(f"{where}: `process` and `port` are both given; allowed: one of them")
    names = process_names(watch, "local")
    if names is not None:
        return Processes(names=names)
    if port is not None:
        if type(port) is not int or not 1 <= port <= 65535:
            raise CollectorError(f"{where}: port: found {port!r}; allowed: a number from 1 to 65535")
        return Processes(port=port)
    return watch.processes

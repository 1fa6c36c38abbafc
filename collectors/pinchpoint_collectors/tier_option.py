"""Which processes of a machine are a tier's, as farm.yaml says it."""

from __future__ import annotations

from pinchpoint_collectors.errors import OptionError
from pinchpoint_collectors.record import Processes, Watch


def process_names(watch: Watch, kind: str) -> tuple[str, ...] | None:
    """The names that the option ``process`` gives; None where it does not. Raises ``OptionError``."""
    name = watch.options.get("process")
    if name is None:
        return None
    names = [name] if isinstance(name, str) else name
    if not (isinstance(names, list | tuple) and names and all(n and isinstance(n, str) for n in names)):
        said = f"found {name!r}; allowed: a name or a list of names"
        raise OptionError("process", said, f"host {watch.host!r}, collector {kind!r}")
    return tuple(names)


def tier_processes(watch: Watch) -> Processes | None:
    """Those its ``process`` or ``port`` option says, else the watch's own. Raises ``OptionError``."""
    name, port = watch.options.get("process"), watch.options.get("port")
    where = f"host {watch.host!r}, collector 'local'"
    if name is not None and port is not None:
        raise OptionError("port", "given beside `process`; allowed: one of them", where)
    names = process_names(watch, "local")
    if names is not None:
        return Processes(names=names)
    if port is not None:
        if type(port) is not int or not 1 <= port <= 65535:
            raise OptionError("port", f"found {port!r}; allowed: a number from 1 to 65535", where)
        return Processes(port=port)
    return watch.processes

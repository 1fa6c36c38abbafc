"""Checks the options of a ``collect`` entry before connecting. An error names option and remedy."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pinchpoint_collectors.errors import CollectorError, OptionError
from pinchpoint_collectors.record import Processes, Watch

Options = Mapping[str, Any]
_INTERVAL = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s)")

# ---- one option ---------------------------------------------------------------------------------------


def text(options: Options, name: str, fits: Callable[[str], bool], allowed: str) -> str | None:
    """Return a text option; None if it is missing. Messages never contain a password."""
    value = options.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not fits(value):
        shown = "a value (not shown)" if name == "password" else repr(value)
        raise OptionError(name, f"found {shown}; allowed: {allowed}")
    return value


def word(options: Options, name: str) -> str | None:
    """Return an option that a program takes as one word and not as a flag; None if it is missing."""
    return text(options, name, _is_word, "a word that does not begin with -")


def _is_word(value: str) -> bool:
    return bool(value) and not value.startswith("-") and not re.search(r"[\s\0]", value)


def texts(options: Options, name: str, allowed: str, where: str = "") -> tuple[str, ...] | None:
    """Return one or several texts; None if none is given."""
    value = options.get(name)
    if value is None:
        return None
    result = [value] if isinstance(value, str) else value
    is_list = isinstance(result, list | tuple) and bool(result)
    if not is_list or not all(isinstance(each, str) and each.strip() for each in result):
        raise OptionError(name, f"found {value!r}; allowed: {allowed}", where)
    return tuple(result)


def flag(options: Options, name: str) -> bool:
    """Return a flag; True by default."""
    value = options.get(name, True)
    if not isinstance(value, bool):
        raise OptionError(name, f"found {value!r}; allowed: true or false")
    return value


def port(options: Options, where: str = "") -> int | None:
    """Return a TCP port; None if none is given."""
    value = options.get("port")
    if value is not None and (type(value) is not int or not 1 <= value <= 65535):
        raise OptionError("port", f"found {value!r}; allowed: a number from 1 to 65535", where)
    return value


def _is_whole_path(value: str) -> bool:
    return value.startswith("~") or Path(value).is_absolute()


def file(options: Options, name: str) -> str | None:
    """Return the path of a file on this machine; None if it is missing."""
    value = text(options, name, _is_whole_path, "an absolute path, or one that begins with ~/")
    if value is None:
        return None
    path = Path(value).expanduser()
    if not path.is_file():
        raise CollectorError(f"{name}: {path} is no file on this machine; give one that is there")
    return str(path)


def interval_s(options: Options, shortest_s: float, longest_s: float) -> float:
    """Return the seconds between two readings, 1 by default. Raises ``OptionError``."""
    given = options.get("interval", "1s")
    result = _INTERVAL.fullmatch(given) if isinstance(given, str) else None
    seconds = float(result[1]) * (0.001 if result[2] == "ms" else 1.0) if result else 0.0
    if not shortest_s <= seconds <= longest_s:
        allowed = f"a duration from {shortest_s * 1000:g}ms to {longest_s:g}s"
        raise OptionError("interval", f"found {given!r}; allowed: {allowed}")
    return seconds


# ---- all watches of one machine -----------------------------------------------------------------------


def each_once(watches: Sequence[Watch], kind: str) -> None:
    """Raises ``CollectorError`` if this kind watches a host twice."""
    hosts = [watch.host for watch in watches]
    for host in hosts:
        if hosts.count(host) > 1:
            raise CollectorError(
                f"host {host!r} is watched by {kind!r} more than once; list it once for a host"
            )


def say_the_same(watches: Sequence[Watch], options: Sequence[str], where: str) -> None:
    """Raises ``CollectorError`` if watches differ in one of these options.

    The machine is read only once.
    """
    for option in options:
        if len({str(watch.options.get(option)) for watch in watches}) > 1:
            hosts = ", ".join(watch.host for watch in watches)
            raise CollectorError(
                f"{where}: {option}: {hosts} are one machine and say different things; "
                "say the same for all of them"
            )


# ---- the processes of a tier --------------------------------------------------------------------------


def process_names(watch: Watch, kind: str) -> tuple[str, ...] | None:
    """Return the names in the option ``process``; None without it. Raises ``OptionError``."""
    where = f"host {watch.host!r}, collector {kind!r}"
    return texts(watch.options, "process", "a name or a list of names", where)


def tier_processes(watch: Watch) -> Processes | None:
    """Return the processes of the tier by the options ``process`` or ``port``, or else those of the watch.

    Raises ``OptionError``.
    """
    where = f"host {watch.host!r}, collector 'local'"
    if watch.options.get("process") is not None and watch.options.get("port") is not None:
        raise OptionError("port", "given beside `process`; allowed: one of them", where)
    names, has = process_names(watch, "local"), watch.options.get("command_line")
    if has is not None and (names is None or not isinstance(has, str) or not has.strip()):
        result = f"found {has!r}" if names is not None else "given without `process`"
        raise OptionError("command_line", f"{result}; allowed: a text, beside `process`", where)
    if names is not None:
        answers = watch.processes.port if watch.processes and not has else None
        return Processes(names=names, port=answers, command_line=has or "")
    number = port(watch.options, where=where)
    return watch.processes if number is None else Processes(port=number)

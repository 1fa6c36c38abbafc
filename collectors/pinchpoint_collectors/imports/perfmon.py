"""Reads Performance Monitor logs as CSV or TSV (perfmon, logman, relog), and output of typeperf.

The first cell of the header is ``(PDH-CSV 4.0) (<zone>)(<minutes to add for UTC>)``, for typeperf just
``(PDH-CSV 4.0)``; the other cells are counter paths. A row begins with its local time, the end of its
interval (``MM/DD/YYYY HH:MM:SS.mmm`` in every language). The first row covers an unknown time: only its time
is used. ``windows/counters.csv`` maps counters to metrics.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from pinchpoint_collectors import bounds
from pinchpoint_collectors.common import numerals
from pinchpoint_collectors.common.counts import counted
from pinchpoint_collectors.common.legible import ForeignFileError
from pinchpoint_collectors.imports.record import FileFacts, Settings
from pinchpoint_collectors.imports.text import csv_cells
from pinchpoint_collectors.imports.times import LocalClock, ReadingTimes
from pinchpoint_collectors.record import Sample
from pinchpoint_collectors.windows.counters import (
    HYPERVISOR,
    LANGUAGES,
    NAMED_INSTANCE,
    PARTS,
    TOTAL,
    Counter,
    english,
    folded,
    placed,
)

_HEADER = re.compile(
    r"\(PDH-[CT]SV 4\.0\)\s*(?:\((?P<zone>.*)\)\s*\((?P<minutes>-?[0-9]{1,4})\)|(?P<unreadable>\(.*))?\s*",
    re.DOTALL,
)
"""Pattern of the header. The name of a zone ends at its first letter that the recorder's code page lacks."""
_BEGINS = re.compile(r"[\ufeff\s]*\"?\(PDH-[CT]SV 4\.0\)")
_INDEX = re.compile(r"[0-9]{1,9}")
_TIMES = ("%m/%d/%Y %H:%M:%S.%f", "%m/%d/%Y %H:%M:%S")
"""Formats of times in Windows and ESX."""
_DELIMITER = re.compile(r"\"([,;\t])\"|(?<!\")([,;\t])\\")
"""Separator of two cells of the header. A spreadsheet that saved the log removed the quotes."""


_DRIVE = re.compile(r"[A-Za-z]:")
_DISKS = ("LogicalDisk", "PhysicalDisk")
SIZE_OF_MEMORY = {
    "metric": "mem.available_ratio",
    "instance": "",
    "why": "Windows counters do not contain the memory size",
    "remedy": "say it: --memory HOST=SIZE",
}
SHOWN = 3
"""Largest number of names that a message lists."""


@dataclass(slots=True)
class CounterColumn:
    r"""A column of a known counter, such as ``\\SQL1\LogicalDisk(L:)\Avg. Disk sec/Write``.

    Attributes:
        at: position in a row; the time is at 0.
        path: path in the header.
        host: host in the path; empty if there is none.
        logged: instance in the path; empty if there is none.
        server: SQL Server instance of the object: ``""`` is the default one; None: not of SQL Server.
        object: name of the object in English.
        counter: name of the counter in English.
        instance: instance in Pinchpoint's form.
        weight_at: position of the rate that weights a mean; None: no mean, or its rate was not logged.
        begun: whether a value has occurred. An instance may appear later in the log.
        negative: number of values below 0, which no counter has: typeperf writes -1 for "invalid".
    """

    at: int
    path: str
    host: str
    logged: str
    server: str | None
    object: str
    counter: str
    means: Counter
    instance: str
    weight_at: int | None = None
    begun: bool = False
    negative: int = 0


class Perfmon:
    """Import format ``perfmon``."""

    name = "perfmon"
    says = (
        "a log of Windows' Performance Monitor as CSV or TSV (logman, relog -f csv), or what typeperf prints"
    )

    def recognises(self, head: str) -> bool:
        """Return whether the file is recognised by the first cell of the header."""
        return _BEGINS.match(head) is not None

    def read(self, lines: Iterable[str], settings: Settings, facts: FileFacts) -> Iterator[Sample]:
        """Yield one sample per known counter and row (see ``Format.read``)."""
        rows = rows_of(lines)
        number, header = next(rows, (1, []))
        if not header:
            raise ForeignFileError(
                "it contains no header line; allowed: the file as perfmon or typeperf wrote it"
            )
        pace = ReadingTimes()
        clock = clock_of(header[0], number, settings, pace, facts)
        readings = ((line, local_of(row[0], line), row) for line, row in whole_rows(rows, len(header), facts))
        columns = columns_of(header[1:], settings.names, facts)
        yield from samples(columns, readings, clock, pace, facts)


def samples(
    columns: Sequence[CounterColumn],
    readings: Iterable[tuple[int, datetime, Sequence[str]]],
    clock: LocalClock,
    pace: ReadingTimes,
    facts: FileFacts,
) -> Iterator[Sample]:
    """Yield the samples of a table of counters.

    Args:
        columns: columns of known counters.
        readings: line, local time and cells. Counters begin at the second cell.
        clock: converts local times.
        pace: determines the intervals of the readings.
        facts: receives facts (see ``record.FileFacts``).

    Raises:
        ForeignFileError: a cell is not a number, or the file has no reading.
    """
    last_s: float | None = None
    for line, local, row in readings:
        facts.line = line
        time_s = clock.utc_s(local, line)
        if time_s is None:
            continue
        if last_s is not None:
            covered_s = pace.covered_s(last_s, time_s)
            yield from _samples(columns, row, time_s, (time_s - last_s, covered_s), line)
        last_s = time_s
    if last_s is None:
        raise ForeignFileError("it contains a header but no row; record for longer")
    pace.report(facts)
    _note(columns, facts)


def rows_of(lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield line and cells of all lines that are not empty. The header shows the separator."""
    delimiter = None
    for number, line in enumerate(lines, 1):
        text = line.strip("\ufeff\r\n ")
        if not text:
            continue
        if delimiter is None:
            between = _DELIMITER.search(text)
            delimiter = (between[1] or between[2]) if between else "\t" if "\t" in text else ","
        row = csv_cells(text, delimiter, number)
        # A cell without a closing quote was cut off and is no value.
        cut_off = text.startswith('"') and not text.endswith('"')
        yield number, row[:-1] or [""] if cut_off else row


def whole_rows(
    rows: Iterator[tuple[int, list[str]]], width: int, facts: FileFacts
) -> Iterator[tuple[int, list[str]]]:
    """Yield the complete rows. typeperf may append words to the file, and its last row may be incomplete."""
    held: tuple[int, list[str]] | None = None
    ended = False
    for line, row in rows:
        if held is not None:
            yield held
            held = None
        if row and _HEADER.fullmatch(row[0].strip()):
            raise ForeignFileError(
                "another log begins here; split the file before this line and import the parts one by one",
                line,
            )
        if _is_words(row, width):
            ended = True
        elif ended:
            raise ForeignFileError(
                "samples continue after the end of a log; split the file there and import the parts one "
                "by one",
                line,
            )
        elif len(row) != width:
            if next(rows, None) is not None:
                raise ForeignFileError(
                    f"found {len(row)} cells, the header has {width}; a line in the middle is damaged: "
                    "remove it, or export the log again (relog LOG.blg -f csv)",
                    line,
                )
            facts.note("the last line is truncated and was ignored")
            return
        else:
            held = line, row
    if held is not None:
        yield held


def _is_words(row: Sequence[str], width: int) -> bool:
    """Return whether a line is typeperf's last message, "Exiting, please wait...", in any language.

    With commas the message may have the same number of parts as a row with one counter.
    """
    begins = [cell.strip()[:1] for cell in row]
    return not "".join(begins[:1]).isdigit() and (len(row) != width or not any(map(str.isdigit, begins)))


def _parsed(text: str) -> datetime:
    plain = text.strip()
    format_ = _TIMES["." not in plain]
    return datetime.strptime(plain, format_)  # noqa: DTZ007 -- local time; the header says of where


def local_of(text: str, line: int) -> datetime:
    """Return the time of a row. Raises ``ForeignFileError``."""
    try:
        return _parsed(text)
    except ValueError as error:
        raise ForeignFileError(
            f"found the time {text[:40]!r}; allowed: MM/DD/YYYY HH:MM:SS.mmm, as perfmon writes it in every "
            "language (a spreadsheet that saved the file may have changed that: export it again)",
            line,
        ) from error


def clock_of(cell: str, line: int, settings: Settings, pace: ReadingTimes, facts: FileFacts) -> LocalClock:
    """Return the clock of the file: by ``--zone``, or else by its header, or else UTC with a warning."""
    match = _HEADER.fullmatch(cell.strip())
    if match is None:
        raise ForeignFileError(
            f"found the first cell {cell[:60]!r}; allowed: (PDH-CSV 4.0), followed by (ZONE)(MINUTES)", line
        )
    minutes = match["minutes"]
    if settings.zone is None and minutes is None:
        facts.zone_assumed = True
        why = "the file has no time zone (typeperf writes none)"
        if match["unreadable"]:
            why = f"the time zone in its header cannot be read ({match['unreadable'][:40]})"
        facts.note(f"{why}; UTC was assumed: give --zone if that is wrong")
    if settings.zone is None:
        facts.utc_offset_s = -60 * int(minutes or 0)
    return LocalClock(settings.zone, 60.0 * int(minutes or 0), pace, facts)


def _samples(
    columns: Sequence[CounterColumn],
    row: Sequence[str],
    time_s: float,
    covered_s: tuple[float, float],
    line: int,
) -> Iterator[Sample]:
    """Yield the samples of a row.

    Args:
        columns: columns of the log.
        row: cells of the row.
        time_s: time of the row in UTC seconds.
        covered_s: seconds that its rates cover (PDH's rates cover the time since the last reading), and
            seconds that its other values cover.
        line: line of the row.
    """
    time_ns = round(time_s * 1e9)
    for column in columns:
        means, value = column.means, _number(row[column.at], line)
        if value is not None and value < 0:
            column.negative += 1
            value = None
        if value is None and not column.begun:
            continue  # an instance that does not exist yet
        column.begun = True
        interval_s = covered_s[means.instant]
        weight = None
        if column.weight_at is not None:
            rate = _number(row[column.weight_at], line)
            weight = None if rate is None else max(0.0, rate) * interval_s
        if means.metric.endswith("_latency_s") and (value == 0 or weight == 0):
            value = None  # without operations, Windows writes a latency of 0
        shown = None if value is None else bounds.share(value * means.scale + means.offset)
        yield Sample(time_ns, interval_s, column.host, means.metric, column.instance, shown, weight)


def _number(text: str, line: int) -> float | None:
    """Return the value of a cell; None if it is blank."""
    plain = text.strip()
    if not plain or numerals.is_none(plain):
        return None
    try:
        return numerals.strict(plain.replace(",", ".") if "." not in plain else plain)
    except ValueError as error:
        raise ForeignFileError(
            f"found {plain[:40]!r} where a number should be; allowed: a number, or nothing where "
            "none was read",
            line,
        ) from error


def _note(columns: Sequence[CounterColumn], facts: FileFacts) -> None:
    never = [one.path for one in columns if not one.begun]
    if never:
        facts.note(f"no value in the whole file: {counted(len(never), 'counter')}, such as {never[0]}")
    negative = sum(one.negative for one in columns)
    if negative:
        values = counted(negative, "value")
        facts.note(f"{values} below 0 (perfmon could not read the counter): not measured")


# ---- which columns are used, and what each becomes --------------------------------------------------------


def _sql_instance(name: str) -> str | None:
    """Return the SQL Server instance of an object: ``""`` is the default one; None for other objects."""
    named = NAMED_INSTANCE.match(name)
    if named:
        return named[1]
    return "" if name.casefold().startswith("sqlserver:") else None


PATH = re.compile(
    r"(?:\\\\(?P<host>[^\\]+))?\\(?P<object>[^\\(]+)(?:\((?P<instance>.*)\))?\\(?P<counter>[^\\]+)", re.DOTALL
)
"""Pattern of a path. An instance may contain a path itself (a mount point)."""


def _known(paths: Iterable[str], names: Mapping[str, frozenset[int]]) -> Iterator[CounterColumn]:
    for at, path in enumerate(paths, 1):
        match = PATH.fullmatch(path.strip())
        if match is None:
            continue
        parts = match.groupdict(default="")
        of, logged = parts["object"].strip(), parts["instance"]
        ours = english(of, parts["counter"].strip(), names)
        if ours is None or logged.casefold().endswith(f",{TOTAL}"):  # the sum of one NUMA node
            continue
        name, counter = ours
        becomes = placed(name, counter, logged)
        if becomes is None:
            continue
        means, instance = becomes
        yield CounterColumn(
            at=at,
            path=path,
            host=parts["host"],
            logged=logged,
            server=_sql_instance(of),
            object=name,
            counter=counter,
            means=means,
            instance=instance,
        )


def _name_servers(known: Sequence[CounterColumn]) -> None:
    """Prefix the instances of all SQL Servers of a machine with their names, except the default one."""
    servers: dict[str, set[str | None]] = {}
    for one in known:
        servers.setdefault(one.host, set()).add(one.server)
    for one in known:
        if one.server and len(servers[one.host] - {None}) > 1:
            one.instance = f"{one.server}/{one.instance}"


def columns_of(
    paths: Sequence[str], names: Mapping[str, frozenset[int]], facts: FileFacts
) -> list[CounterColumn]:
    """Return the columns of known counters. ``facts`` gets the cores and the ignored counters.

    Args:
        paths: cells of the header after the first.
        names: counter names by registry index, if they were given.
        facts: receives facts (see ``record.FileFacts``).

    Raises:
        ForeignFileError: no counter is known.
    """
    known = list(_known(paths, names))
    if not known:
        shown = "; ".join(path for path in paths[:SHOWN]) or "no counter at all"
        raise ForeignFileError(
            f"no counter was recognised; found {shown}; counter names are known in "
            f"{', '.join(LANGUAGES)}; for another language, give Windows' list of names with --names (on "
            "that system, in PowerShell: (Get-ItemProperty 'HKLM:\\SOFTWARE\\Microsoft\\Windows "
            "NT\\CurrentVersion\\Perflib\\CurrentLanguage').Counter > names.txt), or describe the "
            "columns: --kind csv --map MAPPING",
            1,
        )
    _name_servers(known)
    for host in dict.fromkeys(one.host for one in known):
        facts.facts(host).update(os="Windows", data_io="kernel")
    for host in dict.fromkeys(one.host for one in known if one.means.metric == "mem.available_bytes"):
        facts.facts(host)["not_measured"] = [dict(SIZE_OF_MEMORY)]
    places = {(one.host, one.object, one.logged, one.counter): one.at for one in known}
    used = _without_same_disks(_first_of_each(known), facts)
    for one in used:
        if one.means.weight:
            one.weight_at = places.get((one.host, one.object, one.logged, one.means.weight))
    for host in dict.fromkeys(one.host for one in used if one.object == HYPERVISOR):
        facts.note(
            f"{host} is a Hyper-V host: its CPU is what the hypervisor reports, as Processor shows the root "
            "partition only"
        )
    _cores(used, facts)
    _left_out(paths, known, facts)
    return used


def _first_of_each(known: Iterable[CounterColumn]) -> list[CounterColumn]:
    """Return one counter of each series.

    Of several (Available Bytes and MBytes), it is the one with the lowest rank.
    """
    best: dict[tuple[str, str, str], CounterColumn] = {}
    for one in known:
        key = one.host, one.means.metric, one.instance
        if key not in best or one.means.rank < best[key].means.rank:
            best[key] = one
    return list(best.values())


def _without_same_disks(known: Sequence[CounterColumn], facts: FileFacts) -> list[CounterColumn]:
    """Return each drive and its disks once.

    The sum of all disks is used only if nothing else was recorded.
    """
    disks = [one for one in known if one.object in _DISKS]
    each = [one for one in disks if one.logged.casefold() != TOTAL]
    sums = {one.host: one.object for one in disks if one.host not in {other.host for other in each}}
    each += [one for one in disks if sums.get(one.host) == one.object]
    for host in sums:
        facts.note(
            f"for the disks of {host or 'the machine'} only _Total was logged, which hides a slow disk "
            "among the others: log \\LogicalDisk(*)\\*"
        )
    kept = {one.at: one for one in _reported_once(each, facts)}
    return [kept.get(one.at, one) for one in known if one.object not in _DISKS or one.at in kept]


def _reported_once(disks: Sequence[CounterColumn], facts: FileFacts) -> Iterator[CounterColumn]:
    """Return the disk columns without physical disks ("1 L: M:") whose drives show the same I/O."""
    drives: dict[tuple[str, str], dict[str, CounterColumn]] = {}
    physical: dict[tuple[str, str], list[CounterColumn]] = {}
    for one in disks:
        host, name = one.host, one.logged
        if one.object == "LogicalDisk":
            drives.setdefault((host, name.upper()), {})[one.means.metric] = one
            yield one
        else:
            physical.setdefault((host, name), []).append(one)
    for (host, name), columns in physical.items():
        above = [drives.get((host, letter.upper()), {}) for letter in _DRIVE.findall(name)]
        yield from _beside(columns, above, f"PhysicalDisk {name}{host and f' of {host}'}", facts)


def _beside(
    columns: Sequence[CounterColumn],
    above: Sequence[Mapping[str, CounterColumn]],
    whose: str,
    facts: FileFacts,
) -> Iterator[CounterColumn]:
    """Return columns of a physical disk that its drives lack.

    Those of a single drive get the drive's name.
    """
    if not above or not all(above):
        yield from columns
        return
    more = [one for one in columns if any(one.means.metric not in drive for drive in above)]
    names = ", ".join(one.counter for one in more[:SHOWN]) + (", ..." if len(more) > SHOWN else "")
    if not more:
        facts.note(f"{whose} was ignored, because its logical drives show the same I/O")
    elif len(above) == 1:
        drive = next(iter(above[0].values())).instance
        facts.note(
            f"{whose}: {names} were used for LogicalDisk {drive}, which lacks them; the rest was "
            "ignored, because it shows the same I/O"
        )
        yield from (replace(one, instance=drive) for one in more)
    else:
        facts.note(
            f"{whose}: {names} were not logged for each of its drives, so it is listed beside them and "
            "its I/O appears twice: log \\LogicalDisk(*)\\*"
        )
        yield from columns


def _cores(columns: Iterable[CounterColumn], value: FileFacts) -> None:
    """Return the number of cores of each machine, if they were logged individually."""
    cores: dict[str, list[str]] = {}
    for column in columns:
        if column.means.metric == "cpu.busy_ratio" and column.instance and column.object not in PARTS:
            cores.setdefault(column.host, []).append(column.instance)
    for host, names in cores.items():
        facts = value.facts(host)
        facts["cores"] = len(names)
        if all(name.isdecimal() for name in names):
            facts["usable_cores"] = sorted(map(int, names))


def _left_out(paths: Sequence[str], known: Sequence[CounterColumn], facts: FileFacts) -> None:
    used = {one.at for one in known}
    rest = [path for at, path in enumerate(paths, 1) if at not in used]
    if rest:
        facts.note(
            f"ignored {len(rest):,} of {len(paths):,} counters that Pinchpoint does not use, such as "
            f"{rest[0] or 'one without a name'}"
        )


def registry_names(lines: Iterable[str]) -> dict[str, frozenset[int]]:
    r"""Return a system's own list of counter names: indexes and names on alternating lines.

    ``(Get-ItemProperty 'HKLM:\SOFTWARE\Microsoft\Windows NT\CurrentVersion\Perflib\
    CurrentLanguage').Counter`` prints this list in PowerShell.

    Returns:
        Name (``folded``) -> its indexes.

    Raises:
        ForeignFileError: the file is not such a list.
    """
    result: dict[str, set[int]] = {}
    index: int | None = None
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if index is not None:
            result.setdefault(folded(text), set()).add(index)
            index = None
        elif _INDEX.fullmatch(text):
            index = int(text)
        elif text:
            raise ForeignFileError(
                f"found {text[:60]!r} where the index of a counter name should be; allowed: an index and a "
                "name in turn, a line each, as the registry's Perflib\\CurrentLanguage, value Counter, has "
                "them",
                number,
            )
    return {name: frozenset(indices) for name, indices in result.items()}

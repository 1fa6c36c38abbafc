"""Any CSV, by a mapping that says which column is what."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from pinchpoint_collectors.imports.record import (
    CsvMapping,
    ForeignFileError,
    Found,
    MappedColumn,
    Settings,
)
from pinchpoint_collectors.record import Sample

METRICS = frozenset(
    {
        *(
            f"cpu.{name}"
            for name in ("busy_ratio", "steal_ratio", "wait_ratio", "run_queue", "waiting_threads")
        ),
        *(
            f"mem.{name}"
            for name in (
                "available_bytes",
                "available_ratio",
                "paged_in_bytes_per_s",
                "paged_out_bytes_per_s",
            )
        ),
        *(f"disk.{way}s_per_s" for way in ("read", "write", "transfer")),
        "disk.flushes_per_s",
        *(f"disk.{way}_bytes_per_s" for way in ("read", "write")),
        *(f"disk.{way}_latency_s" for way in ("read", "write", "flush", "transfer")),
        "disk.outstanding",
        "disk.busy_ratio",
        *(f"net.{name}_bytes_per_s" for name in ("received", "sent", "speed")),
        "net.errors_per_s",
        *(f"pressure.{name}_ratio" for name in ("cpu", "io", "memory")),
    }
)
"""What a column may be; ``db.*`` and ``search.*`` may have any name."""

_OWN = re.compile(r"(db|search)\.[a-z0-9_.]+")


def is_metric(name: str) -> bool:
    """Whether a mapping may name this metric."""
    return name in METRICS or _OWN.fullmatch(name) is not None


class MappedCsv:
    """Format ``csv``."""

    name = "csv"
    says = "any CSV, with a mapping of its columns (--kind csv --map MAPPING)"

    def recognises(self, head: str) -> bool:  # noqa: ARG002 -- nothing tells a CSV from text; --kind does
        """Never by itself."""
        return False

    def read(self, lines: Iterable[str], settings: Settings, found: Found) -> Iterator[Sample]:
        """One sample per mapped cell; see ``Format.read``."""
        mapping = settings.mapping
        if mapping is None:
            raise ForeignFileError(
                "of a CSV nobody knows what its columns are: give --map MAPPING, a YAML file that says so"
            )
        reader = csv.reader(lines, delimiter=mapping.delimiter)
        try:
            header = [cell.strip("\ufeff ") for cell in next(reader, [])]
            places = _places(header, mapping)
            last_s: dict[str, float] = {}
            for row in reader:
                if any(cell.strip() for cell in row):
                    yield from _row(row, reader.line_num, places, mapping, settings, found, last_s)
        except csv.Error as error:
            raise ForeignFileError(f"no line of a CSV: {error}", reader.line_num) from error


def _places(header: Sequence[str], mapping: CsvMapping) -> Mapping[str, int]:
    """Column -> its place. Raises ``ForeignFileError`` that names every column the mapping wants in vain."""
    places = {name: at for at, name in enumerate(header)}
    wanted = [mapping.time, *([mapping.host_column] if mapping.host_column else []), *mapping.columns]
    wanted += [column.weight for column in mapping.columns.values() if column.weight]
    missing = [name for name in dict.fromkeys(wanted) if name not in places]
    if missing:
        raise ForeignFileError(
            f"no column {', '.join(map(repr, missing))}, which the mapping names; there are "
            f"{', '.join(map(repr, header[:30]))}; mind the delimiter ({mapping.delimiter!r})",
            1,
        )
    return places


def _row(
    row: Sequence[str],
    line: int,
    places: Mapping[str, int],
    mapping: CsvMapping,
    settings: Settings,
    found: Found,
    last_s: dict[str, float],
) -> Iterator[Sample]:
    if len(row) < len(places):
        raise ForeignFileError(f"found {len(row)} cells, the header has {len(places)}", line)
    time_s = _time_s(row[places[mapping.time]].strip(), mapping, settings, found, line)
    host = row[places[mapping.host_column]].strip() if mapping.host_column else mapping.host or ""
    found.facts(host)
    before_s = last_s.get(host)
    last_s[host] = time_s
    interval_s = mapping.interval_s
    if interval_s is None:
        if before_s is None:
            return  # what the first row covers nobody knows
        interval_s = time_s - before_s
        if interval_s <= 0:
            raise ForeignFileError(
                "the time is not later than that of the row before; sort the file by time, or say how long a "
                "row is (interval: 15s in the mapping)",
                line,
            )
    for name, column in mapping.columns.items():
        value = _number(row[places[name]], mapping, line)
        weight = None
        if column.weight:
            rate = _number(row[places[column.weight]], mapping, line)
            weight = None if rate is None else rate * interval_s
        yield _sample(column, time_s, interval_s, host, value, weight)


def _sample(
    column: MappedColumn,
    time_s: float,
    interval_s: float,
    host: str,
    value: float | None,
    weight: float | None,
) -> Sample:
    none = column.metric.endswith("_latency_s") and (weight == 0 or (weight is None and value == 0))
    ours = None if value is None or none else value * column.scale + column.offset
    return Sample(
        round(time_s * 1e9), interval_s, column.host or host, column.metric, column.instance, ours, weight
    )


def _number(text: str, mapping: CsvMapping, line: int) -> float | None:
    """A cell's value; None where it is blank, or says so."""
    plain = text.strip().replace("\u00a0", "")
    if not plain or plain.lower() in {"nan", "null", "none", "n/a", "-"}:
        return None
    if mapping.decimal != ".":
        plain = plain.replace(".", "").replace(mapping.decimal, ".")
    try:
        return float(plain)
    except ValueError as error:
        raise ForeignFileError(
            f"found {text[:40]!r} where a number should be; mind the decimal mark ({mapping.decimal!r})", line
        ) from error


def _time_s(text: str, mapping: CsvMapping, settings: Settings, found: Found, line: int) -> float:
    try:
        if mapping.time_format == "unix":
            return float(text)
        moment = (
            datetime.fromisoformat(text)
            if mapping.time_format is None
            else datetime.strptime(text, mapping.time_format)  # noqa: DTZ007 -- it gets its zone below
        )
    except ValueError as error:
        allowed = mapping.time_format or "ISO 8601"
        raise ForeignFileError(
            f"found the time {text[:40]!r}; allowed: {allowed} (format, under time, in the mapping)", line
        ) from error
    if moment.tzinfo is not None:
        return moment.timestamp()
    if settings.zone is None:
        found.zone_assumed = True
        found.note("its times name no zone and were taken for UTC; --zone says which they are")
    return moment.replace(tzinfo=settings.zone or UTC).timestamp()

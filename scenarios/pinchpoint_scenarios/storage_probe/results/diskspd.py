"""Reads DiskSpd's XML (``-Rxml``) of the versions 2.0.17 to 2.3."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from lxml import etree  # type: ignore[import-untyped] # it ships no types

from pinchpoint_collectors.common.legible import ForeignFileError

from ..cell import Cell, CellFigures, CellSeries, shape_name
from .record import LIMITED, NO_DIRECT, CellResult, ResultFile, number, percentiles, queue_depth, whole

Element = Any
"""lxml has no type hints."""
_SHORTEST_STEPS = 5
_PARSER = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True)


class DiskSpdXml:
    """Reads DiskSpd's XML: each time span is one cell.

    Without ``-L`` the XML has no latencies, and without ``-D`` no rates over time.
    """

    name = "diskspd"
    says = "DiskSpd's XML (diskspd -Rxml -L -D)"
    suite = "diskspd"

    def recognises(self, head: str) -> bool:
        """Return whether the text has the root and the first element of DiskSpd.

        Other text may come first.
        """
        return bool(re.search(r"<Results>\s*<(System|Profile|TimeSpan)>", head))

    def read(self, text: str) -> ResultFile:
        root = _root(text)
        file = ResultFile("DiskSpd", root.findtext("System/Tool/Version"))
        file.host = root.findtext("System/ComputerName") or None
        asked = root.findall("Profile/TimeSpans/TimeSpan")
        spans = root.findall("TimeSpan")
        if not spans:
            raise ForeignFileError(
                "it has no <TimeSpan> with results: the run did not end; run DiskSpd again"
            )
        if len(asked) < len(spans):
            raise ForeignFileError(
                f"it describes {len(asked)} time spans in <Profile> and has results of {len(spans)}; both "
                "are needed to know what was measured: export the whole XML"
            )
        started = _time(root.findtext("System/RunTime"))
        for profile, span in zip(asked, spans, strict=False):
            file.results.append(_span(profile, span, started, file))
        return file


def _root(text: str) -> Element:
    begins = text.find("<Results>")
    ends = text.rfind("</Results>")
    if begins < 0:
        raise ForeignFileError(
            "no <Results> was found; DiskSpd writes it with -Rxml (a report in text has too few figures)"
        )
    if ends < begins:
        raise ForeignFileError(
            "it ends before </Results>: the file is cut off; run DiskSpd again, or copy the whole file"
        )
    try:
        return etree.fromstring(text[begins : ends + len("</Results>")].encode(), _PARSER)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise ForeignFileError(
            f"it cannot be read as XML: {error}; run DiskSpd again, or copy the whole file"
        ) from error


def _span(profile: Element, span: Element, started: datetime | None, file: ResultFile) -> CellResult:
    """Return the result of one time span. Raises ForeignFileError."""
    targets = profile.findall("Targets/Target")
    if not targets:
        raise ForeignFileError(
            "a <TimeSpan> of <Profile> has no <Target>: the file is damaged; run DiskSpd again"
        )
    cell = _cell(profile, targets)
    for target in targets:
        path = target.findtext("Path") or ""
        if path and path not in file.paths:
            file.paths.append(path)
        if not _direct(target):
            file.note(NO_DIRECT.format(what=cell.name, how="without -Sh, -Su or -h"))
    if (why := span.findtext("Error")) is not None:
        return CellResult(cell, None, started, " ".join(why.split()))
    done = span.findall("Thread/Target")
    sizes = [whole(one.findtext("FileSize"), "FileSize") for one in done if one.findtext("FileSize")]
    file.size_bytes = max([*sizes, file.size_bytes or 0]) or None
    rates = [one for one in targets if number(one.findtext("Throughput") or 0, "Throughput")]
    if rates:
        unit = (
            "I/Os per second"
            if rates[0].find("Throughput[@unit='IOPS']") is not None
            else "bytes per millisecond"
        )
        rate = f"{rates[0].findtext('Throughput')} {unit} for each thread"
        return CellResult(cell, None, started, LIMITED.format(rate=rate))
    return CellResult(cell, _measured(span, done), started)


def _measured(span: Element, done: Sequence[Element]) -> CellFigures:
    seconds = number(span.findtext("TestTimeSeconds"), "TestTimeSeconds")
    if not seconds or not done:
        raise ForeignFileError(
            "<TestTimeSeconds> is 0, or no <Thread> reports a <Target>; run DiskSpd for longer (-d)"
        )
    counts = {
        name: sum(number(one.findtext(name), name) for one in done)
        for name in ("ReadCount", "WriteCount", "ReadBytes", "WriteBytes")
    }
    many = int(counts["ReadCount"] + counts["WriteCount"])
    mean, times, longest = _latencies(span, many)
    return CellFigures(
        seconds=seconds,
        reads_per_s=counts["ReadCount"] / seconds,
        writes_per_s=counts["WriteCount"] / seconds,
        read_bytes_per_s=counts["ReadBytes"] / seconds,
        write_bytes_per_s=counts["WriteBytes"] / seconds,
        times_ns=times,
        mean_s=mean,
        max_s=longest,
        series=_course(span),
    )


def _latencies(span: Element, many: int) -> tuple[float | None, Mapping[int, int] | None, float | None]:
    """Return mean latency in seconds, latency in ns -> number of I/Os, and longest latency in seconds.

    None means not measured.
    """
    mean = span.findtext("Latency/AverageTotalMilliseconds")
    values: dict[float, float] = {}
    for bucket in span.iterfind("Latency/Bucket"):
        value = bucket.findtext("TotalMilliseconds")
        if value is not None:
            percent = number(bucket.findtext("Percentile"), "Percentile")
            values[percent] = number(value, "TotalMilliseconds") / 1000
    longest = values.get(100.0)
    known = {percent: value for percent, value in values.items() if 0 < percent <= 100}
    times = percentiles(known, many, longest)
    return (
        number(mean, "AverageTotalMilliseconds") / 1000 if mean is not None else None,
        times or None,
        longest,
    )


def _course(span: Element) -> CellSeries | None:
    """Return I/Os per second and mean latency over time.

    The latency of a step is the mean over reads and writes, weighted by their number.
    """
    ends, rates, times = [], [], []
    for bucket in span.iterfind("Iops/Bucket"):
        reads, writes = (number(bucket.get(name), f"Bucket {name}") for name in ("Read", "Write"))
        ends.append(number(bucket.get("SampleMillisecond"), "Bucket SampleMillisecond") / 1000)
        rates.append(reads + writes)
        known = [
            (many, number(bucket.get(name), name) / 1000)
            for many, name in ((reads, "ReadAvgLatencyMilliseconds"), (writes, "WriteAvgLatencyMilliseconds"))
            if many and bucket.get(name) is not None
        ]
        weight = sum(many for many, _ in known)
        mean_s = sum(many * each_s for many, each_s in known) / weight if weight else None
        times.append(mean_s or None)  # without -L the mean is 0, which is no possible latency
    if len(rates) < _SHORTEST_STEPS or not ends[0]:
        return None
    return CellSeries(ends[0], tuple(rates), tuple(times))


def _cell(profile: Element, targets: Sequence[Element]) -> Cell:
    """Return the cell of a time span. Fields in which the targets differ are None."""
    block = _common([whole(one.findtext("BlockSize"), "BlockSize") for one in targets])
    reads = _common([1 - number(one.findtext("WriteRatio") or 0, "WriteRatio") / 100 for one in targets])
    randoms = _common([_random_ratio(one) for one in targets])
    outstanding = _outstanding(profile, targets)
    through = all(
        one.findtext("WriteThrough") == "true" or one.find("DisableAllCache") is not None for one in targets
    )
    log = reads == 0 and randoms == 0 and outstanding == 1 and through
    if block is None or reads is None or randoms is None:
        return Cell("several kinds of I/O", block, reads, randoms, outstanding)
    return Cell(
        shape_name(block, reads, randoms), block, reads, randoms, outstanding, "log" if log else "data"
    )


_Figure = TypeVar("_Figure", int, float)


def _common(values: Sequence[_Figure]) -> _Figure | None:
    return values[0] if len(set(values)) == 1 else None


def _random_ratio(target: Element) -> float:
    if target.find("Random") is None:
        return 0.0
    return number(target.findtext("RandomRatio") or 100, "RandomRatio") / 100


def _outstanding(profile: Element, targets: Sequence[Element]) -> int | None:
    """Return the number of simultaneous I/Os.

    Each thread of ``-F`` does I/O on all targets, each thread of ``-t`` on one target.
    """
    each = [whole(one.findtext("RequestCount") or 2, "RequestCount") for one in targets]
    if threads := whole(profile.findtext("ThreadCount") or 0, "ThreadCount"):
        requests = whole(profile.findtext("RequestCount") or 0, "RequestCount")
        return queue_depth(threads * (requests or sum(each)))
    per_file = [whole(one.findtext("ThreadsPerFile") or 1, "ThreadsPerFile") for one in targets]
    return queue_depth(sum(many * deep for many, deep in zip(per_file, each, strict=True)))


def _direct(target: Element) -> bool:
    """Return whether the I/O bypasses the cache of the operating system (``-Su``, ``-Sh`` or ``-h``)."""
    return any(target.findtext(name) == "true" for name in ("DisableOSCache", "DisableAllCache"))


def _time(text: str | None) -> datetime | None:
    """Return the time from ``2018/10/18 21:39:04 UTC``; None if it is empty or not a time.

    Versions before 2.0.21 write no leading zeros.
    """
    try:
        return datetime.strptime((text or "").strip(), "%Y/%m/%d %H:%M:%S UTC").replace(tzinfo=UTC)
    except ValueError:
        return None

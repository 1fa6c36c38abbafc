"""Reads fio's JSON (``--output-format=json`` or ``json+``) of the versions 2 and 3."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

from pinchpoint_collectors.common import legible
from pinchpoint_collectors.common.legible import ForeignFileError

from ..cell import Cell, CellFigures, shape_name
from .record import LIMITED, NO_DIRECT, CellResult, ResultFile, number, percentiles, queue_depth, whole

_ONE_AT_A_TIME = frozenset({"sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "splice"})
"""I/O engines with one outstanding I/O for any ``iodepth``; ``psync`` is the default."""
_WAYS = {
    "read": (1.0, 0.0),
    "write": (0.0, 0.0),
    "randread": (1.0, 1.0),
    "randwrite": (0.0, 1.0),
    "rw": (None, 0.0),
    "readwrite": (None, 0.0),
    "randrw": (None, 1.0),
}
"""Value of ``rw`` -> share of reads (None for a mix) and share of random I/O."""
_SIZE = re.compile(r"(\d+)([kmgt]?)i?b?", re.IGNORECASE)
_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_LIMITS = ("rate", "rate_iops", "thinktime")
_FALSE = ("0", "false")
_NANOSECONDS = 1e9
_YEAR_2242 = 2**33


class FioJson:
    """Reads fio's JSON. Jobs of one name and group are one cell, because they ran together (``numjobs``)."""

    name = "fio"
    says = "fio's JSON (--output-format=json or json+)"
    suite = "fio"

    def recognises(self, head: str) -> bool:
        """Return whether the first key of the JSON is that of fio. Other text may stand before the JSON."""
        return bool(re.search(r'\{\s*"fio version"\s*:', head))

    def read(self, text: str) -> ResultFile:
        answer = _json(text)
        file = ResultFile("fio", str(answer.get("fio version") or "") or None)
        jobs = answer.get("jobs")
        if not isinstance(jobs, list) or not jobs or not all(isinstance(job, dict) for job in jobs):
            raise ForeignFileError(
                "it has no list `jobs`; allowed: what fio writes with --output-format=json"
            )
        given = answer.get("global options")
        common = given if isinstance(given, dict) else {}
        stamp = answer.get("timestamp")
        started = (
            datetime.fromtimestamp(stamp, UTC) if isinstance(stamp, int) and 0 < stamp < _YEAR_2242 else None
        )
        groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
        for job in jobs:
            groups.setdefault((str(job.get("groupid")), str(job.get("jobname"))), []).append(job)
        for (group, name), same in groups.items():
            file.results.append(_result(name, same, common, started, file))
            if sum(each == group for each, _ in groups) > 1:
                file.note(
                    "jobs of one group ran at the same time, so each shows what the others left of the disk: "
                    + ", ".join(one for each, one in groups if each == group)
                )
        return file


def _json(text: str) -> Mapping[str, Any]:
    """Return the JSON as an object. Raises ForeignFileError."""
    begins = re.search(r'\{\s*"fio version"', text)
    if begins is None:
        raise ForeignFileError(
            'no `"fio version"` was found; allowed: what fio writes with --output-format=json'
        )
    try:
        answer, _ = json.JSONDecoder().raw_decode(legible.whole([text[begins.start() :]]))
    except (ValueError, RecursionError) as error:
        line = text.count("\n", 0, begins.start()) + getattr(error, "lineno", 1)
        raise ForeignFileError(
            f"it cannot be read as JSON: {getattr(error, 'msg', error)}: the file is cut off or damaged; run "
            "again",
            line,
        ) from error
    return cast("Mapping[str, Any]", answer)


def _result(
    name: str,
    jobs: Sequence[Mapping[str, Any]],
    common: Mapping[str, Any],
    started: datetime | None,
    file: ResultFile,
) -> CellResult:
    own = jobs[0].get("job options")
    options = {**common, **own} if isinstance(own, dict) else dict(common)
    for place in ("filename", "directory"):
        path = str(options.get(place) or "")
        if path and path not in file.paths:
            file.paths.append(path)
    if match := _SIZE.fullmatch(str(options.get("size", ""))):
        file.size_bytes = whole(match[1], "size") * _UNITS[match[2].lower()]
    failed = next((job["error"] for job in jobs if job.get("error")), None)
    ways = [_way(job, way, name) for job in jobs for way in ("read", "write")]
    cell = _cell(name, options, len(jobs))
    if options and str(options.get("direct", "0")) == "0":
        file.note(NO_DIRECT.format(what=name, how="without direct=1"))
    if failed is not None:
        return CellResult(cell, None, started, f"fio: error {failed} in job {name}")
    if limits := [f"{key}={options[key]}" for key in _LIMITS if str(options.get(key, "0")) != "0"]:
        return CellResult(cell, None, started, LIMITED.format(rate=", ".join(limits)))
    if not any(way["ios"] or way["bytes_per_s"] for way in ways):
        return CellResult(cell, None, started, f"job {name} read and wrote nothing")
    return CellResult(cell, _measured(ways, file), started)


def _way(job: Mapping[str, Any], way: str, name: str) -> dict[str, Any]:
    """Return the figures of one direction in base units. Raises ForeignFileError."""
    its = job.get(way)
    if not isinstance(its, dict):
        raise ForeignFileError(f"job {name} has no `{way}`; run fio again with --output-format=json")

    def value(key: str, of: Mapping[str, Any] = its) -> float:
        return number(of.get(key), f"{name}: {way}: {key}")

    seconds = value("runtime") / 1000
    unit = _NANOSECONDS if "lat_ns" in its else 1e6  # microseconds in versions before 3
    latency, clat = (its.get(f"{each}_ns", its.get(each)) for each in ("lat", "clat"))
    latency, clat = (each if isinstance(each, dict) else {} for each in (latency, clat))
    ios = value("total_ios") if "total_ios" in its else value("iops") * seconds
    rate = value("bw_bytes") if "bw_bytes" in its else value("bw") * 1024
    shares = (latency if latency.get("percentile") or latency.get("bins") else clat) or {}
    return {
        "name": way,
        "ios": ios,
        "iops": value("iops"),
        "bytes_per_s": rate,
        "seconds": seconds,
        "mean_s": value("mean", latency) / unit if ios and "mean" in latency else None,
        "max_s": value("max", latency) / unit if ios and "max" in latency else None,
        "bins": _figures(shares.get("bins"), name) if unit == _NANOSECONDS else {},
        "percentiles": {
            percent: each / unit
            for percent, each in _figures(shares.get("percentile"), name).items()
            if 0 < percent <= 100
        },
        "completion": shares is clat,
    }


def _figures(given: object, name: str) -> dict[float, float]:
    """Return percentile -> value from an object such as ``{"99.0": 1234}``. Raises ForeignFileError."""
    if not given:
        return {}
    if not isinstance(given, dict):
        raise ForeignFileError(
            f"job {name}: found {str(given)[:60]!r} in place of its latencies; run fio again"
        )
    return {number(at, f"{name}: latency"): number(each, f"{name}: latency") for at, each in given.items()}


def _measured(ways: Sequence[Mapping[str, Any]], file: ResultFile) -> CellFigures:
    """Combine the jobs of a cell: rates are added and means are weighted.

    Percentiles are known only from histogram bins, or if a single job had one direction.
    """
    done = [way for way in ways if way["ios"]]
    many = sum(way["ios"] for way in done)
    times: dict[int, int] = {}
    if done and all(way["bins"] for way in done):
        for way in done:
            for at, count in way["bins"].items():
                times[int(at)] = times.get(int(at), 0) + int(count)
    elif len(done) == 1 and done[0]["percentiles"]:
        times = percentiles(done[0]["percentiles"], int(many), done[0]["max_s"])
    elif len(done) > 1:
        file.note(
            "percentiles of reads and writes, or of several jobs, cannot be put together: not measured "
            "(fio reports all I/Os with --output-format=json+)"
        )
    if times and any(way["completion"] for way in done):
        file.note("percentiles are of completion latency (clat), which lacks the time to submit an I/O")
    means = [(way["mean_s"], way["ios"]) for way in done if way["mean_s"] is not None]
    known = sum(count for _, count in means)

    def rate(of: str, figure: str) -> float:
        return float(sum(way[figure] for way in ways if way["name"] == of))

    return CellFigures(
        seconds=max(way["seconds"] for way in ways),
        reads_per_s=rate("read", "iops"),
        writes_per_s=rate("write", "iops"),
        read_bytes_per_s=rate("read", "bytes_per_s"),
        write_bytes_per_s=rate("write", "bytes_per_s"),
        times_ns=times or None,
        mean_s=sum(mean * count for mean, count in means) / known if known else None,
        max_s=max((way["max_s"] for way in done if way["max_s"] is not None), default=None),
    )


def _cell(name: str, options: Mapping[str, Any], jobs: int) -> Cell:
    """Return the cell that a job's options describe.

    Files before version 2.2 have no options, so the cell then has only a name.
    """
    way = str(options.get("rw") or options.get("readwrite") or ("read" if options else "")).partition(":")[0]
    reads, random = _WAYS.get(way, (None, None))
    if way in ("rw", "readwrite", "randrw"):
        mixed = options.get("rwmixread")
        written = options.get("rwmixwrite")
        share = number(mixed, "rwmixread") if mixed else 100 - number(written or 50, "rwmixwrite")
        reads = min(100.0, max(0.0, share)) / 100
    if random and options.get("percentage_random"):
        share = number(str(options["percentage_random"]).partition(",")[0], "percentage_random")
        random = min(100.0, share) / 100
    block = _block(options)
    outstanding = _outstanding(options, jobs) if options else None
    if block is None or reads is None or random is None:
        return Cell(name, block, reads, random, outstanding)
    flushed = _flushed(options) and not reads
    shape = shape_name(block, reads, random)
    log = flushed and outstanding == 1 and not random
    return Cell(
        f"{shape}, flushed" if flushed else shape, block, reads, random, outstanding, "log" if log else "data"
    )


def _block(options: Mapping[str, Any]) -> int | None:
    """Return the size of all I/Os in bytes; None if there are several sizes or none is known."""
    if any(key in options for key in ("bsrange", "bssplit", "blocksize_range")):
        return None
    text = str(options.get("bs") or options.get("blocksize") or ("4k" if options else ""))
    sizes = {part.strip() for part in text.split(",") if part.strip()}
    match = _SIZE.fullmatch(sizes.pop()) if len(sizes) == 1 else None
    if match:
        return whole(match[1], "bs") * _UNITS[match[2].lower()] or None
    return None


def _outstanding(options: Mapping[str, Any], jobs: int) -> int | None:
    many = max(jobs, whole(options.get("numjobs", 1), "numjobs"))
    depth = whole(options.get("iodepth", 1), "iodepth")
    return queue_depth(many * (1 if options.get("ioengine", "psync") in _ONE_AT_A_TIME else depth))


def _flushed(options: Mapping[str, Any]) -> bool:
    """Return whether each write is on the disk before the next write begins."""
    if str(options.get("sync", "0")) not in (*_FALSE, "none"):
        return True
    return any(str(options.get(key, "0")) == "1" for key in ("fsync", "fdatasync"))

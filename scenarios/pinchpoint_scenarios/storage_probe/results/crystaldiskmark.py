"""Reads the text that CrystalDiskMark saves (File, Save), of the versions 5 to 9."""

from __future__ import annotations

import re
from datetime import datetime

from pinchpoint_collectors.common.legible import ForeignFileError

from ..cell import Cell, CellFigures, size_name
from .record import CellResult, ResultFile, number, queue_depth, whole

_HEAD = re.compile(r"CrystalDiskMark\s+(\d+(?:\.\d+)*)")
_BLOCKS = re.compile(
    r"^\s*(?P<kind>SEQ|RND|Sequential|Random)\s+(?P<size>\d+)\s*(?P<unit>[KM]iB)\s*"
    r"\(Q=\s*(?P<queues>\d+),\s*T=\s*(?P<threads>\d+)\)\s*:(?P<rest>.*)$"
)
"""Row of a result since version 7: ``Sequential 1MiB (Q=  8, T= 1):``, since 8: ``SEQ    1MiB (Q=  8, T=
1):``. The rows are below a heading such as ``[Read]``."""
_NAMED = re.compile(
    r"^\s*(?P<kind>Sequential|Random) (?P<way>Read|Write)(?: (?P<size>\d+)(?P<unit>[KM]i?B))?"
    r"\s*\((?:Q=\s*(?P<queues>\d+),\s*)?T=\s*(?P<threads>\d+)\)\s*:(?P<rest>.*)$"
)
"""Row of a result in versions 5 and 6: ``Random Read 4KiB (Q= 32,T= 1) :``, ``Sequential Read (Q= 32,T= 1)
:`` or ``(T= 1) :``."""
_FIGURES = re.compile(
    r"\s*(?P<rate>[^\s\[]+) MB/s(?:\s*\[\s*(?P<iops>[^\s\]]+) IOPS\])?(?:\s*<\s*(?P<latency>[^\s>]+) us>)?\s*"
)
_SECTION = re.compile(r"^\[(Read|Write|Mix)\](?:\s*Read\s*(\d+)%\s*/\s*Write\s*\d+%)?\s*$")
_TEST = re.compile(r"^\s*Test\s*:\s*(?P<size>\d+)\s*(?P<unit>[MG]iB)\s*(?P<rest>.*)$")
_DRIVE = re.compile(r"\[\s*([A-Z]:)")
_REPEATED = re.compile(r"\(x(\d+)\)")
_LASTS = re.compile(r"Measure\s+(\d+)\s*sec")
_DATE = re.compile(r"^\s*Date\s*:\s*(\d+/\d+/\d+\s+\d+:\d+:\d+)")
_UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "KB": 2**10, "MB": 2**20}
_OLDEST = 5
_MIX = 70
"""Percentage of reads in a mix, in Pinchpoint's suite and if the text does not contain it."""
_SECONDS = 5.0
"""Length of a repetition in seconds if the text does not contain it. Version 8 and later write it."""


class CrystalDiskMark:
    """Reads CrystalDiskMark's text into cells of the suite ``crystaldiskmark``.

    The tool reports only the best of its repetitions, so the spread is unknown.
    """

    name = "crystaldiskmark"
    says = "CrystalDiskMark's text (File, Save), of versions 5 to 9"
    suite = "crystaldiskmark"

    def recognises(self, head: str) -> bool:
        """Return whether the first lines contain a rule with the name and a version below it."""
        return bool(re.search(r"^-{20,}\s+CrystalDiskMark \d", head, re.MULTILINE))

    def read(self, text: str) -> ResultFile:
        head = _HEAD.search(text)
        if head is None:
            raise ForeignFileError(
                "no line `CrystalDiskMark VERSION` was found; allowed: the text that CrystalDiskMark "
                "writes with File, Save"
            )
        if number(head[1].split(".")[0], "version") < _OLDEST:
            raise ForeignFileError(
                f"it is of CrystalDiskMark {head[1]}; supported: versions 5 to 9; use a newer one"
            )
        file = ResultFile("CrystalDiskMark", head[1])
        lines = text.splitlines()
        seconds = next((float(lasts[1]) for line in lines if (lasts := _LASTS.search(line))), _SECONDS)
        started = _date(lines)
        section: tuple[str, float] | None = None
        for at, line in enumerate(lines, 1):
            if match := _SECTION.match(line.strip()):
                section = _way(match[1], match[2])
            elif match := _BLOCKS.match(line) or _NAMED.match(line):
                file.results.append(_result(match, section, seconds, started, at))
            elif match := _TEST.match(line):
                _test(match, file, at)
        if not file.results:
            raise ForeignFileError(
                "no line with MB/s was found: the text is cut off; save it again after the test"
            )
        if file.size_bytes is None:
            raise ForeignFileError(
                "no line `Test: SIZE` was found below the figures: the text is cut off; save it again"
            )
        return file


def _test(match: re.Match[str], file: ResultFile, line: int) -> None:
    """Read the line ``Test: 1 GiB (x5) [F: 0% (0/119GiB)]``: size, drive, repetitions."""
    file.size_bytes = whole(match["size"], "Test", line) * _UNITS[match["unit"]]
    if drive := _DRIVE.search(match["rest"]):
        file.paths.append(drive[1])
    if (many := _REPEATED.search(match["rest"])) and many[1] != "1":
        file.note(f"CrystalDiskMark reports the best of {many[1]} repetitions, not their spread")


def _way(name: str, reads: str | None) -> tuple[str, float]:
    """Return the direction as in the suite's names (``read``, ``write``, ``mix``) and the share of reads."""
    if name == "Mix":
        share = min(100.0, number(reads or _MIX, "Mix")) / 100
        return "mix" if share == _MIX / 100 else f"{share:.0%} read", share
    return name.lower(), 1.0 if name == "Read" else 0.0


def _result(
    match: re.Match[str],
    section: tuple[str, float] | None,
    seconds: float,
    started: datetime | None,
    line: int,
) -> CellResult:
    groups = match.groupdict()
    way = _way(groups["way"], None) if groups.get("way") else section
    if way is None:
        raise ForeignFileError(
            "a figure stands before [Read], [Write] or [Mix]; save the whole text again", line
        )
    random = groups["kind"] in ("RND", "Random")
    if groups["size"]:
        block = whole(groups["size"], "block size", line) * _UNITS[groups["unit"]]
    else:  # versions 5 and 6 write no size: 128 KiB with a queue, 1 MiB without
        block = 2**17 if groups["queues"] else 2**20
    queues, threads = whole(groups["queues"] or 1, "Q", line), whole(groups["threads"], "T", line)
    outstanding = queue_depth(queues * threads, line)
    if not block:
        raise ForeignFileError("found a block size of 0; save the whole text again", line)
    kind = "RND" if random else "SEQ"
    cell = Cell(f"{kind}{size_name(block)} {way[0]}", block, way[1], float(random), outstanding)
    figures = _FIGURES.fullmatch(groups["rest"])
    if figures is None:
        raise ForeignFileError(
            f"found {groups['rest'].strip()[:60]!r}; allowed: such as 523.140 MB/s; save it again", line
        )
    rate = number(figures["rate"], "MB/s", line) * 1e6
    if not rate:
        return CellResult(cell, None, started, "CrystalDiskMark reports 0 MB/s: this test was not run")
    latency = number(figures["latency"], "us", line) / 1e6 if figures["latency"] else None
    iops = rate / block
    reads, writes = iops * way[1], iops * (1 - way[1])
    return CellResult(
        cell,
        CellFigures(
            seconds=seconds,
            reads_per_s=reads,
            writes_per_s=writes,
            read_bytes_per_s=reads * block,
            write_bytes_per_s=writes * block,
            mean_s=latency or None,
        ),
        started,
    )


def _date(lines: list[str]) -> datetime | None:
    """Return the date in local time; the text does not contain the time zone."""
    for line in lines:
        if match := _DATE.match(line):
            try:
                return datetime.strptime(match[1], "%Y/%m/%d %H:%M:%S")  # noqa: DTZ007 -- the caller knows the zone
            except ValueError:
                return None
    return None

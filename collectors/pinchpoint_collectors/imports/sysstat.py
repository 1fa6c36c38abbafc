"""Common functions for sysstat's programs: frames of their JSON and text, units of their figures."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pinchpoint_collectors import bounds
from pinchpoint_collectors.common import legible
from pinchpoint_collectors.common.legible import ForeignFileError, mapping, mappings
from pinchpoint_collectors.imports.record import FileFacts

KIB = 1024.0
SECTOR_BYTES = 512.0
BEGINS = re.compile(r"[\ufeff\s]*\{\s*\"sysstat\"\s*:\s*\{")

TEXT = re.compile(
    r"[\ufeff\s]*Linux (?P<release>\S+) \((?P<nodename>[^)]*)\)\s+(?P<date>\S+)"
    r"(?:\s+_(?P<machine>\S+)_)?(?:\s+\((?P<cores>\d+) CPUs?\))?"
)
"""Pattern of the first line of the text form."""

Fields = Mapping[str, Any]
Reported = tuple[str, str, float | None, float | None]
"""Metric, instance, value, weight."""


def host_blocks(lines: Iterable[str], facts: FileFacts) -> Iterator[Fields]:
    """Return the blocks of ``sysstat.hosts``, one per machine; of an incomplete file, the complete ones.

    A file may contain several outputs (``for each in sa*; do sadf -j $each; done``). ``facts`` notes what was
    ignored. Raises ``ForeignFileError``.
    """
    for content in _documents(_mended(legible.whole(lines), facts), facts):
        blocks = mappings(
            mapping(mapping(content, "its top").get("sysstat"), "sysstat").get("hosts"), "hosts"
        )
        if not blocks:
            raise ForeignFileError(
                "found no list at sysstat.hosts; allowed: what sadf -j or iostat -o JSON prints"
            )
        yield from blocks


_SIGN = re.compile(r"[^\ufeff\s]")


_FAULTS = re.compile(r'"(?:[^"\\]|\\.)*"|(?P<leading>\[\s*,)|(?P<missing>\}(?=\s*\{))|[][{}]')
"""Pattern of strings and brackets, which are kept, and of sysstat's known errors in JSON."""


def _mended(text: str, facts: FileFacts) -> str:
    """Return the text without the comma before ``iostat -y``'s first report, and with its missing commas."""
    kept: list[str] = []
    begin = depth = 0
    for match in _FAULTS.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(match[0][0], 0)
        if match["leading"] or (match["missing"] and depth):
            kept += [text[begin : match.start()], "[" if match["leading"] else "},"]
            begin = match.end()
    if kept:
        facts.note(
            "its commas were corrected: this version of sysstat writes JSON with one too many or too few"
        )
    return "".join([*kept, text[begin:]])


def _documents(text: str, facts: FileFacts) -> Iterator[Any]:
    sign, halves = _SIGN.search(text), legible.may_hold_halves(text)
    while sign is not None:
        try:
            content, end = legible.DECODER.raw_decode(text, sign.start())
        except json.JSONDecodeError as error:
            content, end = _whole_part(text[sign.start() :], error), len(text)
            facts.note("it is truncated (the recorder was stopped): the incomplete end was ignored")
        except RecursionError as error:
            raise ForeignFileError("not a JSON of sysstat: it is nested too deeply; export again") from error
        yield legible.content(content) if halves else content
        sign = _SIGN.search(text, end)


_PARTS = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]')
_ENDS = {"{": "}", "[": "]"}


def _whole_part(text: str, error: json.JSONDecodeError) -> Any:
    """Return the complete reports of an incomplete text. Each is an element of ``statistics``.

    Raises ``ForeignFileError`` for other damage, or if no report is complete.
    """
    open_: list[str] = []
    whole = 0
    for part in _PARTS.finditer(text):
        sign = part[0]
        if sign in _ENDS:
            open_.append(sign)
        elif sign in _ENDS.values() and open_:
            open_.pop()
            if open_ == [*"{{[{["]:
                whole = part.end()
    if whole and open_:
        with contextlib.suppress(json.JSONDecodeError):  # the text is also damaged before its end
            return legible.DECODER.decode(f"{text[:whole]}]}}]}}}}")
    why = "it is truncated: the recording ends in the middle" if open_ else f"no JSON: {error.msg}"
    raise ForeignFileError(
        f"{why}; give the recorder a count after the interval, or export again",
        error.lineno,
    ) from error


def text_block(line: re.Match[str]) -> dict[str, Any]:
    """Return a machine's block as in JSON, without statistics, from the first line of a text (``TEXT``)."""
    cores = line["cores"]
    return {**line.groupdict(), "sysname": "Linux", "number-of-cpus": int(cores) if cores else None}


def note_machine(block: Fields, facts: FileFacts) -> str:
    """Return the name of the machine, and add its facts to ``facts``."""
    host = str(block.get("nodename") or "")
    cores = block.get("number-of-cpus")
    facts.facts(host).update(
        os=str(block.get("sysname") or "Linux"),
        kernel=block.get("release"),
        cores=cores if isinstance(cores, int) and bounds.bound_of("cpu.cores").has(cores) else None,
    )
    return host


def number(fields: Fields, *names: str) -> float | None:
    """Return the first figure among the names of several versions; None if there is none."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    return None


def total(*values: float | None) -> float | None:
    """Return the sum of figures; None if one is missing."""
    return None if None in values else sum(value for value in values if value is not None)


def scaled(value: float | None, factor: float) -> float | None:
    """Return a figure in base units; None stays None."""
    return None if value is None else value * factor


def cpu_values(fields: Fields) -> Iterator[tuple[str, float | None]]:
    """Yield ratios of one or all CPUs: busy + wait + steal + idle = 1, as in Pinchpoint's own collectors.

    For a CPU that is switched off, sysstat reports 0 for everything including idle: it was not measured.
    """
    if not any(value for name, value in fields.items() if name != "cpu"):
        fields = {}
    idle, wait, steal = (scaled(number(fields, name), 0.01) for name in ("idle", "iowait", "steal"))
    rest = total(idle, wait, steal if "steal" in fields else 0.0)  # older kernels do not report it
    yield "cpu.busy_ratio", None if rest is None else bounds.share(1.0 - rest)
    yield "cpu.wait_ratio", wait
    yield "cpu.steal_ratio", steal


def latency(milliseconds: float | None, operations: float | None) -> float | None:
    """Return a latency in seconds; None without operations, for which sysstat reports 0."""
    return None if not operations or milliseconds is None else milliseconds / 1000.0


def available_of(
    available: float | None, free: float | None, cached: float | None, facts: FileFacts
) -> float | None:
    """Return available memory: the kernel's figure, or else free and cached memory.

    A figure far below the free memory is wrong and not used (0 in a version that did not know it).
    """
    reckoned = total(free, cached)
    if available is not None and (free is None or available >= free / 2):
        return available
    if reckoned is not None:
        why = "is not in the file" if available is None else "contradicts the free memory"
        facts.note(f"the available memory {why}: the sum of free and cached was used")
    return reckoned

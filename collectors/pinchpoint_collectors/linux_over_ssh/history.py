"""What a host kept by itself of the time in which the link was cut: sysstat's records, read by ``sadf``.

Only records that lie in the gap as a whole are taken: a mean over ten minutes says nothing of half a minute.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from pinchpoint_collectors.imports.record import ForeignFileError, Found, Settings
from pinchpoint_collectors.imports.sadf import Sadf
from pinchpoint_collectors.linux.files import Files
from pinchpoint_collectors.linux_over_ssh.session import Session
from pinchpoint_collectors.record import Incident, Sample
from pinchpoint_collectors.remote.clock import HostClock
from pinchpoint_collectors.times import utc

_NS = 1_000_000_000
_LONGEST_RECORD_S = 660
"""sysstat's usual interval is ten minutes: so much later it writes the record that covers a gap's end."""
_PATIENCE_S = 900.0
_FIRST_AGAIN_S, _LONGEST_AGAIN_S = 4.0, 60.0
_SLACK_NS = _NS
"""sysstat's times are whole seconds."""
_ZONES = re.compile(r"zone ([+-]\d{4}) ([+-]\d{4})")
"""How far the host's time is from UTC where what it is asked for begins, and where it ends."""
_NUMBERED = re.compile(r"dev(\d+)-(\d+)")
"""How older versions of it call a disk."""


@dataclass(slots=True)
class _Gap:
    """A time (ours) of which the host is asked; ``number`` of the question that is open."""

    from_ns: int
    to_ns: int
    ask_at_s: float
    until_s: float
    again_s: float = _FIRST_AGAIN_S
    number: int | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is watched of a host: records of anything else are left out."""

    hosts: tuple[str, ...]
    cores: Collection[int]
    devices: Collection[str]
    interfaces: Collection[str]
    files: Files


class History:
    """Fetches what lies in the gaps of one host, as soon as it is written there."""

    def __init__(self) -> None:
        self._gaps: list[_Gap] = []

    def missed(self, from_ns: int, to_ns: int, now_s: float) -> None:
        """A gap is to be filled (UTC ns by our clock; ``now_s``: monotonic)."""
        self._gaps.append(_Gap(from_ns, to_ns, now_s, now_s + _PATIENCE_S))

    def unplug(self) -> None:
        """The session is gone, and with it the answer to what it was asked."""
        for gap in self._gaps:
            gap.number = None

    def go_on(self, session: Session, wanted: Wanted, now_s: float) -> tuple[list[Sample], list[Incident]]:
        """Ask, or take the answer: samples of the gaps, and what is to be said of them. Never waits."""
        samples: list[Sample] = []
        incidents: list[Incident] = []
        for gap in list(self._gaps):
            told = None
            if gap.number is not None and gap.number in session.answers:
                lines = session.answers.pop(gap.number)
                gap.number, gap.ask_at_s = None, now_s + gap.again_s
                gap.again_s = min(_LONGEST_AGAIN_S, 2 * gap.again_s)
                found, told = _answered(lines, gap, session.wall, wanted)
                samples += found
            elif gap.number is None and now_s >= gap.ask_at_s and session.wall.known:
                gap.number = session.ask_records(*_span_s(gap, session.wall))
            if told is None and now_s >= gap.until_s:
                told = _not_filled(gap, "sysstat there has written nothing of it")
            if told is not None:
                self._gaps.remove(gap)
                incidents.append(told)
        return samples, incidents


def _span_s(gap: _Gap, wall: HostClock) -> tuple[int, int]:
    """What the host is asked for: by its clock, with the records that cover the gap's ends."""
    from_s, to_s = ((time_ns + wall.offset_ns) // _NS for time_ns in (gap.from_ns, gap.to_ns))
    return from_s - _LONGEST_RECORD_S, to_s + _LONGEST_RECORD_S


def _answered(
    lines: Sequence[str], gap: _Gap, wall: HostClock, wanted: Wanted
) -> tuple[list[Sample], Incident | None]:
    """What an answer says of a gap; nothing yet, where what covers its end is not written."""
    zones = next((told.groups() for line in lines if (told := _ZONES.fullmatch(line))), ("+0000",))
    if len(set(zones)) > 1:
        why = "the clocks there were changed by an hour about then: of which hour a record is cannot be told"
        return [], _not_filled(gap, why)
    zone = datetime.strptime(zones[0], "%z").tzinfo or UTC
    try:
        records = list(_records(lines, wall, zone))
    except ForeignFileError as error:
        return [], _not_filled(gap, f"what sadf printed there was not understood: {error}")
    if not any(one.time_ns >= gap.to_ns for one in records):
        return [], None
    found = list(_within(records, gap, wanted))
    return found, _told(gap, found, records)


def _records(lines: Sequence[str], wall: HostClock, zone: tzinfo) -> Iterator[Sample]:
    """All that sadf printed, by our clock; its times are those of ``zone`` where they do not say UTC."""
    for line in lines:
        if line.startswith("{"):
            for sample in Sadf().read([line], Settings(zone=zone), Found()):
                yield sample._replace(time_ns=wall.to_ours(sample.time_ns))


def _within(records: Sequence[Sample], gap: _Gap, wanted: Wanted) -> Iterator[Sample]:
    """What lies in the gap as a whole and is watched, under the name of each host that is this machine."""
    for record in records:
        begins_ns = record.time_ns - round(record.interval_s * _NS)
        if begins_ns < gap.from_ns - _SLACK_NS or record.time_ns > gap.to_ns + _SLACK_NS:
            continue
        instance = _instance(record, wanted)
        if instance is not None:
            for host in wanted.hosts:
                yield record._replace(host=host, instance=instance)


def _instance(record: Sample, wanted: Wanted) -> str | None:
    """Its name for us; None where it is not watched."""
    if record.metric.startswith("disk."):
        numbered = _NUMBERED.fullmatch(record.instance)
        path = wanted.files.real(f"/sys/dev/block/{numbered[1]}:{numbered[2]}") if numbered else None
        name = path.rpartition("/")[2] if path else record.instance
        return name if name in wanted.devices else None
    if record.metric.startswith("net."):
        return record.instance if record.instance in wanted.interfaces else None
    if record.metric.startswith("cpu.") and record.instance:
        return record.instance if int(record.instance) in wanted.cores else None
    return record.instance


def _told(gap: _Gap, found: Sequence[Sample], records: Sequence[Sample]) -> Incident:
    if not found:
        longest_s = max(one.interval_s for one in records)
        return _not_filled(gap, f"sysstat's records there cover {longest_s:.0f} s each: none lies in it")
    times = {one.time_ns for one in found}
    return Incident(
        "gap_filled",
        {
            "from": utc(gap.from_ns),
            "to": utc(gap.to_ns),
            "by": "sysstat",
            "readings": len(times),
            "interval_s": max(one.interval_s for one in found),
        },
    )


def _not_filled(gap: _Gap, why: str) -> Incident:
    return Incident("gap_not_filled", {"from": utc(gap.from_ns), "to": utc(gap.to_ns), "why": why})

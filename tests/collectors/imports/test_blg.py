"""Tests of the binary log: the samples of the CSV with the same counters; damage gives a clear error."""

from __future__ import annotations

import contextlib
import io
import random

import pytest

from pinchpoint_collectors.common.legible import ForeignFileError
from pinchpoint_collectors.imports.blg import Blg
from pinchpoint_collectors.imports.perfmon import Perfmon
from pinchpoint_collectors.imports.record import FileFacts, Settings
from pinchpoint_collectors.record import Sample

from . import blg_file as b

RATE, LATENCY, IDLE_TIMER, QUEUE, BYTES = 0x10410400, 0x30020400, 0x21510500, 0x00550500, 0x00010100
BASE = 0x40030402
CATALOGUE = b.catalogue(
    b.record(RATE, "SQL1", "LogicalDisk", "L:", "Disk Writes/sec"),
    b.record(LATENCY, "SQL1", "LogicalDisk", "L:", "Avg. Disk sec/Write"),
    b.record(IDLE_TIMER, "SQL1", "Processor", "*", "% Processor Time"),
    b.record(BYTES, "SQL1", "Memory", None, "Available Bytes"),
)


def _data(second: int, writes: int, spent: int, idle: tuple[int, int], free: int, status: int = 0) -> bytes:
    ticks, now = second * b.PER_S, b.START + second * b.PER_S
    return b.reading(
        b.one(writes, ticks, status),
        b.one(spent, writes, status),
        b.instances({"0": (idle[0], now), "_Total": (idle[1], now)}),
        b.one(free, 0),
    )


READINGS = (
    _data(0, 2**32 - 50, 1_000, (0, 0), 5),
    _data(15, 100, 11_251_000, (75_000_000, 60_000_000), 4096),  # 32-bit counters wrap: 150 writes, 1.125 s
    _data(30, 100, 11_251_000, (225_000_000, 150_000_000), 2048),
)
CSV = """"(PDH-CSV 4.0) (W. Europe)({minutes})","\\\\SQL1\\LogicalDisk(L:)\\Disk Writes/sec",\
"\\\\SQL1\\LogicalDisk(L:)\\Avg. Disk sec/Write","\\\\SQL1\\Processor(0)\\% Processor Time",\
"\\\\SQL1\\Processor(_Total)\\% Processor Time","\\\\SQL1\\Memory\\Available Bytes"
"{hour}:13:20.000"," "," "," "," ","5"
"{hour}:13:35.000","10","0.0075","50","60","4096"
"{hour}:13:50.000","0","0","0","40","2048"
"""


def _read(content: bytes, settings: Settings | None = None) -> tuple[list[Sample], FileFacts]:
    found = FileFacts()
    return list(Blg().read(io.BytesIO(content), settings or Settings(), found)), found


@pytest.mark.parametrize(
    ("bias", "hour"), [(0, "08/18/2025 14"), (480, "08/18/2025 07"), (-60, "08/18/2025 16")]
)
def test_the_same_samples_as_the_csv(bias: int, hour: str) -> None:
    """The log gives the CSV's samples, with local times in summer; 480 is the Pacific, -60 Berlin."""
    shown = bias - 60 if bias else 0
    events = [b.event(b.DATA, each, 15 * at, bias=shown) for at, each in enumerate(READINGS)]
    ours, found = _read(b.trace([CATALOGUE, *events], bias=bias))
    theirs = list(Perfmon().read(CSV.format(minutes=shown, hour=hour).splitlines(), Settings(), FileFacts()))
    assert [one._replace(value=None) for one in ours] == [one._replace(value=None) for one in theirs]
    assert [one.value for one in ours] == pytest.approx([one.value for one in theirs])
    assert len(ours) == 10
    assert found.utc_offset_s == -60 * shown
    assert found.facts("SQL1")["cores"] == 1


def test_a_reading_in_parts_and_a_log_that_went_round() -> None:
    """Buffers are read in the order of writing; a part whose beginning was overwritten is dropped."""
    plain, _ = _read(
        b.trace([CATALOGUE, *(b.event(b.DATA, each, 15 * at) for at, each in enumerate(READINGS))])
    )
    parts = [b.parted(b.DATA, each, 15 * at, 3) for at, each in enumerate(READINGS)]
    lost = b.parted(b.DATA, READINGS[0], 0, 3)[1:]
    assert _read(b.trace([CATALOGUE, *lost, *(one for each in parts for one in each)]))[0] == plain
    events = [CATALOGUE]
    events += [b.event(b.DATA, each, 15 * at).ljust(6000, b"\0") for at, each in enumerate(READINGS)]
    whole = b.trace(events)
    buffers = [whole[at : at + b.SIZE] for at in range(0, len(whole), b.SIZE)]
    turned = b"".join([buffers[0], buffers[3], buffers[1], buffers[2]])
    assert _read(turned)[0] == plain


def test_names_are_those_of_the_logs_own_language() -> None:
    """Object and counter names come from the log itself, here in Czech."""
    log_file = b.names({236: "Logický disk", 214: "Čtení z disku/s", 208: "Střední doba čtení", 999: "jiný"})
    counters = [(214, RATE), (208, LATENCY), (208, BASE), (999, RATE)]
    readings = [
        b.reading(
            b.whole(
                236, counters, {"L:": (n * 150, n * 11_250_000, n * 150, n), "_Total": (n, n, n, n)}, n * 15
            )
        )
        for n in range(3)
    ]
    samples, _ = _read(
        b.trace(
            [log_file, b.catalogue(), *(b.event(b.DATA, each, 15 * n) for n, each in enumerate(readings))]
        )
    )
    first = {one.metric: one for one in samples if one.time_ns == samples[0].time_ns}
    assert first["disk.reads_per_s"].value == 10
    assert first["disk.read_latency_s"].value == pytest.approx(0.0075)
    assert {one.instance for one in samples} == {"L:"}


def test_an_object_without_instances() -> None:
    rows = [b.reading(b.whole(4, [(24, BYTES)], {None: (n * 4096,)}, n)) for n in range(6)]
    samples, _ = _read(b.trace([b.catalogue(), *(b.event(b.DATA, each, n) for n, each in enumerate(rows))]))
    assert [one.value for one in samples] == [4096, 8192, 12288, 16384, 20480]


def test_what_was_not_read_is_not_measured() -> None:
    """A value with an error status is not measured, not 0."""
    bad = _data(15, 1, 1, (75_000_000, 60_000_000), 1, status=0xC0000BC6)
    events = [b.event(b.DATA, each, 15 * at) for at, each in enumerate((READINGS[0], bad, READINGS[2]))]
    samples, _ = _read(b.trace([CATALOGUE, *events]))
    assert {one.metric for one in samples if one.time_ns == samples[0].time_ns} == {
        "cpu.busy_ratio",
        "mem.available_bytes",
    }


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b.trace([CATALOGUE]), "has no reading"),
        (
            b.trace([CATALOGUE, b.event(b.DATA, READINGS[0].replace(b"BL\x03", b"BL\x02"), 0)]),
            "version 2 of the binary log",
        ),
        (b.trace([CATALOGUE, b.event(b.DATA, READINGS[0][:90], 0)]), "damaged"),
        (b.trace([CATALOGUE, b.event(b.DATA, b"nonsense" * 4, 0)]), "a reading has no items"),
        (b.trace([CATALOGUE], pointers=3), "no size of pointers"),
    ],
)
def test_a_damaged_log(content: bytes, words: str) -> None:
    with pytest.raises(ForeignFileError, match=words):
        _read(content)


def test_it_is_recognised_by_its_beginning() -> None:
    """A log is recognised by its beginning; an event trace of another provider is not a log."""
    log = b.trace([CATALOGUE])
    assert Blg().begins(log)
    assert not Blg().begins(log.replace(b.PDH, b"\x07" * 16))
    assert not Blg().begins(b"\0" * 500)


def test_damage_ends_in_words() -> None:
    """A file cut off or with changed bytes gives samples or a ForeignFileError."""
    log = b.trace([CATALOGUE, *(b.event(b.DATA, each, 15 * at) for at, each in enumerate(READINGS))])
    chance = random.Random(5)
    damaged = [log[: len(log) * part // 8] for part in range(8)]
    for _ in range(150):
        one = bytearray(log)
        one[chance.choice([chance.randrange(500), b.SIZE + chance.randrange(1200)])] = chance.choice(
            [0, 1, 127, 255]
        )
        damaged.append(bytes(one))
    for each in damaged:
        with contextlib.suppress(ForeignFileError):
            _read(each)

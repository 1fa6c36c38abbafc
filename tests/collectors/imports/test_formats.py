"""Tests of the detection of file kinds, and of truncated and damaged files.

The golden answers ``inputs`` and ``imported`` check the content of each file.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from collectors.imports.logs import (
    CRAWL_HISTORY,
    CRAWL_ITEMS,
    CSV,
    IOSTAT,
    MAPPING,
    RECORDED,
    SADF,
    matrix,
    named,
    perfmon,
    recorded,
    row,
)

from pinchpoint_collectors.common.legible import ForeignFileError
from pinchpoint_collectors.imports import registry
from pinchpoint_collectors.imports.perfmon import Perfmon, registry_names
from pinchpoint_collectors.imports.record import FileFacts, Settings
from pinchpoint_collectors.record import Sample

RANGE = matrix(
    (named("node_disk_writes_completed_total", device="sda"), [100, 400, 700]),
    (named("node_disk_write_time_seconds_total", device="sda"), [1.0, 4.0, 4.6]),
    (named("node_cpu_seconds_total", cpu="0", mode="idle"), [0, 3, 6]),
    (named("node_memory_MemAvailable_bytes"), [4e9, 2e9, 1e9]),
    (named("node_memory_MemTotal_bytes"), [8e9, 8e9, 8e9]),
)
FILES: list[tuple[str, str]] = [
    ("perfmon", perfmon([row(), row(), row()])),
    ("sadf", SADF),
    ("iostat", IOSTAT),
    ("node_exporter", RANGE),
    ("crawl-log", CRAWL_HISTORY),
    ("crawl-log", CRAWL_ITEMS),
    *(
        (path.stem.removesuffix("-text").removesuffix("-samples"), recorded(path.name))
        for path in sorted(RECORDED.iterdir())
    ),
]


def read(kind: str, text: str, settings: Settings | None = None) -> tuple[list[Sample], FileFacts]:
    """Return the samples of a file and its other facts."""
    found = FileFacts()
    given = settings or Settings(mapping=MAPPING)
    return list(registry.format_named(kind).read(text.splitlines(keepends=True), given, found)), found


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        *FILES,
        ("perfmon", "\ufeff" + perfmon([row()])),
        ("jmeter", '<testResults version="1.2">\n<sample t="40000" lb="db1 Disks I/O writes"/>\n'),
    ],
    ids=lambda each: each[:12],
)
def test_a_file_is_known_by_its_begin(kind: str, text: str) -> None:
    """The kind of each file is detected from its beginning."""
    assert registry.recognised(text[:8192]).name == kind


def test_a_file_of_no_kind_is_told_what_kinds_there_are() -> None:
    """A file of unknown kind gives an error with its beginning and all known kinds."""
    with pytest.raises(ForeignFileError) as caught:
        registry.recognised("hello,world\n1,2\n")
    assert "hello,world" in str(caught.value)
    assert all(name in str(caught.value) for name in registry.names())


def test_kinds_by_name() -> None:
    """An unknown kind's error suggests the nearest, and a name cannot be registered twice."""
    with pytest.raises(ForeignFileError, match="nearest: perfmon"):
        registry.format_named("perfmom")
    with pytest.raises(ValueError, match="registered already"):
        registry.register(Perfmon())


def test_a_language_nobody_knows_is_read_with_windows_own_list() -> None:
    """A log in an unknown language is read with Windows' list of names; a bad list's error names the line."""
    busy, free = "A processzor kihasználtsága (%)", "Rendelkezésre álló memória (MB)"
    text = perfmon([["40", "100"]], (rf"\Processzor(_Total)\{busy}", rf"\Memória\{free}"))
    with pytest.raises(ForeignFileError, match=r"German.*--names"):
        read("perfmon", text)
    names = registry_names(["238", "Processzor", "6", busy, "4", "Memória", "", "1382", free])
    samples, _ = read("perfmon", text, Settings(names=names))
    assert {each.metric: each.value for each in samples} == {
        "cpu.busy_ratio": pytest.approx(0.40),
        "mem.available_bytes": 100 * 1024 * 1024,
    }
    with pytest.raises(ForeignFileError, match="index") as caught:
        registry_names(["2", "System", "not a number"])
    assert caught.value.line == 3


LONG = "1" * 200_000


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("dstat", '"Host:","' + LONG),
        ("dstat", "\0,"),
        ("jmeter", f"timeStamp,elapsed,label\n1,{LONG},x\n2,2,y\n"),
        ("jmeter", f"timeStamp,{LONG}\n"),
        ("esxtop", '"(PDH-CSV 4.0) (UTC)(0)'),
        ("perfmon", f'"(PDH-CSV 4.0) (UTC)({LONG})","\\\\A\\Memory\\Available Bytes"\n'),
    ],
)
def test_what_make_fuzz_found_is_read_or_refused_with_a_sentence(kind: str, text: str) -> None:
    """Inputs found by ``make fuzz`` are read or refused: long or missing cells, an impossible time zone."""
    with suppress(ForeignFileError):  # the last line may be truncated
        read(kind, text)


def test_an_index_of_no_registry_is_refused() -> None:
    """An index that is too long, or has digits of another alphabet, is refused."""
    for index in (LONG, "١٢"):
        with pytest.raises(ForeignFileError, match="index"):
            registry_names([index, "System"])


def repeated(text: str, count: int) -> str:
    """Return a file with ``count`` reports of iostat or records of sadf, in their indentation."""
    content = json.loads(text)
    host = content["sysstat"]["hosts"][0]
    last = host["statistics"][-1]
    host["statistics"] = [
        last
        | {
            "timestamp": f"2026-11-20T09:00:{at * 5:02d}+0100"
            if isinstance(last["timestamp"], str)
            else last["timestamp"] | {"time": f"00:{10 * at + 10:02d}:01"}
        }
        for at in range(count)
    ]
    return json.dumps(content, indent=8)


@pytest.mark.parametrize(("kind", "text"), [("iostat", IOSTAT), ("sadf", SADF)])
def test_a_recording_that_was_ended_in_the_middle_is_read_as_far_as_it_goes(kind: str, text: str) -> None:
    """A file truncated by Ctrl-C at any place gives its complete part and a note on the missing rest."""
    text = repeated(text, 4)
    whole, _ = read(kind, text)
    cuts = range(text.index('"statistics"'), len(text) - 3, 97)
    kept = 0
    for at in cuts:
        try:
            samples, found = read(kind, text[:at])
        except ForeignFileError as error:
            assert "truncated" in str(error) or "record for longer" in str(error)  # noqa: PT017 - one of many
        else:
            kept += 1
            assert set(samples) <= set(whole)
            assert any("truncated" in note for note in found.notes)
    assert kept > len(cuts) // 4


def mutated(text: str, chance: random.Random) -> Iterator[str]:
    """Yield truncated texts and texts with changed letters or with doubled, removed or moved lines."""
    for _ in range(80):
        at = chance.randrange(len(text))
        yield text[:at]
        yield text[:at] + chance.choice('",;\n\t\0{}[]:9x\\') + text[at + 1 :]
        lines = text.splitlines(keepends=True)
        lines.insert(chance.randrange(len(lines)), lines.pop(chance.randrange(len(lines))))
        yield "".join(lines)


ODD: tuple[Any, ...] = (None, "x", -1, 1e300, [], {}, [None], {"a": None}, True, "")


def twisted(content: Any, chance: random.Random) -> Any:
    """Return JSON in which one value has another type."""
    if isinstance(content, dict) and content and chance.random() < 0.9:
        key = chance.choice(list(content))
        return {**content, key: twisted(content[key], chance)}
    if isinstance(content, list) and content and chance.random() < 0.9:
        at = chance.randrange(len(content))
        return [*content[:at], twisted(content[at], chance), *content[at + 1 :]]
    return chance.choice(ODD)


@pytest.mark.parametrize(("kind", "text"), [*FILES, ("csv", CSV)], ids=lambda each: each[:12])
def test_a_damaged_file_is_read_or_refused(kind: str, text: str) -> None:
    """A damaged file is read, or refused with a ``ForeignFileError``; no other error occurs."""
    chance = random.Random(1)
    damaged = list(mutated(text, chance))
    if text.startswith("{") and text.endswith("}\n"):  # only for complete recordings
        content = json.loads(text)
        damaged += [json.dumps(twisted(content, chance)) for _ in range(400)]
    refused = 0
    for each in damaged:
        try:
            assert all(sample.metric for sample in read(kind, each)[0])
        except ForeignFileError:
            refused += 1
    assert refused > len(damaged) / 20  # damage to unused columns is not detected

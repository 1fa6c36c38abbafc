"""Whatever is damaged in a file, the answer is a sentence for people, never a crash."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from collectors.imports.logs import CRAWL_HISTORY, CRAWL_ITEMS, IOSTAT, SADF, perfmon, row
from collectors.imports.test_other_formats import CSV, MAPPING, matrix, named
from collectors.imports.test_text_kinds import KINDS, recorded

from pinchpoint_collectors.imports import registry
from pinchpoint_collectors.imports.crawl_log import CrawlLog
from pinchpoint_collectors.imports.iostat import Iostat
from pinchpoint_collectors.imports.mapped_csv import MappedCsv
from pinchpoint_collectors.imports.node_exporter import NodeExporter
from pinchpoint_collectors.imports.perfmon import Perfmon
from pinchpoint_collectors.imports.record import ForeignFileError, Format, Found, Settings
from pinchpoint_collectors.imports.sadf import Sadf

RANGE = matrix(
    (named("node_disk_writes_completed_total", device="sda"), [100, 400, 700]),
    (named("node_disk_write_time_seconds_total", device="sda"), [1.0, 4.0, 4.6]),
    (named("node_cpu_seconds_total", cpu="0", mode="idle"), [0, 3, 6]),
    (named("node_memory_MemAvailable_bytes"), [4e9, 2e9, 1e9]),
    (named("node_memory_MemTotal_bytes"), [8e9, 8e9, 8e9]),
)
FILES: list[tuple[Format, str]] = [
    (Perfmon(), perfmon([row(), row(), row()])),
    (Sadf(), SADF),
    (Iostat(), IOSTAT),
    (NodeExporter(), RANGE),
    (CrawlLog(), CRAWL_HISTORY),
    (CrawlLog(), CRAWL_ITEMS),
    (MappedCsv(), CSV),
    *((registry.format_named(kind), recorded(name)) for name, (kind, *_) in KINDS.items()),
]
ODD: tuple[Any, ...] = (None, "x", -1, 1e300, [], {}, [None], {"a": None}, True, "")


def mutated(text: str, chance: random.Random) -> Iterator[str]:
    """Cut off, letters changed, lines doubled, taken away or moved."""
    for _ in range(80):
        at = chance.randrange(len(text))
        yield text[:at]
        yield text[:at] + chance.choice('",;\n\t\0{}[]:9x\\') + text[at + 1 :]
        lines = text.splitlines(keepends=True)
        lines.insert(chance.randrange(len(lines)), lines.pop(chance.randrange(len(lines))))
        yield "".join(lines)


def twisted(content: Any, chance: random.Random) -> Any:
    """JSON in which one value is of another type."""
    if isinstance(content, dict) and content and chance.random() < 0.9:
        key = chance.choice(list(content))
        return {**content, key: twisted(content[key], chance)}
    if isinstance(content, list) and content and chance.random() < 0.9:
        at = chance.randrange(len(content))
        return [*content[:at], twisted(content[at], chance), *content[at + 1 :]]
    return chance.choice(ODD)


@pytest.mark.parametrize(("format_", "text"), FILES, ids=lambda each: getattr(each, "name", ""))
def test_a_damaged_file_is_read_or_refused(format_: Format, text: str) -> None:
    """Anything but a ``ForeignFileError`` would end the command as a fault of ours."""
    chance = random.Random(1)
    damaged = list(mutated(text, chance))
    if text.lstrip().startswith("{"):
        damaged += [json.dumps(twisted(json.loads(text), chance)) for _ in range(400)]
    refused = 0
    for each in damaged:
        try:
            for sample in format_.read(each.splitlines(keepends=True), Settings(mapping=MAPPING), Found()):
                assert sample.metric
        except ForeignFileError:
            refused += 1
    assert refused > len(damaged) / 20  # what is in columns that are not used is no damage

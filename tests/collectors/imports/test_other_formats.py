"""node_exporter's ranges, any CSV with a mapping, SharePoint's crawl log, and how kinds are told apart."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from collectors.imports.logs import CRAWL_HISTORY, CRAWL_ITEMS, IOSTAT, SADF, perfmon, row

from pinchpoint_collectors.imports import registry
from pinchpoint_collectors.imports.crawl_log import CrawlLog
from pinchpoint_collectors.imports.mapped_csv import MappedCsv
from pinchpoint_collectors.imports.node_exporter import NodeExporter
from pinchpoint_collectors.imports.perfmon import Perfmon
from pinchpoint_collectors.imports.record import (
    CsvMapping,
    ForeignFileError,
    Format,
    Found,
    MappedColumn,
    Settings,
)
from pinchpoint_collectors.record import Sample

T = 1763629200


def read(
    format_: Format, text: str, settings: Settings | None = None
) -> tuple[dict[tuple[str, str], list[Sample]], Found]:
    found = Found()
    series: dict[tuple[str, str], list[Sample]] = {}
    for sample in format_.read(text.splitlines(keepends=True), settings or Settings(), found):
        series.setdefault((sample.metric, sample.instance), []).append(sample)
    return series, found


def matrix(*results: tuple[dict[str, str], list[float]]) -> str:
    """An answer of Prometheus, a scrape each 15 s."""
    found: list[dict[str, Any]] = [
        {
            "metric": {"instance": "db1:9100", "job": "node", **labels},
            "values": [[T + 15 * at, str(value)] for at, value in enumerate(values)],
        }
        for labels, values in results
    ]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": found}})


def named(name: str, **labels: str) -> dict[str, str]:
    return {"__name__": name, **labels}


def test_counters_of_node_exporter_become_rates_and_latencies() -> None:
    """From one scrape to the next; a restart is not measured."""
    series, found = read(
        NodeExporter(),
        matrix(
            (named("node_disk_writes_completed_total", device="sda"), [100, 400, 700, 5]),
            (named("node_disk_write_time_seconds_total", device="sda"), [1.0, 4.0, 4.6, 0.1]),
            (named("node_cpu_seconds_total", cpu="0", mode="idle"), [0, 3, 6, 9]),
            (named("node_cpu_seconds_total", cpu="0", mode="user"), [0, 9, 18, 27]),
            (named("node_cpu_seconds_total", cpu="0", mode="iowait"), [0, 3, 6, 9]),
            (named("node_memory_MemAvailable_bytes"), [4e9, 2e9, 1e9, 1e9]),
            (named("node_memory_MemTotal_bytes"), [8e9, 8e9, 8e9, 8e9]),
            (named("node_network_speed_bytes", device="eth0"), [-125000, -125000, -125000, -125000]),
            (named("up"), [1, 1, 1, 1]),
        ),
    )
    values = {key: [sample.value for sample in samples] for key, samples in series.items()}
    assert values["disk.writes_per_s", "sda"] == [20.0, 20.0, None]
    assert values["disk.write_latency_s", "sda"] == [pytest.approx(0.010), pytest.approx(0.002), None]
    assert series["disk.write_latency_s", "sda"][0].weight == 300
    assert values["cpu.busy_ratio", ""] == [pytest.approx(0.6)] * 3
    assert values["cpu.wait_ratio", "0"] == [pytest.approx(0.2)] * 3
    assert values["mem.available_ratio", ""] == [0.25, 0.125, 0.125]
    assert values["net.speed_bytes_per_s", "eth0"] == [None] * 3
    assert series["cpu.busy_ratio", ""][0].host == "db1"
    assert found.facts("db1")["memory_bytes"] == 8_000_000_000
    assert any("up" in note for note in found.notes)


def test_scrapes_that_are_missing_leave_a_gap() -> None:
    """Nobody knows when in it a counter rose."""
    content = json.loads(
        matrix((named("node_disk_writes_completed_total", device="sda"), [1, 2, 3, 4, 5, 6]))
    )
    del content["data"]["result"][0]["values"][2:4]
    series, _ = read(NodeExporter(), json.dumps(content))
    assert [sample.time_ns // 10**9 - T for sample in series["disk.writes_per_s", "sda"]] == [15, 75]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"status":"error","errorType":"bad_data","error":"parse error"}', "parse error"),
        ('{"status":"success","data":{"resultType":"vector","result":[]}}', "matrix"),
        ('{"status":"success","data":{"resultType":"matrix","result":[]}}', "no series of node_exporter"),
        ('{"status":"success","data":{"resul', "no JSON"),
    ],
)
def test_answers_that_are_no_ranges(text: str, words: str) -> None:
    """What was found, and what to ask for."""
    with pytest.raises(ForeignFileError, match=words):
        read(NodeExporter(), text)


MAPPING = CsvMapping(
    time="time",
    time_format="%d.%m.%Y %H:%M:%S",
    columns={
        "cpu idle": MappedColumn("cpu.busy_ratio", scale=-0.01, offset=1.0),
        "write ms": MappedColumn("disk.write_latency_s", "vol1", scale=0.001, weight="writes"),
    },
    host_column="server",
    delimiter=";",
    decimal=",",
)
CSV = """time;server;cpu idle;write ms;writes
20.11.2026 09:00:00;a;90;1;1
20.11.2026 09:00:00;b;90;1;1
20.11.2026 09:00:10;a;25,5;12,5;1.000
20.11.2026 09:00:10;b;;0;0
"""


def test_any_csv_with_a_mapping() -> None:
    """Each host has its own interval; decimal commas; blank is not measured; no writes, no latency."""
    series, found = read(MappedCsv(), CSV, Settings(mapping=MAPPING))
    busy = {sample.host: sample.value for sample in series["cpu.busy_ratio", ""]}
    assert busy == {"a": pytest.approx(0.745), "b": None}
    first, second = series["disk.write_latency_s", "vol1"]
    assert first.value == pytest.approx(0.0125)
    assert (first.weight, first.interval_s) == (10_000.0, 10.0)
    assert (second.value, second.weight) == (None, 0.0)
    assert found.zone_assumed


@pytest.mark.parametrize(
    ("text", "words", "at"),
    [
        ("time;server;cpu idle\n", "'write ms', 'writes'", 1),
        (CSV.replace("25,5", "much"), "number", 4),
        (CSV.replace("20.11.2026 09:00:10;a", "2026-11-20;a"), "allowed: %d.%m.%Y", 4),
        (CSV.replace("09:00:10;a", "08:00:10;a"), "not later", 4),
        (CSV + "20.11.2026 09:00:20;a\n", "2 cells", 6),
    ],
)
def test_a_csv_that_does_not_fit_its_mapping(text: str, words: str, at: int) -> None:
    """The line, what was found, what is allowed."""
    with pytest.raises(ForeignFileError, match=words) as caught:
        read(MappedCsv(), text, Settings(mapping=MAPPING))
    assert caught.value.line == at


def test_a_csv_without_a_mapping_says_what_is_missing() -> None:
    """Nobody knows what its columns are."""
    with pytest.raises(ForeignFileError, match="--map"):
        read(MappedCsv(), CSV)


def test_the_crawl_history_gives_each_source_its_figures() -> None:
    """Count ÷ duration is the rate, what SharePoint reports stands beside it; an open crawl is left out."""
    series, found = read(CrawlLog(), CRAWL_HISTORY)
    [rate] = series["search.documents_per_s", "Local SharePoint sites"]
    assert rate.interval_s == 19 * 60 + 28
    assert rate.value is not None
    assert rate.value * rate.interval_s == pytest.approx(13_534)
    assert series["search.reported_documents_per_s", "Local SharePoint sites"][0].value == 12.8
    [latency] = series["search.repository_latency_s", "Local SharePoint sites"]
    assert latency.value == pytest.approx(0.381)
    assert latency.weight == 13_534
    assert rate.time_ns == round(datetime(2026, 11, 20, 9, 19, 28, tzinfo=UTC).timestamp() * 1e9)
    assert ("search.documents_per_s", "File share") not in series
    assert any(note.endswith("left out: 1") for note in found.notes)


def test_the_crawl_log_is_counted_per_minute() -> None:
    """A minute without a document is one with none."""
    series, _ = read(CrawlLog(), CRAWL_ITEMS)
    done = [sample.value for sample in series["search.documents_per_s", "3"]]
    failed = [sample.value for sample in series["search.failures_per_s", "3"]]
    assert [value * 60 for value in done if value is not None] == [2, 0, 1]
    assert [value * 60 for value in failed if value is not None] == [0, 1, 0]


def test_days_and_months_are_told_apart_by_the_whole_file() -> None:
    """21/11 can only be a day first."""
    german = CRAWL_HISTORY.replace("11/20/2026 9:00:00 AM", "20.11.2026 09:00:00").replace(
        "11/20/2026 9:19:28 AM", "20.11.2026 09:19:28"
    )
    plain, _ = read(CrawlLog(), CRAWL_HISTORY)
    other, _ = read(CrawlLog(), german)
    assert [s.time_ns for each in plain.values() for s in each] == [
        s.time_ns for each in other.values() for s in each
    ]


def test_a_damaged_crawl_log_names_its_line() -> None:
    """Cut off in the middle of a row."""
    with pytest.raises(ForeignFileError, match="cut off") as caught:
        read(CrawlLog(), CRAWL_HISTORY[:-60])
    assert caught.value.line == 5


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (perfmon([row()]), "perfmon"),
        ("\ufeff" + perfmon([row()]), "perfmon"),
        (SADF, "sadf"),
        (IOSTAT, "iostat"),
        (matrix((named("up"), [1, 1])), "node_exporter"),
        (CRAWL_HISTORY, "crawl-log"),
        (CRAWL_ITEMS, "crawl-log"),
    ],
)
def test_a_file_is_known_by_its_begin(text: str, name: str) -> None:
    """No kind needs to be said of what tells itself."""
    assert registry.recognised(text[:8192]).name == name


def test_a_file_of_no_kind_is_told_what_kinds_there_are() -> None:
    """What was seen of it, and every kind with what it is."""
    with pytest.raises(ForeignFileError) as caught:
        registry.recognised("hello,world\n1,2\n")
    assert "hello,world" in str(caught.value)
    assert all(name in str(caught.value) for name in registry.names())


def test_kinds_by_name() -> None:
    """An unknown one is told the nearest; one name is taken once."""
    with pytest.raises(ForeignFileError, match="nearest: perfmon"):
        registry.format_named("perfmom")
    with pytest.raises(ValueError, match="registered already"):
        registry.register(Perfmon())

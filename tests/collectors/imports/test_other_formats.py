"""node_exporter's ranges, any CSV with a mapping, SharePoint's crawl log, and how kinds are told apart."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from collectors.imports.logs import CRAWL_HISTORY, CRAWL_ITEMS, IOSTAT, SADF, perfmon, row

from pinchpoint_collectors.imports import registry
from pinchpoint_collectors.imports.checked import checked
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
    given = settings or Settings()
    samples = format_.read(text.splitlines(keepends=True), given, found)
    for sample in checked(samples, found, given.mapping):
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
    """Nobody knows when in it a counter rose; it is said."""
    content = json.loads(
        matrix((named("node_disk_writes_completed_total", device="sda"), list(range(1, 11))))
    )
    del content["data"]["result"][0]["values"][5:8]
    series, found = read(NodeExporter(), json.dumps(content))
    times = [sample.time_ns // 10**9 - T for sample in series["disk.writes_per_s", "sda"]]
    assert times == [15, 30, 45, 60, 135]
    assert any(note.startswith("nothing was recorded of db1 once from") for note in found.notes)


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
        (CSV.replace("1;1\n", "1;1;7\n", 1), "6 cells, the header has 5", 2),
        (CSV.replace("25,5", "2.5"), "mind the decimal mark", 4),
        (CSV.replace("25,5", "-255"), "cpu.busy_ratio: 1 of 1 value above 1, median 3.55", 4),
        (CSV.replace("12,5", "-12500"), "disk.write_latency_s vol1: 1 of 1 value below 0, median -12.5", 4),
        (CSV.replace("writes\n", "cpu idle\n"), "several columns are named 'cpu idle'", 1),
    ],
)
def test_a_csv_that_does_not_fit_its_mapping(text: str, words: str, at: int) -> None:
    """The line, what was found, what is allowed."""
    with pytest.raises(ForeignFileError, match=words) as caught:
        read(MappedCsv(), text, Settings(mapping=MAPPING))
    assert caught.value.line == at


def plain(**settings: Any) -> Settings:
    """A mapping of a CSV with a time and one column."""
    mapping: dict[str, Any] = {"time": "t", "columns": {"v": MappedColumn("cpu.busy_ratio")}, **settings}
    return Settings(mapping=CsvMapping(**mapping))


def test_milliseconds_that_were_taken_for_seconds_are_refused() -> None:
    """By what was outstanding, where the rate is there; else by what no system waits for."""
    columns = {"v": MappedColumn("disk.write_latency_s", weight="n")}
    fine, _ = read(
        MappedCsv(), f"t,v,n\n{T},1,9\n{T + 1},3.6,288\n", plain(time_format="unix", columns=columns)
    )
    assert [one.value for one in fine["disk.write_latency_s", ""]] == [3.6]
    with pytest.raises(
        ForeignFileError, match=r"12.5 s .*with 15,000 outstanding .* `scale: 0.001`"
    ) as caught:
        read(MappedCsv(), f"t,v,n\n{T},1,9\n{T + 1},12.5,1200\n", plain(time_format="unix", columns=columns))
    assert caught.value.line == 3
    alone = {"v": MappedColumn("disk.read_latency_s")}
    with pytest.raises(ForeignFileError, match=r"above 60, median 75: perhaps milliseconds"):
        read(MappedCsv(), f"t,v\n{T},1\n{T + 1},75\n", plain(time_format="unix", columns=alone))


def test_a_percentage_that_was_taken_for_a_share_is_refused() -> None:
    """Otherwise a machine would be 3700 % busy; a rounding above 1 is none."""
    series, _ = read(MappedCsv(), f"t,v\n{T},0.5\n{T + 1},1.01\n", plain(time_format="unix"))
    assert [one.value for one in series["cpu.busy_ratio", ""]] == [1.01]
    with pytest.raises(
        ForeignFileError,
        match=r"above 1, median 37: perhaps percent; .*`scale: 0.01`",
    ):
        read(MappedCsv(), f"t,v\n{T},37\n{T + 1},37\n", plain(time_format="unix"))


def test_times_in_milliseconds() -> None:
    """As they are where the mapping says so; otherwise that is what the error says."""
    text = f"t,v\n{T}000,0.5\n{T}500,0.25\n"
    series, _ = read(MappedCsv(), text, plain(time_format="unix_ms"))
    [sample] = series["cpu.busy_ratio", ""]
    assert (sample.time_ns, sample.interval_s, sample.value) == (T * 10**9 + 500_000_000, 0.5, 0.25)
    with pytest.raises(ForeignFileError, match=r"no second since 1970.*format: unix_ms") as caught:
        read(MappedCsv(), text, plain(time_format="unix"))
    assert caught.value.line == 2


def test_rows_of_one_time_are_one_row_too_many() -> None:
    """With an interval rows need no order, but two of one time would be added up."""
    rows = f"t,v\n{T + 30},0.5\n{T},0.25\n{T + 15},1\n"
    series, _ = read(MappedCsv(), rows, plain(time_format="unix", interval_s=15.0))
    assert len(series["cpu.busy_ratio", ""]) == 3
    with pytest.raises(ForeignFileError, match="another row of the same host and time") as caught:
        read(MappedCsv(), f"{rows}{T},0.5\n", plain(time_format="unix", interval_s=15.0))
    assert caught.value.line == 5


def test_points_between_thousands_are_no_decimal_points() -> None:
    """Where the comma is: 1.000 is a thousand, 12.345.678,5 millions, and 2.5 nobody's number."""
    for text, value in (("1.000", 1000.0), ("12.345.678,5", 12_345_678.5), ("0,5", 0.5), ("-1.000,25", None)):
        given = plain(
            time_format="unix", delimiter=";", decimal=",", columns={"v": MappedColumn("disk.outstanding")}
        )
        rows = f"t;v\n{T};0\n{T + 1};{text}\n"
        if value is None:
            with pytest.raises(ForeignFileError, match=r"1 of 1 value below 0, median -1,000.25"):
                read(MappedCsv(), rows, given)
            continue
        series, _ = read(MappedCsv(), rows, given)
        assert [one.value for one in series["disk.outstanding", ""]] == [value]


@pytest.mark.parametrize(
    ("text", "given", "value"),
    [
        ("1,234.5", {}, 1234.5),
        ("1,234,567", {}, 1_234_567.0),
        ("1,234", {"thousands": ","}, 1234.0),
        ("1 234.5", {}, 1234.5),
        ("1\u202f234,5", {"decimal": ","}, 1234.5),
        ("1'234'567.25", {}, 1_234_567.25),
        ("1\u2019234", {"decimal": ","}, 1234.0),
        ("12.5 %", {}, 12.5),
        ("#N/A", {}, None),
        ("inf", {}, None),
    ],
)
def test_thousands_in_groups(text: str, given: dict[str, Any], value: float | None) -> None:
    """As America, Switzerland and France write them, and what a workbook writes where there is no value."""
    settings = plain(
        time_format="unix", delimiter=";", columns={"v": MappedColumn("disk.outstanding")}, **given
    )
    series, _ = read(MappedCsv(), f"sep=;\nt;v\n{T};0\n{T + 1};{text}\n", settings)
    assert [one.value for one in series["disk.outstanding", ""]] == [value]


@pytest.mark.parametrize("text", ["1,234", "12,5", "1.234,5", "1,23,456", "12 34"])
def test_a_mark_that_could_be_either_is_refused(text: str) -> None:
    """1,234 is a thousand or one and a bit: what it is the mapping must say."""
    settings = plain(time_format="unix", delimiter=";", columns={"v": MappedColumn("disk.outstanding")})
    with pytest.raises(ForeignFileError, match=r"decimal mark \('\.'\).*`thousands:` in the mapping"):
        read(MappedCsv(), f"t;v\n{T};0\n{T + 1};{text}\n", settings)


def test_a_row_after_a_gap_stands_for_one_usual_interval() -> None:
    """An array that told nothing for an hour tells of its last minute afterwards, and the gap is said."""
    times = [0, 60, 120, 180, 240, 3840, 3900]
    text = "t,v\n" + "".join(f"{T + at},0.5\n" for at in times)
    series, found = read(MappedCsv(), text, plain(time_format="unix"))
    assert [each.interval_s for each in series["cpu.busy_ratio", ""]] == [60.0] * 6
    assert any(note.startswith("nothing was recorded once from ") for note in found.notes)


def test_an_hour_that_comes_twice_goes_on() -> None:
    """By the zone's rules: 02:00 to 02:45 in summer, then once more in winter."""
    clocks = ("01:45", "02:00", "02:15", "02:30", "02:45", "02:00", "02:15", "02:30", "02:45", "03:00")
    text = "t,v\n" + "".join(f"2026-10-25 {clock},0.5\n" for clock in clocks)
    series, _ = read(MappedCsv(), text, replace(plain(), zone=ZoneInfo("Europe/Berlin")))
    assert {sample.interval_s for sample in series["cpu.busy_ratio", ""]} == {900.0}
    with pytest.raises(ForeignFileError, match="not later"):
        read(MappedCsv(), text, plain())


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


@pytest.mark.parametrize(
    ("begun", "ended"),
    [
        ("2026/11/20 9:00:00", "2026/11/20 9:19:28"),
        ("20/11/2026 9:00:00 AM", "20/11/2026 9:19:28 AM"),
        ("20-11-2026 09:00:00", "20-11-2026 09:19:28"),
        ("11/20/2026 9:00:00\u202fAM", "11/20/2026 9:19:28\u202fAM"),
    ],
)
def test_a_crawl_history_of_any_culture(begun: str, ended: str) -> None:
    """Japan's, Australia's, Denmark's, and a newer America's; with tabs between the cells."""
    text = CRAWL_HISTORY.replace("11/20/2026 9:00:00 AM", begun).replace("11/20/2026 9:19:28 AM", ended)
    series, found = read(CrawlLog(), text.replace('","', '"\t"'))
    plain, _ = read(CrawlLog(), CRAWL_HISTORY)
    assert series.keys() == plain.keys()
    times = {each.time_ns for samples in series.values() for each in samples}
    assert times == {round(datetime(2026, 11, 20, 9, 19, 28, tzinfo=UTC).timestamp() * 1e9)}
    assert not any("its dates" in note for note in found.notes)


def test_days_that_could_be_months_are_said() -> None:
    """3/11 is in March or in November; 13534 crawled documents are no 13.534."""
    text = CRAWL_HISTORY.replace("11/20/2026 9:00:00 AM", "03/11/2026 09:00:00")
    text = text.replace("11/20/2026 9:19:28 AM", "03/11/2026 09:19:28").replace('"13534"', '"13.534"')
    series, found = read(CrawlLog(), text)
    assert any("is 11 March 2026, or 3 November 2026" in note for note in found.notes)
    [rate] = series["search.documents_per_s", "Local SharePoint sites"]
    assert rate.value is not None
    assert rate.value * rate.interval_s == pytest.approx(13_534)


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

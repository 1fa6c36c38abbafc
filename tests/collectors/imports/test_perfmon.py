"""Logs of Windows' Performance Monitor."""

# ruff: noqa: DTZ001 -- perfmon writes local times
from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from collectors.imports.logs import COUNTERS, DISK, HEADER, line, perfmon, row, stamp

from pinchpoint_collectors.imports.perfmon import Perfmon, registry_names
from pinchpoint_collectors.imports.record import ForeignFileError, Found, Settings
from pinchpoint_collectors.record import Sample

NOTHING = Settings()


def read(text: str, settings: Settings = NOTHING) -> tuple[dict[tuple[str, str], list[Sample]], Found]:
    """(metric, instance) -> its samples; what else was found."""
    found = Found()
    series: dict[tuple[str, str], list[Sample]] = {}
    for sample in Perfmon().read(text.splitlines(keepends=True), settings, found):
        series.setdefault((sample.metric, sample.instance), []).append(sample)
    return series, found


def utc_ns(*when: int) -> int:
    return round(datetime(*when, tzinfo=UTC).timestamp() * 1e9)  # type: ignore[misc, arg-type]


def test_counters_become_our_metrics_in_base_units() -> None:
    """Per cent become ratios, idle becomes busy, megabytes bytes; a mean carries its operations."""
    series, found = read(perfmon([row(cpu=93.0, write_s=0.0125, writes=200.0)]))
    [cpu] = series["cpu.busy_ratio", ""]
    assert cpu.host == "SQL1"
    assert cpu.value == pytest.approx(0.93)
    assert cpu.interval_s == pytest.approx(15.0)
    [write] = series["disk.write_latency_s", "L:"]
    assert write.value == pytest.approx(0.0125)
    assert write.weight == pytest.approx(200 * 15.0)
    values = {key: samples[0].value for key, samples in series.items()}
    assert values["disk.busy_ratio", "L:"] == pytest.approx(0.395)
    assert values["disk.outstanding", "L:"] == pytest.approx(2.5)
    assert values["mem.available_bytes", ""] == 2048 * 1024 * 1024
    assert values["cpu.waiting_threads", ""] == 3
    assert values["disk.write_bytes_per_s", "L:"] == 200 * 8192
    assert found.facts("SQL1")["cores"] == 2
    assert found.facts("SQL1")["usable_cores"] == [0, 1]


def test_no_operation_has_no_latency() -> None:
    """Windows writes 0 for the latency of reads there were none of; here that is not measured."""
    series, _ = read(perfmon([row()]))
    [reading] = series["disk.read_latency_s", "L:"]
    assert reading.value is None
    assert reading.weight == 0


def test_the_same_disk_is_counted_once() -> None:
    """Neither the sum of all disks nor the physical disk below a drive is a disk of its own."""
    series, _ = read(perfmon([row()]))
    assert {instance for metric, instance in series if metric.startswith("disk.")} == {"L:"}


def test_a_log_with_the_sum_of_all_disks_only_says_what_that_hides() -> None:
    """The slow log disk drowns in ``_Total``."""
    counters = [r"\LogicalDisk(_Total)\Avg. Disk sec/Write", r"\Memory\Available MBytes"]
    series, found = read(perfmon([["0.004", "100"]], counters))
    assert series["disk.write_latency_s", "_Total"][0].value == 0.004
    both, _ = read(perfmon([["0.004", "0.04"]], [counters[0], counters[0].replace("_Total", "L:")]))
    assert {instance for _, instance in both} == {"L:"}
    assert any("_Total" in note and r"\LogicalDisk(*)\*" in note for note in found.notes)


def test_times_are_utc_by_the_header() -> None:
    """``(-60)``: an hour is taken from the local time; the end of the interval is what is stamped."""
    series, _ = read(perfmon([row()], begin=datetime(2026, 11, 20, 9, 0)))
    assert series["cpu.busy_ratio", ""][0].time_ns == utc_ns(2026, 11, 20, 8, 0, 15)


def across(begin: datetime, jump: timedelta, header: str) -> str:
    """A reading each minute; after the second one the local clock jumps."""
    times = [begin, begin + timedelta(minutes=1)]
    times += [times[-1] + jump + timedelta(minutes=number) for number in (1, 2)]
    rows = [line([stamp(moment), "10"]) for moment in times]
    return line([header, rf"\\A{COUNTERS[0]}"]) + "".join(rows)


AUTUMN = across(
    datetime(2026, 10, 25, 2, 58), -timedelta(hours=1), "(PDH-CSV 4.0) (W. Europe Daylight Time)(-120)"
)
SPRING = across(datetime(2026, 3, 29, 1, 58), timedelta(hours=1), HEADER)


@pytest.mark.parametrize(("text", "what"), [(AUTUMN, "comes twice"), (SPRING, "is missing")])
def test_a_clock_change_in_the_middle_leaves_time_going_on(text: str, what: str) -> None:
    """The header's distance from UTC is written once: an hour doubled or skipped is no hour of data."""
    series, found = read(text)
    samples = series["cpu.busy_ratio", ""]
    assert [sample.interval_s for sample in samples] == [60.0, 60.0, 60.0]
    assert any(what in note for note in found.notes)


@pytest.mark.parametrize("text", [AUTUMN, SPRING])
def test_with_the_zone_its_rules_are_followed(text: str) -> None:
    """The same times as without, and nothing to be noted."""
    plain, _ = read(text)
    ruled, found = read(text, Settings(zone=ZoneInfo("Europe/Berlin")))
    assert [s.time_ns for s in ruled["cpu.busy_ratio", ""]] == [
        s.time_ns for s in plain["cpu.busy_ratio", ""]
    ]
    assert not any("hour" in note for note in found.notes)


@pytest.mark.parametrize("minutes", [40, 60, 120])
def test_readings_an_hour_apart_are_no_clock_change(minutes: int) -> None:
    """A log of a week with a reading an hour goes on as its times say."""
    text = perfmon([row() for _ in range(6)], begin=datetime(2026, 11, 20, 9, 0), every_s=60.0 * minutes)
    series, found = read(text)
    assert {sample.interval_s for sample in series["cpu.busy_ratio", ""]} == {60.0 * minutes}
    assert not any("hour" in note for note in found.notes)


def test_a_clock_change_among_readings_an_hour_apart() -> None:
    """The same local time comes twice, an hour apart."""
    times = [datetime(2026, 10, 24, 22) + timedelta(hours=number) for number in range(5)]
    rows = [line([stamp(moment), "10"]) for moment in [*times, times[-1], times[-1] + timedelta(hours=1)]]
    header = line(["(PDH-CSV 4.0) (W. Europe Daylight Time)(-120)", rf"\\A{COUNTERS[0]}"])
    series, found = read(header + "".join(rows))
    assert {sample.interval_s for sample in series["cpu.busy_ratio", ""]} == {3600.0}
    assert any("comes twice" in note for note in found.notes)


def test_a_gap_of_an_hour_by_day_is_a_gap() -> None:
    """Clocks are not changed at noon."""
    series, found = read(across(datetime(2026, 3, 29, 12, 0), timedelta(hours=1), HEADER))
    assert [sample.interval_s for sample in series["cpu.busy_ratio", ""]] == [60.0, 3660.0, 60.0]
    assert not any("hour" in note for note in found.notes)


def test_after_a_gap_a_value_of_the_moment_stands_for_itself() -> None:
    """Nobody read between: memory as it is now says nothing of three hours, a rate PDH counted does."""
    rows = [row(), *(row() for _ in range(5))]
    text = perfmon(rows).splitlines(keepends=True)
    late = [each.replace('"11/20/2026 09:', '"11/20/2026 12:') for each in text[5:]]
    series, found = read("".join([*text[:5], *late]))
    three_hours = 3 * 3600.0 + 15
    assert [each.interval_s for each in series["cpu.busy_ratio", ""]] == [15.0] * 3 + [three_hours] + [
        15.0
    ] * 2
    assert {each.interval_s for each in series["mem.available_bytes", ""]} == {15.0}
    assert {each.interval_s for each in series["cpu.waiting_threads", ""]} == {15.0}
    assert any(
        note == "nothing was recorded once from 2026-11-20 08:00:45 to 2026-11-20 11:00:45 UTC"
        for note in found.notes
    )


def test_a_clock_that_was_put_right_costs_the_rows_it_repeats() -> None:
    """A virtual machine's time service puts it back by 40 s: the log goes on when the time does."""
    text = perfmon([row() for _ in range(9)]).splitlines(keepends=True)
    put_back = [
        each.replace(stamp(moment), stamp(moment - timedelta(seconds=40)))
        for number, each in enumerate(text[6:], 5)
        for moment in [datetime(2026, 11, 20, 9, 0, 0, 123000) + timedelta(seconds=15 * number)]
    ]
    series, found = read("".join([*text[:6], *put_back]))
    assert [each.interval_s for each in series["cpu.busy_ratio", ""]] == [15.0] * 4 + [5.0, 15.0, 15.0]
    [said] = [note for note in found.notes if "put back" in note]
    assert "first after 2026-11-20 09:01:00 local time" in said


def test_time_that_goes_back_otherwise_is_an_error_with_its_line() -> None:
    """Half an hour back is no clock change: whose times are right nobody can know."""
    text = across(datetime(2026, 3, 29, 12, 0), -timedelta(minutes=30), HEADER)
    with pytest.raises(ForeignFileError, match="time goes back") as caught:
        read(text)
    assert caught.value.line == 4


def test_words_at_the_end_may_have_a_comma() -> None:
    """Of a single counter they are two cells, as a reading is."""
    text = perfmon([["97.5"]], [r"\Processor(_Total)\% Processor Time"], header="(PDH-CSV 4.0)")
    series, _ = read(text + "\r\nVorgang wird beendet, bitte warten...\r\n")
    assert [each.value for each in series["cpu.busy_ratio", ""]] == [0.975]


def test_typeperf_has_no_zone_and_ends_with_words() -> None:
    """Its times are taken for UTC, which is said; the words after its last reading are no reading."""
    text = "\r\n" + perfmon([row()], header="(PDH-CSV 4.0)", begin=datetime(2026, 11, 20, 9, 0))
    text += "\r\nVorgang wird beendet, bitte warten...\r\nDer Befehl wurde erfolgreich ausgeführt.\r\n"
    series, found = read(text)
    assert series["cpu.busy_ratio", ""][0].time_ns == utc_ns(2026, 11, 20, 9, 0, 15)
    assert found.zone_assumed
    assert any("--zone" in note for note in found.notes)


@pytest.mark.parametrize("delimiter", ["\t", ";"])
def test_tsv_and_what_a_spreadsheet_saved(delimiter: str) -> None:
    """Decimal commas come with the semicolon."""
    text = perfmon([row(cpu=50.5)], delimiter=delimiter, header=HEADER.replace("CSV", "TSV"))
    if delimiter == ";":
        text = text.replace("50.5", "50,5").replace("TSV", "CSV")
    series, _ = read(text)
    assert series["cpu.busy_ratio", ""][0].value == pytest.approx(0.505)


GERMAN = (
    r"\Prozessor(_Total)\Prozessorzeit (%)",
    r"\Logischer Datenträger(L:)\Mittlere Sek./Schreibvorgänge",
    r"\Logischer Datenträger(L:)\Schreibvorgänge/s",
    r"\Logischer Datenträger(L:)\Leerlaufzeit (%)",
)
FRENCH = (
    r"\Processeur(_Total)\% temps processeur",
    r"\Disque logique(L:)\Moyenne disque s/écriture",
    r"\Disque logique(L:)\Écritures disque/s",
    "\\Disque logique(L:)\\% d\u2019inactivité",
)
SPANISH = (
    r"\Procesador(_Total)\% de tiempo de procesador",
    r"\Disco lógico(L:)\Promedio de segundos de disco/escritura",
    r"\Disco lógico(L:)\Escrituras en disco/s",
    r"\Disco lógico(L:)\% de tiempo inactivo",
)


@pytest.mark.parametrize("counters", [GERMAN, FRENCH, SPANISH])
@pytest.mark.parametrize("code_page", ["utf-8", "cp850"])
def test_localised_names(counters: tuple[str, ...], code_page: str) -> None:
    """Also where the log was written in the console's code page, whose letters nobody can know."""
    text = perfmon([["40", "0.012", "100", "70"]], counters)
    if code_page != "utf-8":
        text = text.replace("\u2019", "'").encode(code_page).decode("utf-8", errors="replace")
    series, _ = read(text)
    values = {key: samples[0].value for key, samples in series.items()}
    assert values == pytest.approx(
        {
            ("cpu.busy_ratio", ""): 0.40,
            ("disk.write_latency_s", "L:"): 0.012,
            ("disk.writes_per_s", "L:"): 100.0,
            ("disk.busy_ratio", "L:"): 0.30,
        }
    )


def test_a_language_nobody_knows_is_read_with_windows_own_list() -> None:
    """The registry's indices are alike in all languages."""
    counters = (
        r"\Processzor(_Total)\A processzor kihasználtsága (%)",
        r"\Memória\Rendelkezésre álló memória (MB)",
    )
    text = perfmon([["40", "100"]], counters)
    with pytest.raises(ForeignFileError, match=r"German.*--names"):
        read(text)
    names = registry_names(
        ["238", "Processzor", "6", "A processzor kihasználtsága (%)", "4", "Memória", "", "1382",
         "Rendelkezésre álló memória (MB)"]
    )  # fmt: skip
    series, _ = read(text, Settings(names=names))
    assert series["cpu.busy_ratio", ""][0].value == pytest.approx(0.40)
    assert series["mem.available_bytes", ""][0].value == 100 * 1024 * 1024


def test_a_list_of_names_that_is_none() -> None:
    """The line is said."""
    with pytest.raises(ForeignFileError, match="index") as caught:
        registry_names(["2", "System", "not a number"])
    assert caught.value.line == 3


def test_an_instance_that_comes_late_is_not_there_before() -> None:
    """Blank until it appears: no sample; blank afterwards: not measured."""
    counters = [rf"{DISK}\Disk Writes/sec", r"\LogicalDisk(X:)\Disk Writes/sec"]
    series, _ = read(perfmon([["1", " "], ["2", "7"], ["3", ""], ["4", "-1"]], counters))
    assert [sample.value for sample in series["disk.writes_per_s", "X:"]] == [7.0, None, None]
    assert len(series["disk.writes_per_s", "L:"]) == 4


def test_values_below_nothing_are_not_measured() -> None:
    """Typeperf writes -1 where a counter could not be read."""
    _, found = read(perfmon([["4"], ["-1"]], [rf"{DISK}\Disk Writes/sec"]))
    assert any("below 0" in note for note in found.notes)


def test_a_mount_point_and_a_named_instance() -> None:
    """Paths within a counter's path, and SQL Server beside another one."""
    counters = [r"\LogicalDisk(D:\mnt\log)\Disk Writes/sec", r"\MSSQL$CRM:SQL Statistics\Batch Requests/sec"]
    series, _ = read(perfmon([["5", "120"]], counters))
    assert series["disk.writes_per_s", r"D:\mnt\log"][0].value == 5
    assert series["db.batches_per_s", ""][0].value == 120


def test_two_servers_on_one_machine_are_told_apart() -> None:
    """As of kind ``windows``: each that is not the default one puts its name before the instance."""
    counters = [
        rf"\{server}:Databases({database})\Transactions/sec"
        for server in ("SQLServer", "MSSQL$CRM")
        for database in ("_Total", "orders")
    ]
    series, _ = read(perfmon([["1", "2", "3", "4"]], counters))
    values = {instance: samples[0].value for (_, instance), samples in series.items()}
    assert values == {"": 1, "orders": 2, "CRM/": 3, "CRM/orders": 4}


@pytest.mark.parametrize("word", ["nan", "-nan(ind)", "inf", "1.#QNAN", "-1.#IND"])
def test_what_is_no_number_is_not_measured(word: str) -> None:
    """Neither 0 nor without end, whichever C library of Windows wrote it."""
    series, _ = read(perfmon([["7"], [word]], [rf"{DISK}\Disk Writes/sec"]))
    assert [sample.value for sample in series["disk.writes_per_s", "L:"]] == [7.0, None]


def test_processor_information_is_taken_where_both_are_there() -> None:
    """``Processor`` sees one group of 64 only."""
    counters = [
        r"\Processor(_Total)\% Processor Time",
        r"\Processor Information(_Total)\% Processor Time",
        r"\Processor Information(0,3)\% Processor Time",
        r"\Processor Information(0,_Total)\% Processor Time",
    ]
    series, _ = read(perfmon([["10", "20", "30", "40"]], counters))
    assert series["cpu.busy_ratio", ""][0].value == pytest.approx(0.2)
    assert series["cpu.busy_ratio", "3"][0].value == pytest.approx(0.3)


def test_a_last_line_that_is_cut_off_is_left_out_and_said() -> None:
    """The log of a machine that stopped."""
    text = perfmon([row(), row()])[:-40]
    series, found = read(text)
    assert len(series["cpu.busy_ratio", ""]) == 1
    assert any("cut off" in note for note in found.notes)


@pytest.mark.parametrize(
    ("damage", "words", "at"),
    [
        (lambda lines: [lines[0], lines[1], '"11/20/2026 09:00:15.123","3"\r\n', *lines[2:]], "2 cells", 3),
        (lambda lines: [lines[0], lines[1].replace("11/20/2026", "20.11.2026"), *lines[2:]], "MM/DD/YYYY", 2),
        (lambda lines: [*lines[:2], lines[2].replace("60.5", "sixty"), *lines[3:]], "number", 3),
        (lambda lines: [lines[0]], "not a single row", None),
    ],
)
def test_a_damaged_file_is_an_error_with_its_line(damage, words: str, at: int | None) -> None:  # type: ignore[no-untyped-def]
    """And with what is allowed there."""
    text = "".join(damage(perfmon([row(), row()]).splitlines(keepends=True)))
    with pytest.raises(ForeignFileError, match=words) as caught:
        read(text)
    assert caught.value.line == at


def test_what_has_no_counterpart_is_said() -> None:
    """Counters of processes are left out, with an example."""
    _, found = read(perfmon([row()]))
    assert any(r"\Process(sqlservr)" in note for note in found.notes)


def test_a_log_that_a_spreadsheet_saved_has_no_quotes() -> None:
    """Whatever its delimiter: a semicolon where the comma is the decimal mark."""
    for delimiter, mark in ((",", "."), (";", ","), ("\t", ",")):
        rows = [[cell.replace(".", mark) for cell in row()] for _ in range(2)]
        series, _ = read(perfmon(rows, delimiter=delimiter).replace('"', ""))
        assert series["cpu.busy_ratio", ""][-1].value == pytest.approx(0.1), delimiter
        assert series["disk.write_latency_s", "L:"][-1].value == pytest.approx(0.002), delimiter


def test_logs_that_were_put_one_behind_the_other_are_told_apart() -> None:
    """The second one has a header of its own: its line is said."""
    one = perfmon([row(), row()])
    with pytest.raises(ForeignFileError, match="another log begins here; split the file") as caught:
        read(one + one)
    assert caught.value.line == 5


def test_two_rows_of_one_time() -> None:
    """That is no clock change, and no time that goes back."""
    with pytest.raises(ForeignFileError, match="two rows have the time") as caught:
        read(perfmon([row(), row()], every_s=0.0))
    assert caught.value.line == 3

"""What sadf and iostat print as JSON."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from collectors.imports.logs import IOSTAT, SADF

from pinchpoint_collectors.imports.iostat import Iostat
from pinchpoint_collectors.imports.record import ForeignFileError, Format, Found, Settings
from pinchpoint_collectors.imports.sadf import Sadf
from pinchpoint_collectors.record import Sample


def read(
    format_: Format, text: str, settings: Settings | None = None
) -> tuple[dict[tuple[str, str], Sample], Found]:
    """(metric, instance) -> its one sample; what else was found."""
    found = Found()
    samples = list(format_.read(text.splitlines(keepends=True), settings or Settings(), found))
    return {(sample.metric, sample.instance): sample for sample in samples}, found


def utc_ns(*when: int) -> int:
    return round(datetime(*when, tzinfo=UTC).timestamp() * 1e9)  # type: ignore[misc, arg-type]


def test_sadf_in_our_units() -> None:
    """A kB is 1,024 bytes, milliseconds seconds; reads and writes are one figure."""
    samples, found = read(Sadf(), SADF)
    values = {key: sample.value for key, sample in samples.items()}
    assert values["cpu.busy_ratio", ""] == pytest.approx(0.25)
    assert values["cpu.wait_ratio", ""] == pytest.approx(0.10)
    assert values["cpu.busy_ratio", "0"] == pytest.approx(0.50)
    assert values["cpu.run_queue", ""] == 3
    assert values["mem.available_bytes", ""] == 1_000_000 * 1024
    assert values["mem.available_ratio", ""] == pytest.approx(0.25)
    assert values["mem.paged_in_bytes_per_s", ""] == 2 * 4096
    assert values["disk.transfers_per_s", "sda"] == 120
    assert values["disk.transfer_latency_s", "sda"] == pytest.approx(0.015)
    assert samples["disk.transfer_latency_s", "sda"].weight == pytest.approx(120 * 600)
    assert values["disk.transfer_latency_s", "sdb"] is None
    assert values["disk.write_bytes_per_s", "sda"] == 960 * 1024
    assert values["disk.busy_ratio", "sda"] == pytest.approx(0.88)
    assert values["net.received_bytes_per_s", "eth0"] == 2048
    assert values["net.errors_per_s", "eth0"] == pytest.approx(1.5)
    assert values["pressure.cpu_ratio", ""] == pytest.approx(0.125)
    assert samples["cpu.busy_ratio", ""].time_ns == utc_ns(2026, 11, 20, 0, 10, 1)
    assert samples["cpu.busy_ratio", ""].interval_s == 600
    assert found.facts("db1")["cores"] == 2


def test_sadf_of_older_versions_counts_sectors() -> None:
    """512 bytes each."""
    old = SADF.replace('"rkB": 10.00, "wkB": 960.00', '"rd_sec": 4.00, "wr_sec": 8.00')
    old = old.replace('"aqu-sz"', '"avgqu-sz"')
    samples, _ = read(Sadf(), old)
    assert samples["disk.write_bytes_per_s", "sda"].value == 8 * 512
    assert samples["disk.outstanding", "sda"].value == 1.8


def test_sadf_with_local_times_says_what_it_took_them_for() -> None:
    """And takes the zone it is given."""
    local = SADF.replace('"utc": 1', '"utc": 0')
    _, found = read(Sadf(), local)
    assert found.zone_assumed
    assert any("--zone" in note for note in found.notes)


def test_outputs_of_sadf_that_stand_one_behind_the_other() -> None:
    """Several hosts, and several days of one; what comes twice counts once."""
    next_day = SADF.replace("2026-11-20", "2026-11-21")
    text = SADF + SADF.replace('"db1"', '"db2"') + next_day + SADF + SADF[:200]
    found = Found()
    with pytest.raises(ForeignFileError, match="ends in the middle"):
        list(Sadf().read(text.splitlines(keepends=True), Settings(), found))
    found = Found()
    text = text.removesuffix(SADF[:200])
    samples = list(Sadf().read(text.splitlines(keepends=True), Settings(), found))
    busy = [
        (each.host, each.time_ns) for each in samples if each.metric == "cpu.busy_ratio" and not each.instance
    ]
    first, second = utc_ns(2026, 11, 20, 0, 10, 1), utc_ns(2026, 11, 21, 0, 10, 1)
    assert busy == [("db1", first), ("db2", first), ("db1", second)]
    assert found.notes == ["records of db1 that are not later than the one before were left out"]


def test_pages_of_an_unknown_machine_are_left_out() -> None:
    """How large they are nobody said."""
    samples, found = read(Sadf(), SADF.replace('"x86_64"', '"ppc64le"'))
    assert ("mem.paged_in_bytes_per_s", "") not in samples
    assert any("ppc64le" in note for note in found.notes)


def test_iostat_in_our_units_without_its_first_report() -> None:
    """The first covers the time since the machine started; a partition shows its disk's I/O once more."""
    samples, found = read(Iostat(), IOSTAT)
    values = {key: sample.value for key, sample in samples.items()}
    assert values["cpu.busy_ratio", ""] == pytest.approx(0.15)
    assert values["disk.writes_per_s", "sda"] == 100
    assert values["disk.write_latency_s", "sda"] == pytest.approx(0.004)
    assert samples["disk.write_latency_s", "sda"].weight == pytest.approx(500)
    assert values["disk.read_latency_s", "sda"] is None
    assert values["disk.flushes_per_s", "sda"] == 20
    assert values["disk.flush_latency_s", "sda"] == pytest.approx(0.006)
    assert values["disk.write_bytes_per_s", "sda"] == 800 * 1024
    assert values["disk.outstanding", "sda"] == pytest.approx(0.52)
    assert {instance for metric, instance in samples if metric.startswith("disk.")} == {"sda"}
    assert samples["cpu.busy_ratio", ""].time_ns == utc_ns(2026, 11, 20, 8, 0, 5)
    assert samples["cpu.busy_ratio", ""].interval_s == 5
    assert any("first report" in note for note in found.notes)


def test_iostat_without_times_needs_them() -> None:
    """The error says how to record them, and how to say them afterwards."""
    content = json.loads(IOSTAT)
    for report in content["sysstat"]["hosts"][0]["statistics"]:
        del report["timestamp"]
    text = json.dumps(content)
    with pytest.raises(ForeignFileError, match=r"--start.*--every"):
        read(Iostat(), text)
    begin_s = datetime(2026, 11, 20, 8, 0, tzinfo=UTC).timestamp()
    samples, _ = read(Iostat(), text, Settings(start_s=begin_s, every_s=5.0))
    assert samples["cpu.busy_ratio", ""].time_ns == utc_ns(2026, 11, 20, 8, 0, 5)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("2026年11月20日 08時00分00秒", "2026年11月20日 08時00分05秒"),
        ("20/11/26 08:00:00", "20/11/26 08:00:05"),
        ("20/11/2026 08:00:00", "20/11/2026 08:00:05"),
        ("20-11-26 08:00:00", "20-11-26 08:00:05"),
    ],
)
def test_iostat_in_other_locales(first: str, second: str) -> None:
    """Japan's, Britain's, France's, the Netherlands'."""
    text = IOSTAT.replace("2026-11-20T09:00:00+0100", first).replace("2026-11-20T09:00:05+0100", second)
    samples, found = read(Iostat(), text)
    assert samples["cpu.busy_ratio", ""].time_ns == utc_ns(2026, 11, 20, 8, 0, 5)
    assert not any("its dates" in note for note in found.notes)


def test_iostat_in_an_english_locale() -> None:
    """Its times have no zone, which is said."""
    text = IOSTAT.replace("2026-11-20T09:00:00+0100", "11/20/2026 09:00:00 AM").replace(
        "2026-11-20T09:00:05+0100", "11/20/2026 09:00:05 AM"
    )
    samples, found = read(Iostat(), text)
    assert samples["cpu.busy_ratio", ""].time_ns == utc_ns(2026, 11, 20, 9, 0, 5)
    assert found.zone_assumed


@pytest.mark.parametrize(("format_", "text"), [(Sadf(), SADF), (Iostat(), IOSTAT)])
def test_a_recording_that_was_cut_off_says_so(format_: Format, text: str) -> None:
    """JSON that ends in the middle of its first report: there is nothing that could be kept."""
    with pytest.raises(ForeignFileError, match="cut off") as caught:
        read(format_, text[: text.index("timestamp") + 40])
    assert caught.value.line is not None


def test_they_know_each_other_apart() -> None:
    """Both have one frame."""
    assert Sadf().recognises(SADF)
    assert not Iostat().recognises(SADF)
    assert Iostat().recognises(IOSTAT)
    assert not Sadf().recognises(IOSTAT)


def test_newer_versions_of_sadf_name_the_zone() -> None:
    """``tz`` in the place of ``utc``: UTC is none that was taken for granted, another one is named."""
    _, found = read(Sadf(), SADF.replace('"utc": 1', '"tz": "UTC"'))
    assert not found.zone_assumed
    _, local = read(Sadf(), SADF.replace('"utc": 1', '"tz": "CET"'))
    assert local.zone_assumed
    assert any("(CET)" in note for note in local.notes)


def test_an_interval_nobody_measured_is_no_interval() -> None:
    """Older versions of sadf write 2**64 ms for a file's first record: it is left out, the rest is read."""
    content = json.loads(SADF)
    statistics = content["sysstat"]["hosts"][0]["statistics"]
    first = json.loads(json.dumps(statistics[-1]))
    first["timestamp"] |= {"time": "00:00:01", "interval": 184467440737095516}
    statistics.insert(0, first)
    samples, _ = read(Sadf(), json.dumps(content))
    assert {sample.interval_s for sample in samples.values()} == {600}


def test_a_cpu_that_is_switched_off_is_not_busy() -> None:
    """All of its figures are 0, idle too: nothing was measured there."""
    content = json.loads(SADF)
    for record in content["sysstat"]["hosts"][0]["statistics"]:
        loads = record.get("cpu-load") or record.get("cpu-load-all")
        loads.append(dict.fromkeys(loads[0], 0.0) | {"cpu": "1"})
    samples, _ = read(Sadf(), json.dumps(content))
    assert samples["cpu.busy_ratio", "1"].value is None
    assert samples["cpu.busy_ratio", "0"].value == pytest.approx(0.5)


def reports(count: int) -> str:
    """So many reports of iostat, each five seconds after the one before, as it indents them."""
    content = json.loads(IOSTAT)
    statistics = content["sysstat"]["hosts"][0]["statistics"]
    made = []
    for at in range(count):
        one = json.loads(json.dumps(statistics[-1]))
        one["timestamp"] = f"2026-11-20T09:{at * 5 // 60:02d}:{at * 5 % 60:02d}+0100"
        made.append(one)
    content["sysstat"]["hosts"][0]["statistics"] = made
    return json.dumps(content, indent=8)


def records(count: int) -> str:
    """So many records of sadf, ten minutes apart."""
    content = json.loads(SADF)
    (last,) = content["sysstat"]["hosts"][0]["statistics"][-1:]
    stamps = [last["timestamp"] | {"time": f"00:{10 * at:02d}:01"} for at in range(1, count + 1)]
    content["sysstat"]["hosts"][0]["statistics"] = [last | {"timestamp": stamp} for stamp in stamps]
    return json.dumps(content, indent=8)


@pytest.mark.parametrize("format_", [Iostat(), Sadf()])
def test_a_recording_that_was_ended_in_the_middle_is_read_as_far_as_it_goes(format_: Format) -> None:
    """Ctrl-C: whatever the place, what is whole is there and it is said that the rest is not."""
    text = reports(4) if isinstance(format_, Iostat) else records(4)
    whole, _ = read(format_, text)
    begin = text.index('"statistics"')
    cuts = list(range(begin, len(text) - 3, 97))
    kept = 0
    for at in cuts:
        try:
            samples, found = read(format_, text[:at])
        except ForeignFileError as error:
            assert "cut off" in str(error) or "record for longer" in str(error)  # noqa: PT017 - one of many
        else:
            kept += 1
            assert set(samples) <= set(whole)
            assert any("cut off" in note for note in found.notes)
    assert kept > len(cuts) // 4


def test_a_recording_that_is_damaged_before_its_end_is_refused() -> None:
    """Nobody knows what is missing in the middle."""
    text = reports(4)
    at = text.index("r_await")
    with pytest.raises(ForeignFileError, match=r"cut off|no JSON"):
        read(Iostat(), text[:at] + "\x00" + text[at + 1 : -30])


def test_iostat_without_x_gives_what_it_has() -> None:
    """Transfers and bytes; that the rest is missing is said, and is no 0."""
    content = json.loads(reports(3))
    for report in content["sysstat"]["hosts"][0]["statistics"]:
        report["disk"] = [
            {"disk_device": "sda", "tps": 120.0, "kB_read/s": 8.0, "kB_wrtn/s": 960.0, "kB_dscd/s": 0.0}
        ]
    samples, found = read(Iostat(), json.dumps(content))
    disks = {metric: sample.value for (metric, _), sample in samples.items() if metric.startswith("disk.")}
    assert disks == {
        "disk.transfers_per_s": 120,
        "disk.read_bytes_per_s": 8 * 1024,
        "disk.write_bytes_per_s": 960 * 1024,
    }
    assert any("without -x" in note for note in found.notes)


def test_iostat_in_narrow_lines_gives_both_ways_together() -> None:
    """``-s`` prints one latency for reads and writes."""
    content = json.loads(IOSTAT)
    for report in content["sysstat"]["hosts"][0]["statistics"]:
        figures = {"tps": 50.0, "kB/s": 400.0, "await": 8.0, "aqu-sz": 0.4, "areq-sz": 8.0, "util": 40.0}
        report["disk"] = [{"disk_device": "sda", **figures}]
    samples, found = read(Iostat(), json.dumps(content))
    latency = samples["disk.transfer_latency_s", "sda"]
    assert latency.value == pytest.approx(0.008)
    assert latency.weight == 250
    assert samples["disk.busy_ratio", "sda"].value == pytest.approx(0.4)
    assert ("disk.read_bytes_per_s", "sda") not in samples
    assert not any("without -x" in note for note in found.notes)


def test_iostat_over_a_clock_change() -> None:
    """Its local times go back an hour: with the zone they go on, without it that is said."""
    content = json.loads(reports(5))
    clocks = ("02:00", "02:30", "02:00", "02:30", "03:00")
    for report, clock in zip(content["sysstat"]["hosts"][0]["statistics"], clocks, strict=True):
        report["timestamp"] = f"10/25/26 {clock}:00"
    text = json.dumps(content)
    found = Found()
    zone = Settings(zone=ZoneInfo("Europe/Berlin"))
    samples = list(Iostat().read(text.splitlines(keepends=True), zone, found))
    assert {sample.interval_s for sample in samples} == {1800.0}
    with pytest.raises(ForeignFileError, match="not later than the one before"):
        read(Iostat(), text)


def test_sadf_over_a_clock_change() -> None:
    """Records of local time (-T), half an hour apart, through the hour that comes twice."""
    content = json.loads(records(5))
    clocks = ("02:00", "02:30", "02:00", "02:30", "03:00")
    for record, clock in zip(content["sysstat"]["hosts"][0]["statistics"], clocks, strict=True):
        stamp = {"date": "2026-10-25", "time": f"{clock}:00", "utc": 0, "interval": 1800}
        record["timestamp"] = stamp
    zone = Settings(zone=ZoneInfo("Europe/Berlin"))
    samples = list(Sadf().read([json.dumps(content)], zone, Found()))
    times = sorted({sample.time_ns // 10**9 for sample in samples})
    assert [later - earlier for earlier, later in pairwise(times)] == [1800] * 4

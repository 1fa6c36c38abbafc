"""What sadf and iostat print as JSON."""

from __future__ import annotations

import json
from datetime import UTC, datetime

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
    """JSON that ends in the middle."""
    with pytest.raises(ForeignFileError, match="cut off") as caught:
        read(format_, text[: len(text) // 2].rstrip())
    assert caught.value.line is not None


def test_they_know_each_other_apart() -> None:
    """Both have one frame."""
    assert Sadf().recognises(SADF)
    assert not Iostat().recognises(SADF)
    assert Iostat().recognises(IOSTAT)
    assert not Sadf().recognises(IOSTAT)

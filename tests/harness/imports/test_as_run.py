"""Foreign files as recordings, and the verdicts on them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from collectors.imports.logs import CRAWL_HISTORY, IOSTAT, SADF
from harness.imports.days import At, between, day
from harness.imports.made import BUSY_AT_NIGHT, DISKS, imported, judged, places

from pinchpoint.analysis.saved import verdict_of
from pinchpoint.imports import read_places
from pinchpoint.report import html
from pinchpoint.report.evidence import findings
from pinchpoint.report.explained import explanation_text
from pinchpoint.report.report import gather
from pinchpoint.store.read import open_run


def test_one_resource_used_up_is_named_with_low_confidence(tmp_path: Path) -> None:
    """A saturated resource is named with low confidence, its duration, times and threshold."""
    verdict = judged(tmp_path, day(hours=6, app_cpu=BUSY_AT_NIGHT))
    assert verdict["outcome"] == "bottleneck"
    blame = verdict["bottleneck"]
    assert (blame["kind"], blame["tier"], blame["host"]) == ("cpu", "search", "APP3")
    assert blame["confidence"] == "low"
    assert blame["window"] == ["2026-11-20T00:00:00Z", "2026-11-20T02:30:00Z"] or (
        # the reading at 01:00 local time covers the minute before
        blame["window"][0].startswith("2026-11-19T23:59")
        and blame["window"][1].startswith("2026-11-20T02:29")
    )
    [first, *_] = blame["evidence"]
    assert (first["threshold"], first["source"], first["evidence"]) == (0.9, "design", "E1")
    assert "2 h 30 min" in first["fact"]
    assert any("no operation was recorded" in each for each in blame["why_not_more"])
    assert "APP3" in verdict["summary"]
    assert verdict["bottleneck"]["confidence"] == "low"
    assert verdict["experiment"]


def test_a_slow_log_disk_is_held_to_the_limit_of_its_role(tmp_path: Path) -> None:
    """12 ms exceed Microsoft's limit for a log disk and not that for a data disk."""
    verdict = judged(tmp_path, day(hours=3, log_write_s=between(1, 2, 0.012, 0.002)))
    blame = verdict["bottleneck"]
    assert (blame["kind"], blame["role"], blame["instance"]) == ("disk", "log", "L:")
    [first, *_] = blame["evidence"]
    assert (first["threshold"], first["source"]) == (0.005, "SP")
    assert first["value"] == pytest.approx((0.012 + 2 * 0.002) / 3, rel=0.02)
    assert "at most 12 ms" in first["fact"]
    data = day(hours=3, data_write_s=between(1, 2, 0.012, 0.002), complete=True)
    assert judged(tmp_path, data)["outcome"] == "not_reached"


def test_slow_writes_to_data_files_name_nobody(tmp_path: Path) -> None:
    """Slow writes to data files name no bottleneck, as they are asynchronous; slow reads do."""
    verdict = judged(tmp_path, day(hours=2, data_write_s=between(1, 2, 0.060, 0.008)))
    assert verdict["outcome"] == "inconclusive"
    assert verdict["bottleneck"] is None
    assert verdict["candidates"][0]["role"] == "data"
    assert "asynchronous" in verdict["summary"]
    reads = judged(tmp_path, day(hours=2, data_read_s=between(1, 2, 0.060, 0.008)))
    assert reads["bottleneck"]["role"] == "data"


def test_of_two_that_are_used_up_nobody_is_named(tmp_path: Path) -> None:
    """Two saturated resources are both candidates, with the experiment that decides."""
    text = day(hours=4, app_cpu=between(1, 3, 98, 20), log_write_s=between(1, 2, 0.020, 0.002))
    verdict = judged(tmp_path, text)
    assert verdict["outcome"] == "inconclusive"
    assert {(one["kind"], one["host"]) for one in verdict["candidates"]} == {
        ("cpu", "APP3"),
        ("disk", "SQL1"),
    }
    assert all(one["confidence"] is None for one in verdict["candidates"])
    assert "--into" in verdict["experiment"]
    assert [row["kind"] for row in verdict["timeline"]] == ["cpu", "disk"] or len(verdict["timeline"]) == 2


def test_what_was_not_measured_lowers_confidence_and_vetoes_nothing(tmp_path: Path) -> None:
    """A saturated log disk is named although another host's CPU was not measured, with low confidence."""
    text = day(hours=1, log_write_s=0.020, app_cpu=None)
    with_disk = text.replace(r"\\SQL1\LogicalDisk(M:)", r"\\APP3\LogicalDisk(M:)")
    verdict = judged(tmp_path, with_disk)
    assert verdict["bottleneck"]["role"] == "log"
    assert verdict["bottleneck"]["confidence"] == "low"
    assert "the CPU of APP3 was not measured" in verdict["bottleneck"]["why_not_more"]


def test_two_measures_of_a_host_that_was_seen_give_medium_confidence(tmp_path: Path) -> None:
    """Latency and busy time are two measures: medium confidence; latency and queue are one."""
    text = day(hours=1, log_write_s=0.030, complete=True).replace("Avg. Disk Queue Length", "% Idle Time")
    verdict = judged(tmp_path, text, places(*DISKS, memory=("SQL1=32GiB",)))
    assert (verdict["bottleneck"]["role"], verdict["bottleneck"]["confidence"]) == ("log", "medium")


def test_two_that_take_turns_are_both_named_with_their_times(tmp_path: Path) -> None:
    """A CPU and then a log disk are both named with their times, the longer one as bottleneck."""
    text = day(hours=4, app_cpu=between(0, 2.5, 98, 20), log_write_s=between(2.6, 4, 0.020, 0.002))
    verdict = judged(tmp_path, text)
    assert verdict["bottleneck"]["kind"] == "cpu"
    assert verdict["runner_up"]["role"] == "log"
    assert "At other times" in verdict["summary"]


def test_half_a_minute_is_a_plateau_and_less_is_none(tmp_path: Path) -> None:
    """Half a minute at a limit counts, and a quarter of a minute does not, however often."""
    spikes: At = lambda hour: 89.0 if int(hour * 3600 + 0.5) % 60 < 15 else 20.0  # noqa: E731 -- a shape
    verdict = judged(tmp_path, day(hours=0.5, every_s=5, app_cpu=spikes, complete=True))
    assert verdict["outcome"] == "not_reached"
    assert "below their limits" in verdict["summary"]
    long = judged(tmp_path, day(hours=0.5, every_s=15, app_cpu=between(0.1, 0.13, 100.0, 20.0)))
    assert long["bottleneck"]["host"] == "APP3"


def test_a_burst_shorter_than_half_a_minute_is_not_named(tmp_path: Path) -> None:
    """25 s at 100 % are not named, although the mean over 30 s exceeds the limit."""
    for seconds, named in ((25, False), (35, True)):
        burst: At = lambda hour, seconds=seconds: 100.0 if 0 <= hour * 3600 - 90.5 < seconds else 60.0  # type: ignore[misc]  # noqa: E731 -- a shape
        verdict = judged(tmp_path, day(hours=0.06, every_s=1, app_cpu=burst, complete=True))
        assert (verdict["outcome"] == "bottleneck") == named


def test_without_finished_work_there_is_no_all_clear(tmp_path: Path) -> None:
    """Without counts of finished work there is no all-clear, and a message says so."""
    text = day(hours=1, complete=True).replace("Batch Requests/sec", "SQL Attention rate")
    verdict = judged(tmp_path, text)
    assert verdict["outcome"] == "inconclusive"
    assert "locks, connections and calls to other systems" in verdict["summary"]
    assert "rate of finished work" in verdict["experiment"]


def test_little_memory_counts_only_while_there_is_paging(tmp_path: Path) -> None:
    """Little memory counts only with paging, and only where the memory size is given."""
    where = places(*DISKS, memory=("SQL1=32GiB",))
    low = between(1, 2, 1500.0, 8000.0)
    quiet = judged(tmp_path, day(hours=3, free_mb=low, complete=True), where)
    assert quiet["outcome"] == "not_reached"
    paging = judged(tmp_path, day(hours=3, free_mb=low, pages_in=between(1, 2, 900.0, 0.0)), where)
    assert (paging["bottleneck"]["kind"], paging["bottleneck"]["host"]) == ("memory", "SQL1")
    assert paging["bottleneck"]["evidence"][0]["source"] == "PAL"
    manifests = [open_run(path).manifest for path in sorted((tmp_path / "runs").iterdir())]
    assert not any(manifest["hosts"]["SQL1"]["not_measured"] for manifest in manifests)


def test_how_much_memory_there_is_must_be_said(tmp_path: Path) -> None:
    """Without a memory size the inventory says why the share is not measured and what to do."""
    directory = imported(tmp_path, day(hours=0.1))
    [row] = open_run(directory).manifest["hosts"]["SQL1"]["not_measured"]
    assert row["metric"] == "mem.available_ratio"
    assert "--memory" in row["remedy"]


def test_little_memory_of_an_unknown_size_is_no_room(tmp_path: Path) -> None:
    """Paging with 180 MB left and an unknown memory size names no other resource."""
    text = day(hours=3, free_mb=between(1, 2, 180.0, 8000.0), pages_in=between(1, 2, 900.0, 0.0))
    verdict = judged(tmp_path, text)
    assert verdict["outcome"] == "inconclusive"
    [candidate] = verdict["candidates"]
    assert (candidate["kind"], candidate["host"]) == ("memory", "SQL1")
    assert "--memory SQL1=SIZE" in verdict["experiment"]
    much = judged(tmp_path, text.replace("180.000000000", "6000.0"))
    assert much["outcome"] == "inconclusive"
    assert not any((one["resource"], one["host"]) == ("memory", "SQL1") for one in much["candidates"])


def test_little_memory_is_no_room_where_paging_was_not_recorded(tmp_path: Path) -> None:
    """Little memory without paging counters is a candidate, with the counters to record."""
    where = places(*DISKS, memory=("SQL1=32GiB",))
    text = day(hours=3, free_mb=between(1, 2, 1500.0, 8000.0)).replace("Pages Input/sec", "Cache Faults/sec")
    verdict = judged(tmp_path, text, where)
    assert verdict["outcome"] == "inconclusive"
    [candidate] = verdict["candidates"]
    assert (candidate["kind"], candidate["host"]) == ("memory", "SQL1")
    assert "whether the host was paging was not recorded" in verdict["summary"]
    assert verdict["experiment"].startswith("Record the paging of SQL1")
    busy = day(hours=3, free_mb=1500.0, app_cpu=97.0).replace("Pages Input/sec", "Cache Faults/sec")
    assert judged(tmp_path, busy, where)["bottleneck"]["confidence"] == "low"


def test_what_was_used_up_when_says_of_which_host_and_on_which_day(tmp_path: Path) -> None:
    """In a recording of two days the periods have dates and hosts."""
    busy: At = lambda hour: 97.0 if 1 <= hour < 3 or 26 <= hour < 28 else 20.0  # noqa: E731 -- a shape
    run, verdict = verdict_of(imported(tmp_path, day(hours=30, every_s=300, app_cpu=busy)))
    table = gather(run, verdict.to_json()).tables["periods"]
    assert [row["what"] for row in table.rows] == ["the CPU of search (host APP3)"] * 2
    first, second = (row["from"] for row in table.rows)
    assert first.startswith(("2026-11-19 23:", "2026-11-20 00:"))
    assert second.startswith(("2026-11-21 00:", "2026-11-21 01:"))
    assert table.note.startswith("The longest periods of at least 30 s")
    utc = str(verdict.to_json()["timeline"][1]["from"])[:19].replace("T", " ")
    assert f"{utc} to 2026-11-21" in explanation_text(verdict.to_json())


def test_where_nothing_else_was_recorded_confidence_is_low(tmp_path: Path) -> None:
    """With one recorded counter the verdict has low confidence."""
    rows = "".join(f'"11/20/2026 09:{n // 60:02}:{n % 60:02}.000","99.5"\r\n' for n in range(200))
    text = f'"(PDH-CSV 4.0)","\\\\PC7\\Processor(_Total)\\% Processor Time"\r\n{rows}'
    verdict = judged(tmp_path, text)
    assert (verdict["bottleneck"]["kind"], verdict["bottleneck"]["confidence"]) == ("cpu", "low")
    assert "the memory of PC7 was not measured" in verdict["bottleneck"]["why_not_more"]


def test_less_than_a_minute_shows_no_plateau(tmp_path: Path) -> None:
    """A recording of less than a minute shows no limit and no spare capacity."""
    verdict = judged(tmp_path, day(hours=45 / 3600, every_s=5, app_cpu=100.0))
    assert verdict["outcome"] == "inconclusive"
    assert "only 45 s were recorded, at least 60 s are needed" in verdict["summary"]


def test_what_a_fact_shows_are_the_samples_its_figure_was_made_of(tmp_path: Path) -> None:
    """A fact covers the whole recording, while the finding's window is its longest period."""
    _, verdict = verdict_of(imported(tmp_path, day(hours=6, app_cpu=BUSY_AT_NIGHT)))
    [finding, *_] = findings(verdict.to_json())
    assert finding.window is None
    assert "time_ns" not in finding.evidence[0].query.partition("WHERE")[2].partition("ORDER")[0]


def test_hosts_of_which_no_disk_was_recorded_are_told(tmp_path: Path) -> None:
    """Hosts without recorded disks are listed."""
    verdict = judged(tmp_path, day(hours=1, app_cpu=97.0))
    assert verdict["bottleneck"]["host"] == "APP3"
    assert any("no disk of APP3 was recorded" in warning for warning in verdict["warnings"])


def test_a_disk_whose_role_nobody_said_is_held_to_any_disks_limit(tmp_path: Path) -> None:
    """A disk without a role is compared with the general limit and is a candidate at most."""
    verdict = judged(tmp_path, day(hours=1, log_write_s=0.030), places())
    assert verdict["outcome"] == "inconclusive"
    [candidate, *_] = verdict["candidates"]
    assert candidate["instance"] == "L:"
    assert candidate["evidence"][0]["source"] == "PAL"
    assert "--disk SQL1:L:=sql.log" in verdict["experiment"]
    assert any("SQL1 L:, M:" in warning for warning in verdict["warnings"])


def test_a_declared_limit_that_is_reached(tmp_path: Path) -> None:
    """With a farm.yaml the disk's declared cap is named instead of its latency."""
    farm = tmp_path / "farm.yaml"
    farm.write_text(
        "name: f\nenvironment: production\nendpoints: {sql: {url: 'postgresql://sql1/db'}}\n"
        "tiers:\n  sql:\n    hosts:\n      sql1:\n"
        "        disks:\n          log: {device: 'L:', limits: {iops: 210}}\n          data: {device: 'M:'}\n"
    )
    where = read_places(None, [], [], [], farm)
    verdict = judged(tmp_path, day(hours=1), where)
    blame = verdict["bottleneck"]
    assert (blame["kind"], blame["host"], blame["role"]) == ("disk_cap", "sql1", "log")
    assert verdict["disks"][0]["tier"] == "sql"


def test_a_path_of_the_farm_is_a_disk_where_a_volume_is_mounted_there(tmp_path: Path) -> None:
    """A path in farm.yaml is a disk where a volume is mounted; else a message says what to add."""
    farm = tmp_path / "farm.yaml"
    farm.write_text(
        "name: f\nenvironment: production\nendpoints: {sql: {url: 'postgresql://sql1/db'}}\n"
        "tiers:\n  sql:\n    hosts:\n      sql1:\n"
        "        disks:\n          log: {path: 'L:\\'}\n          data: {path: 'M:\\data'}\n"
    )
    directory = imported(tmp_path, day(hours=1), read_places(None, [], [], [], farm))
    manifest = open_run(directory).manifest
    assert manifest["hosts"]["sql1"]["roles"]["log"]["device"] == "L:"
    [said] = [each for each in manifest["warnings"] if "on which disk" in each]
    assert r"M:\data (data)" in said
    assert "--disk sql1:DISK=sql.data" in said


def test_formats_that_do_not_tell_reads_from_writes_are_judged_too(tmp_path: Path) -> None:
    """Formats that do not separate reads and writes, such as sadf, are judged as well."""
    where = read_places(None, ["db1:sda=sql.log"], [], [], None)
    verdict = judged(tmp_path, SADF, where, "sa20.json")
    assert verdict["bottleneck"]["evidence"][0]["metric"] == "disk.transfer_latency_s"
    [disk] = verdict["disks"]
    assert disk["iops_mean"] == 120
    assert disk["write_latency_mean_s"] is None


def test_the_page_of_samples_alone_speaks_of_no_load(tmp_path: Path) -> None:
    """A recording's page has hours, a combined latency, and nothing that needs a load."""
    report = json.loads(SADF)
    [only] = report["sysstat"]["hosts"][0]["statistics"]
    stamps = [f"{hour:02}:{minute}0:01" for hour in range(5) for minute in range(6)]
    report["sysstat"]["hosts"][0]["statistics"] = [
        {**only, "timestamp": {**only["timestamp"], "time": stamp}} for stamp in stamps
    ]
    where = read_places(None, ["db1:sda=sql.log"], [], [], None)
    run, verdict = verdict_of(imported(tmp_path, json.dumps(report), where, "sa20.json"))
    gathered = gather(run, verdict.to_json())
    assert gathered.clock.samples_only
    assert [panel.name for panel in gathered.panels] == [
        "cpu",
        "disk_write_latency",
        "disk_iops",
        "disk_read_latency",
        "pressure",
    ]
    assert [panel.name for panel in gathered.panels if not panel.series] == ["disk_read_latency"]
    [disk] = [
        each
        for machine in gathered.machines
        for box in machine.boxes
        for each in box.resources
        if each.name == "log disk"
    ]
    assert disk.words == "15 ms an I/O, 120/s I/O"
    page = html.write(gathered)
    assert "Times are UTC" in page
    assert "the load began" not in page
    assert "The plan sets no objectives." not in page


def test_a_disk_below_another_is_no_second_suspect(tmp_path: Path) -> None:
    """A device below another one is no second candidate; one with a role replaces the lower one."""
    text = SADF.replace('{"disk-device": "sdb"', '{"disk-device": "dm-0"').replace(
        '"tps": 0.00', '"tps": 120.00'
    )
    for given, judged_ones, left in ((), {"sda"}, "dm-0"), (("db1:dm-0=sql.log",), {"log"}, "sda"):
        directory = imported(tmp_path, text, read_places(None, given, [], [], None), "sa20.json")
        manifest = open_run(directory).manifest
        assert set(manifest["hosts"]["db1"]["roles"]) == judged_ones
        assert any(warning.startswith(f"db1: {left} ignored") for warning in manifest["warnings"])


def test_too_short_to_say_anything(tmp_path: Path) -> None:
    """Five seconds of iostat are too short for a verdict."""
    verdict = judged(tmp_path, IOSTAT, places(), "iostat.json")
    assert verdict["outcome"] == "inconclusive"
    assert "only 5 s were recorded" in verdict["summary"]


def test_a_crawl_log_gives_the_crawl_table(tmp_path: Path) -> None:
    """A crawl log gives the crawl table: count, duration, rate and latency by source, with its host."""
    verdict = judged(tmp_path, CRAWL_HISTORY, places(host="APP3"), "crawl.csv")
    rows = {row["source"]: row for row in verdict["crawl"]}
    assert rows["Local SharePoint sites"]["count"] == 13_534
    assert rows["Local SharePoint sites"]["rate_per_s"] == pytest.approx(11.6, abs=0.05)
    assert rows["Local SharePoint sites"]["rate_active_per_s"] == pytest.approx(12.8)
    assert rows["User profiles"]["repository_latency_s"] == pytest.approx(0.149)
    assert "requests in flight are at Local SharePoint sites" in verdict["summary"]

"""What the script's lines become: values, instances, resets, gaps and the machine's clock."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from collectors.windows.standin import PERF_PER_S, Machine

from pinchpoint_collectors.record import Sample
from pinchpoint_collectors.windows.reader import ScriptReader
from pinchpoint_collectors.windows.script import request, wanted
from pinchpoint_collectors.windows.stream import Arrived

NS = 1_000_000_000
Found = dict[tuple[str, str], Sample]


class Conversation:
    """A reader that is told what a machine says."""

    def __init__(self, machine: Machine | None = None, every_s: float = 1.0) -> None:
        self.machine = machine or Machine()
        self.reader = ScriptReader(["sql1"], wanted(), every_s)
        self.link = 1

    def begin(self) -> Found:
        """All up to the first reading, its clock included."""
        for text in self.machine.hello(request(wanted(), 1)):
            self.told(json.loads(text))
        self.told(json.loads(self.machine.time(str(time.time_ns()))))
        return self.read()

    def read(self) -> Found:
        """One reading."""
        samples: list[Sample] = []
        for text in self.machine.reading():
            samples += self.told(json.loads(text))
        found = {(sample.metric, sample.instance): sample for sample in samples}
        assert len(found) == len(samples), "a series has one value in a reading"
        return found

    def told(self, line: dict[str, Any]) -> list[Sample]:
        """One line."""
        return self.reader.samples([(self.link, Arrived(time.time_ns(), line))])


def value(found: Found, metric: str, instance: str = "") -> float | None:
    return found[metric, instance].value


def test_a_reading_is_what_the_machine_counted() -> None:
    """Every metric of one machine, from counters that grew by known amounts; computed by hand."""
    talk = Conversation()
    talk.begin()
    found = talk.read()
    disk = {
        "disk.reads_per_s": 100.0,
        "disk.writes_per_s": 50.0,
        "disk.read_bytes_per_s": 819_200.0,
        "disk.write_bytes_per_s": 3_276_800.0,
        "disk.read_latency_s": 0.002,
        "disk.write_latency_s": 0.008,
        "disk.outstanding": 0.6,
        "disk.busy_ratio": 0.6,
    }
    for device in ("C:", "L:", "C:\\mnt\\tempdb", "0 C:", "1 L:", "2"):
        shown = {metric: value(found, metric, device) for metric in disk}
        assert shown == pytest.approx(disk), device
        assert found["disk.read_latency_s", device].weight == 100
        assert found["disk.write_latency_s", device].weight == 50
    for core in ("", "0", "1"):
        assert value(found, "cpu.busy_ratio", core) == pytest.approx(0.25)
    assert value(found, "cpu.waiting_threads") == 3
    assert value(found, "mem.available_bytes") == 4 * 2**30
    assert value(found, "mem.available_ratio") == pytest.approx(0.5)
    assert value(found, "mem.paged_in_bytes_per_s") == 256 * 4096  # the counter wrapped in this second
    assert value(found, "mem.paged_out_bytes_per_s") == 0
    net = "vmxnet3 Ethernet Adapter"
    assert value(found, "net.received_bytes_per_s", net) == 125_000
    assert value(found, "net.sent_bytes_per_s", net) == 250_000
    assert value(found, "net.speed_bytes_per_s", net) == 1.25e9
    assert value(found, "net.errors_per_s", net) == 3
    assert value(found, "db.buffer_hit_ratio") == pytest.approx(0.95)
    assert value(found, "db.page_life_s") == 3600
    assert value(found, "db.lazy_writes_per_s") == 4
    assert value(found, "db.log_flushes_per_s", "orders") == 20
    assert value(found, "db.log_bytes_per_s") == 81_920
    assert value(found, "collector.cpu_s", "windows/host") == pytest.approx(0.02)
    assert {sample.interval_s for sample in found.values() if sample.metric != "collector.cpu_s"} == {1.0}


def test_sums_and_tunnels_are_left_out() -> None:
    """The sum of all disks hides the slow one; a tunnel's packets go over an interface that is there."""
    talk = Conversation()
    talk.begin()
    instances = {instance for metric, instance in talk.read() if metric.startswith(("disk.", "net."))}
    assert instances == {
        *("C:", "L:", "C:\\mnt\\tempdb", "0 C:", "1 L:", "2"),
        "vmxnet3 Ethernet Adapter",
    }


def test_a_volume_without_a_letter_is_watched_where_a_role_lies_on_it() -> None:
    """Otherwise it is what Windows starts from."""
    talk = Conversation()
    talk.begin()
    assert ("disk.reads_per_s", "HarddiskVolume1") not in talk.read()
    talk.reader.devices = frozenset({"HarddiskVolume1"})
    assert value(talk.read(), "disk.reads_per_s", "HarddiskVolume1") == 100


def test_the_first_reading_tells_what_needs_no_difference() -> None:
    """Rates are not there, and not 0."""
    first = Conversation().begin()
    assert value(first, "mem.available_bytes") == 4 * 2**30
    assert value(first, "cpu.waiting_threads") == 3
    assert not [metric for metric, _ in first if metric.startswith(("disk.", "cpu.busy", "net.received"))]


def test_a_counter_that_was_reset_is_null_also_where_it_could_have_wrapped() -> None:
    """A disk that was away for a moment: its bytes (64 bits) went back, so its writes (32) did not wrap."""
    talk = Conversation()
    talk.begin()
    talk.read()
    lines = [json.loads(text) for text in talk.machine.reading()]
    rows = next(one for one in lines if one.get("class") == "PerfDisk_LogicalDisk")
    row = next(row for row in rows["rows"] if row[0] == "L:")
    row[4:] = [1] * len(row[4:])
    found = {(one.metric, one.instance): one for line in lines for one in talk.told(line)}
    assert value(found, "disk.writes_per_s", "L:") is None
    assert value(found, "disk.write_latency_s", "L:") is None
    assert found["disk.write_latency_s", "L:"].weight is None
    assert value(found, "disk.writes_per_s", "C:") == 50
    assert value(talk.read(), "disk.writes_per_s", "C:") == 50


def test_time_in_io_that_may_have_wrapped_more_than_once_is_no_latency() -> None:
    """With more than 429 outstanding for a second the timer's 32 bits say nothing; the rest still does."""
    talk = Conversation()
    talk.begin()
    lines = [json.loads(text) for text in talk.machine.reading()]
    rows = next(one for one in lines if one.get("class") == "PerfDisk_LogicalDisk")
    columns = talk.machine.classes["PerfDisk_LogicalDisk"]
    at = 4 + columns.index("AvgDiskQueueLength")
    for row in rows["rows"]:
        row[at] += 430 * PERF_PER_S
    found = {(one.metric, one.instance): one for line in lines for one in talk.told(line)}
    assert value(found, "disk.outstanding", "L:") == pytest.approx(430.6)
    assert value(found, "disk.write_latency_s", "L:") is None
    assert value(found, "disk.writes_per_s", "L:") == 50


def test_a_class_that_cannot_be_read_is_null_for_that_reading() -> None:
    """And its next reading covers the time since the last one that worked."""
    talk = Conversation()
    talk.begin()
    talk.read()
    talk.machine.failing.add("PerfDisk_LogicalDisk")
    found = talk.read()
    assert value(found, "disk.writes_per_s", "L:") is None
    assert value(found, "cpu.busy_ratio") == pytest.approx(0.25)
    talk.machine.failing.clear()
    found = talk.read()
    assert value(found, "disk.writes_per_s", "L:") == 50
    assert found["disk.writes_per_s", "L:"].interval_s == 2


def test_a_disk_that_goes_away_is_null() -> None:
    """Not silent, and not 0."""
    talk = Conversation()
    talk.begin()
    lines = [json.loads(text) for text in talk.machine.reading()]
    for line in lines:
        if line["kind"] == "rows":
            line["rows"] = [row for row in line["rows"] if row[0] not in ("L:", "vmxnet3 Ethernet Adapter")]
    found = {(one.metric, one.instance): one for line in lines for one in talk.told(line)}
    assert value(found, "disk.writes_per_s", "L:") is None
    assert value(found, "net.errors_per_s", "vmxnet3 Ethernet Adapter") is None


def test_two_instances_of_sql_server_are_kept_apart() -> None:
    """The default one is as ever, the other one's name stands before its databases'."""
    talk = Conversation()
    talk.begin()
    named = {"class": "MSSQLPROD_MSSQLPRODDatabases", "pattern": "MSSQL*_*Databases"}
    talk.told({"kind": "class", **named, "columns": "LogFlushesPersec", "types": "272696576"})
    for second in (0, 1):
        stamps = [PERF_PER_S * second, PERF_PER_S * second, PERF_PER_S]
        rows = [["sales", *stamps, 100 + 7 * second], ["_Total", *stamps, 200 + 9 * second]]
        line = {"kind": "rows", "class": named["class"], "utc": talk.machine.utc(), "rows": rows}
        found = {(one.metric, one.instance): one for one in talk.told(line)}
    assert value(found, "db.log_flushes_per_s", "PROD/sales") == 7
    assert value(found, "db.log_flushes_per_s", "PROD/") == 9


def test_samples_have_the_machine_s_time_corrected() -> None:
    """A machine that is an hour ahead: its samples lie where they were read, within what is known."""
    talk = Conversation(Machine(ahead_s=3600))
    talk.begin()
    found = talk.read()
    error_s = talk.reader.clock.error_ns / NS
    assert error_s < 0.5
    assert abs(found["cpu.busy_ratio", ""].time_ns - time.time_ns()) / NS < error_s + 0.5
    assert talk.reader.clock.offset_ns / NS == pytest.approx(3600, abs=0.5)
    told = [one for one in talk.reader.incidents if one.event == "clock_offset"]
    assert len(told) == 1
    assert told[0].fields["offset_s"] == pytest.approx(3600, abs=0.5)


def test_the_step_of_the_machine_s_clock_is_part_of_the_error() -> None:
    """Windows' clock goes on 64 times a second: no answer is better than half of that."""
    talk = Conversation()
    talk.begin()
    assert talk.reader.clock.error_ns >= 15_625_000 // 2


def test_nothing_is_told_before_the_clock_is_known() -> None:
    """A first reading that came before the machine's time is kept for it."""
    talk = Conversation()
    for text in [*talk.machine.hello(request(wanted(), 1)), *talk.machine.reading()]:
        assert talk.told(json.loads(text)) == []
    assert talk.told(json.loads(talk.machine.time(str(time.time_ns()))))


def test_a_new_link_begins_anew_and_its_gap_is_told() -> None:
    """The counters went on, but nobody looked: the gap stays one, and is told with its reason and length."""
    talk = Conversation(every_s=0.1)
    talk.begin()
    talk.read()
    time.sleep(0.5)
    talk.link, talk.reader.lost = 2, "the link was cut"
    assert talk.begin() == {}
    assert value(talk.read(), "disk.reads_per_s", "L:") == 100
    (gap,) = [one for one in talk.reader.incidents if one.event == "gap"]
    assert gap.fields["why"] == "the link was cut"
    assert gap.fields["missed"] >= 3
    assert gap.fields["interval_s"] == 0.1


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (
            {"kind": "rows", "class": "PerfOS_System", "utc": 1, "rows": [["", 1, 2, 3]]},
            "none of the script's",
        ),
        ({"kind": "rows", "class": "PerfOS_System", "utc": "soon", "rows": []}, "none of the script's"),
        (
            {"kind": "class", "class": "X", "pattern": "?", "columns": "A", "types": "1"},
            "none of the script's",
        ),
    ],
)
def test_a_line_that_was_changed_on_the_way_is_an_error(line: dict[str, Any], says: str) -> None:
    """It is said so, and nothing is made of it."""
    talk = Conversation()
    talk.begin()
    with pytest.raises(Exception, match=says):
        talk.told(line)


def test_null_counters_are_null() -> None:
    """A counter that Windows gives nothing for, and stamps it does not give."""
    talk = Conversation()
    talk.begin()
    lines = [json.loads(text) for text in talk.machine.reading()]
    for line in lines:
        if line.get("class") == "PerfOS_System":
            line["rows"][0][4:] = [None]
        if line.get("class") == "PerfDisk_LogicalDisk":
            line["rows"][1][1:4] = [None, None, None]
    found = {(one.metric, one.instance): one for line in lines for one in talk.told(line)}
    assert value(found, "cpu.waiting_threads") is None
    assert value(found, "disk.writes_per_s", "L:") is None

"""Tests of the collector `prometheus` with a real Prometheus that scrapes a real node_exporter."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from collectors.prometheus_servers import (
    Cable,
    Relay,
    prometheus,
    relayed,
    samples_of,
)
from collectors.prometheus_watching import gathered, watch, watching
from collectors.server_contract import README
from serverprocess import ServerProcess
from support import until

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import GapReporter, Sample, Watch
from pinchpoint_collectors.registry import kind

pytestmark = pytest.mark.usefixtures("straight")


@pytest.fixture(scope="module")
def watched() -> Iterator[tuple[Relay, ServerProcess]]:
    """Run a node_exporter behind a relay, and a Prometheus that scrapes it each second."""
    with relayed() as relay, prometheus(relay.port) as server:
        until(lambda: len(relay.scrapes) >= 3)
        yield relay, server


def by_scrape(samples: Sequence[Sample], metric: str, instance: str = "") -> dict[int, Sample]:
    """Return time in ms -> sample."""
    return {
        round(each.time_ns / 1e6): each
        for each in samples
        if (each.metric, each.instance) == (metric, instance)
    }


def test_every_value_is_what_two_pages_of_the_exporter_say(watched: tuple[Relay, ServerProcess]) -> None:
    """Each rate and latency is the one computed from two pages of the exporter."""
    relay, server = watched
    with watching(watch(server.url, relay)) as collector:
        found = gathered(collector, 3.5)
    pages = [(at, samples_of(text)) for at, text in relay.scrapes]
    device = next(labels for name, labels in pages[-1][1] if name == "node_disk_writes_completed_total")
    disk = device.split('"')[1]
    bytes_read = by_scrape(found, "disk.read_bytes_per_s", disk)
    written = by_scrape(found, "disk.writes_per_s", disk)
    idle = {"node_cpu_seconds_total"}
    compared = 0
    for (_, old), (at, new) in pairwise(pages):
        stamp = min(written, key=lambda ms: abs(ms - at * 1000), default=0)
        if abs(stamp - at * 1000) > 300:
            continue  # before the first reading or after the last
        sample = written[stamp]
        name = "node_disk_writes_completed_total", device
        assert (sample.value or 0) * sample.interval_s == pytest.approx(new[name] - old[name], abs=1e-3)
        name = "node_disk_read_bytes_total", device
        more = (bytes_read[stamp].value or 0) * sample.interval_s
        assert more == pytest.approx(new[name] - old[name], abs=1e-3)
        spent = {key: new[key] - old[key] for key in new if key[0] in idle and "guest" not in key[1]}
        busy = 1 - sum(
            more
            for key, more in spent.items()
            if any(mode in key[1] for mode in ('"idle"', '"iowait"', '"steal"'))
        ) / sum(spent.values())
        assert by_scrape(found, "cpu.busy_ratio")[stamp].value == pytest.approx(max(0, busy), abs=1e-6)
        left = new["node_memory_MemAvailable_bytes", ""]
        assert by_scrape(found, "mem.available_bytes")[stamp].value == left
        compared += 1
    assert compared >= 2


def test_it_agrees_with_the_machine_itself_over_the_same_time(
    watched: tuple[Relay, ServerProcess], tmp_path: Path
) -> None:
    """Under a write load the samples differ by at most a tenth from `local`, read at the same moments."""
    relay, server = watched
    here = kind("local").connect([Watch("sql1", "sql")])
    ours: list[Sequence[Sample]] = []
    relay.on_scrape = lambda: ours.append(here.read())
    try:
        with watching(watch(server.url, relay)) as collector:
            until(lambda: len(ours) >= 2)  # both have a previous reading from here on
            # the load pauses at both ends, so that a delay of some ms between the readings does not matter
            found = gathered(collector, 1.3)
            for _ in range(20):
                (tmp_path / "load").write_bytes(os.urandom(1 << 20))
                descriptor = os.open(tmp_path / "load", os.O_RDONLY)
                os.fsync(descriptor)
                os.close(descriptor)
                found += collector.read()
                time.sleep(0.1)
            found += gathered(collector, 1.5)
    finally:
        relay.on_scrape = lambda: None
        here.close()
    local = [each for reading in ours for each in reading]
    assert _same(local, found, "cpu.busy_ratio", "", 0.1)
    assert _same(local, found, "mem.available_ratio", "", 0.1)
    theirs, ours_ = (
        {each.instance for each in samples if each.metric == "disk.write_bytes_per_s"}
        for samples in (found, local)
    )
    assert theirs & ours_
    for device in theirs & ours_:
        assert _same(local, found, "disk.write_bytes_per_s", device, 0.1)
        assert _same(local, found, "disk.busy_ratio", device, 0.1)


def _same(
    local: Sequence[Sample], found: Sequence[Sample], metric: str, instance: str, within: float
) -> bool:
    """Return True if both have common intervals; assert that their sums agree. A scrape takes some ms."""
    theirs, ours = by_scrape(found, metric, instance), by_scrape(local, metric, instance)
    pairs = []
    for stamp, sample in theirs.items():
        near = min(ours, key=lambda ms: abs(ms - stamp))
        if abs(near - stamp) < 300 and ours[near].interval_s:  # the first local reading has no interval
            pairs.append((sample, ours[near]))
    assert len(pairs) >= 2, f"{metric}: nothing to compare"
    one, other = (sum((each[side].value or 0) * each[side].interval_s for each in pairs) for side in (0, 1))
    # Allow a few ms of a second's work on one side.
    assert one == pytest.approx(other, rel=within, abs=within * max(1.0, 1e5 if "bytes" in metric else 0)), (
        metric
    )
    return True


def test_what_was_scraped_behind_a_cut_link_is_fetched_afterwards(
    watched: tuple[Relay, ServerProcess],
) -> None:
    """After a cut link each scrape of that time is fetched once, without a gap."""
    relay, server = watched
    cable = Cable(int(server.url.rpartition(":")[2]))
    try:
        with watching(watch(f"http://127.0.0.1:{cable.port}", relay)) as collector:
            found = gathered(collector, 2.2)
            cable.cut()
            cut_s = time.time()
            with pytest.raises(CollectorError, match="host 'sql1', collector 'prometheus'"):
                gathered(collector, 5)
            time.sleep(max(0.0, cut_s + 3.2 - time.time()))
            cable.mend()
            found += gathered(collector, 1.5)
            assert isinstance(collector, GapReporter)
            assert list(collector.incidents()) == []
    finally:
        cable.close()
    stamps = [each.time_ns for each in found if each.metric == "mem.available_bytes"]
    assert len(stamps) == len(set(stamps))
    assert all(0.5e9 < later - earlier < 1.9e9 for earlier, later in pairwise(sorted(stamps)))
    assert any(cut_s < stamp / 1e9 < cut_s + 3 for stamp in stamps)


@pytest.mark.slow  # waits for several failed scrapes
def test_an_exporter_that_is_gone_is_told_and_leaves_a_gap(watched: tuple[Relay, ServerProcess]) -> None:
    """A missing exporter is reported in Prometheus' words and leaves a gap without samples."""
    relay, server = watched
    with watching(watch(server.url, relay)) as collector:
        gathered(collector, 1.2)
        relay.broken = True
        broken_s = time.time()
        try:
            with pytest.raises(CollectorError, match=r"does not reach 127.*503.*start the exporter there"):
                gathered(collector, 10)
            time.sleep(max(0.0, broken_s + 4 - time.time()))
        finally:
            relay.broken = False
        found: list[Sample] = []
        deadline = time.monotonic() + 10
        while not any(each.metric == "mem.available_bytes" for each in found):
            assert time.monotonic() < deadline
            try:
                found += gathered(collector, 0.5)
            except CollectorError:
                continue
    within = [each for each in found if broken_s + 1 < each.time_ns / 1e9 < broken_s + 3.5]
    assert [each for each in within if not each.metric.startswith("collector.")] == []


def test_the_inventory_tells_machine_disks_and_clock(
    watched: tuple[Relay, ServerProcess], tmp_path: Path
) -> None:
    """The inventory agrees with `local`; hosts with one exporter share a collector."""
    relay, server = watched
    here = kind("local").connect([Watch("sql1", "sql", disks={"log": str(tmp_path)})])
    local = here.inventory()["sql1"]
    here.close()
    watches = [
        watch(server.url, relay, {"log": str(tmp_path)}),
        Watch("app1", "web", options={"url": server.url, "instance": f"127.0.0.1:{relay.port}"}),
    ]
    assert len({kind("prometheus").machine(each) for each in watches}) == 1
    with watching(*watches) as collector:
        found = gathered(collector, 1.5)
        facts = collector.inventory()
    assert {each.host for each in found} == {"sql1", "app1"}
    own = facts["sql1"]
    for name in ("cores", "hostname", "kernel"):
        assert own[name] == local[name], name
    assert own["memory_bytes"] == pytest.approx(local["memory_bytes"], rel=0.01)
    if local["roles"]["log"]["device"] in own["disks"]:
        assert own["roles"]["log"]["device"] == local["roles"]["log"]["device"]
    missing = {(each["metric"], each["instance"]) for each in own["not_measured"]}
    assert (("disk.*", "log") in missing) == (own["roles"]["log"]["device"] is None)
    assert abs(own["clock"]["offset_s"]) < 0.5
    assert own["clock"]["error_s"] < 0.5
    assert {each.metric for each in found if f"`{each.metric}`" not in README} == set()
    assert [key for key in own if f"`{key}`" not in README] == []
    offsets = [each.value for each in found if each.metric == "collector.clock_offset_s"]
    assert offsets, "measured again and again"


def test_an_unknown_host_is_told_what_is_scraped(watched: tuple[Relay, ServerProcess]) -> None:
    """An unknown host's error lists the scraped targets and the remedy."""
    relay, server = watched
    with pytest.raises(CollectorError) as caught:
        kind("prometheus").connect([Watch("db7", "sql", options={"url": server.url})])
    assert f"it scrapes 127.0.0.1:{relay.port}; correct `instance` or `labels`" in str(caught.value)
    with watching(Watch("db7", "sql", options={"url": server.url, "labels": {"rack": "r1"}})) as collector:
        assert collector.inventory()["db7"]["exporter"] == "node_exporter"

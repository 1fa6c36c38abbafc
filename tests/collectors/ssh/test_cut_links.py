"""Tests of links that are cut while watching, between real hosts in network namespaces (root)."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from datetime import datetime

import pytest
from sshd_hosts import SshdHost, sshd_hosts

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import Incident, Sample, Watch
from pinchpoint_collectors.remote.ssh import Address
from pinchpoint_collectors.ssh import SshCollector

pytestmark = pytest.mark.root

SILENCE_S = 4.0


@pytest.fixture(scope="module")
def hosts() -> Iterator[list[SshdHost]]:
    with sshd_hosts(2) as found:
        yield found


class Watched:
    """A collector that is read once a second, as by a sampler, with all samples and incidents."""

    def __init__(self, host: SshdHost) -> None:
        options = host.options()
        watch = Watch("sql1", "sql", options=options)
        self.collector = SshCollector([watch], Address.of(options), 1.0, SILENCE_S)
        self.samples: list[Sample] = []
        self.incidents: list[Incident] = []
        self.failures: list[str] = []

    def look(self, for_s: float) -> None:
        """Read for this many seconds."""
        end = time.monotonic() + for_s
        while time.monotonic() < end:
            begin = time.monotonic()
            try:
                self.samples += self.collector.read()
            except CollectorError as error:
                self.failures.append(str(error))
            assert time.monotonic() - begin < 3, "a reading must not hold up the run"
            self.incidents += self.collector.incidents()
            time.sleep(max(0.0, begin + 1 - time.monotonic()))

    def look_until(self, event: str, within_s: float) -> Incident:
        """Read until this incident is reported."""
        end = time.monotonic() + within_s
        while True:
            for incident in self.incidents:
                if incident.event == event:
                    return incident
            assert time.monotonic() < end, (event, self.incidents, self.failures)
            self.look(1.0)

    def times(self, by: float = 1.0) -> list[float]:
        """Return the times of CPU readings that cover about ``by`` seconds."""
        return sorted(
            each.time_ns / 1e9
            for each in self.samples
            if (each.metric, each.instance) == ("cpu.busy_ratio", "") and each.interval_s < by * 3
        )


def span_s(gap: Incident) -> tuple[float, float]:
    """Return start and end of a gap, in UTC seconds."""
    begins, ends = (datetime.fromisoformat(str(gap.fields[key])).timestamp() for key in ("from", "to"))
    return begins, ends


@pytest.fixture
def watched(hosts: list[SshdHost]) -> Iterator[Watched]:
    found = Watched(hosts[0])
    yield found
    hosts[0].mend()
    found.collector.close()


@pytest.mark.slow  # watches for ten seconds
def test_a_link_that_is_slow_for_a_moment_loses_nothing(hosts: list[SshdHost], watched: Watched) -> None:
    """After two seconds of packet loss, readings arrive late with the host's times, and none is lost."""
    watched.look(2)
    hosts[0].cut()
    time.sleep(2)
    hosts[0].mend()
    watched.look(6)
    assert [each for each in watched.incidents if each.event == "gap"] == []
    steps = [b - a for a, b in itertools.pairwise(watched.times())]
    assert len(steps) >= 6
    assert all(0.5 < step < 1.9 for step in steps), steps


def test_a_cut_link_marks_its_gap_and_leaves_nothing_on_the_host(
    hosts: list[SshdHost], watched: Watched
) -> None:
    """The host ends its session without a packet when nothing is requested; no value is invented.

    A new session opens afterwards, and the gap lasts from the last reading to the first new one.
    """
    host = hosts[0]
    watched.look(3)
    assert host.ours()
    host.cut()
    cut_s = time.time()
    watched.look(SILENCE_S + 4)
    assert watched.failures, "nothing came, and nobody said so"
    assert host.ours() == [], "left on the host behind the cut link"
    host.mend()
    mended_s = time.time()
    gap = watched.look_until("gap", 30)
    watched.look(3)
    begins_s, ends_s = span_s(gap)
    # Readings that the host had sent before it gave up arrived when the link was back.
    assert cut_s - 2 < begins_s < cut_s + SILENCE_S + 2
    assert ends_s > mended_s
    assert [at for at in watched.times() if begins_s + 0.1 < at < ends_s - 0.1] == [], "made up"
    assert watched.times()[-1] > ends_s
    assert gap.fields["missed"] >= 3
    measured = [each for each in watched.samples if not each.metric.startswith("collector.")]
    assert all(each.interval_s < 3 for each in measured), "a mean over the gap"


@pytest.mark.slow  # watches for ten seconds
def test_other_hosts_go_on(hosts: list[SshdHost]) -> None:
    """When one of two hosts is cut off, the other's readings continue."""
    first, second = Watched(hosts[0]), Watched(hosts[1])
    try:
        for one in (first, second):
            one.look(2)
        hosts[0].cut()
        second.look(4)
        assert second.failures == []
        assert second.incidents == []
        assert len(second.times()) >= 4
    finally:
        hosts[0].mend()
        for one in (first, second):
            one.collector.close()

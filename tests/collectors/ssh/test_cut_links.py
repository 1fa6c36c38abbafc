"""Links that are cut in mid-watch, between real hosts in network namespaces of their own (root)."""

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
    """A collector read once a second, as a sampler reads it, and all that came of it."""

    def __init__(self, host: SshdHost) -> None:
        options = host.options()
        watch = Watch("sql1", "sql", options=options)
        self.collector = SshCollector([watch], Address.of(options), 1.0, SILENCE_S)
        self.samples: list[Sample] = []
        self.incidents: list[Incident] = []
        self.failures: list[str] = []

    def look(self, for_s: float) -> None:
        """Read for so long."""
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
        """Read until it is told."""
        end = time.monotonic() + within_s
        while True:
            for incident in self.incidents:
                if incident.event == event:
                    return incident
            assert time.monotonic() < end, (event, self.incidents, self.failures)
            self.look(1.0)

    def times(self, by: float = 1.0) -> list[float]:
        """Seconds at which the CPU was read, of readings that cover about ``by`` seconds."""
        return sorted(
            each.time_ns / 1e9
            for each in self.samples
            if (each.metric, each.instance) == ("cpu.busy_ratio", "") and each.interval_s < by * 3
        )


def span_s(gap: Incident) -> tuple[float, float]:
    """From when to when, UTC seconds."""
    begins, ends = (datetime.fromisoformat(str(gap.fields[key])).timestamp() for key in ("from", "to"))
    return begins, ends


@pytest.fixture
def watched(hosts: list[SshdHost]) -> Iterator[Watched]:
    found = Watched(hosts[0])
    yield found
    hosts[0].mend()
    found.collector.close()


@pytest.mark.slow  # ten seconds of watching
def test_a_link_that_is_slow_for_a_moment_loses_nothing(hosts: list[SshdHost], watched: Watched) -> None:
    """Two seconds without a packet: readings come late, with the time at which the host took them."""
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
    """The host ends by itself what nobody asks for any more, though no packet tells it; nothing is made up.

    Afterwards a new session is opened, and the gap is told, from the last reading to the first new one.
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
    # What the host had sent before it gave up came when the link was back.
    assert cut_s - 2 < begins_s < cut_s + SILENCE_S + 2
    assert ends_s > mended_s
    assert [at for at in watched.times() if begins_s + 0.1 < at < ends_s - 0.1] == [], "made up"
    assert watched.times()[-1] > ends_s
    assert gap.fields["missed"] >= 3
    measured = [each for each in watched.samples if not each.metric.startswith("collector.")]
    assert all(each.interval_s < 3 for each in measured), "a mean over the gap"


@pytest.mark.slow  # ten seconds of watching
def test_other_hosts_go_on(hosts: list[SshdHost]) -> None:
    """One of two is cut off: the other's readings come as before."""
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

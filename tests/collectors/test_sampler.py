"""Tests of the sampler: its schedule with a fake clock, and failing collectors, sinks and session samples."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

import pytest
from support import until

from pinchpoint_collectors.databases.session_sampler import SessionSample, SessionSampler
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import Incident, Sample
from pinchpoint_collectors.sampler import Clock, Sampler, Schedule

S = 1_000_000_000


class FakeClock(Clock):
    """A clock that advances only when a test says so."""

    def __init__(self) -> None:
        self.now_ns = 0

    def time_ns(self) -> int:
        return 1_700_000_000 * S + self.now_ns

    def monotonic_ns(self) -> int:
        return self.now_ns

    def cpu_s(self) -> float:
        return self.now_ns / S / 10


class Scripted:
    """A collector with given readings: samples, or an error to raise."""

    def __init__(self, *script: Exception | None, during: Callable[[], None] = lambda: None) -> None:
        self._script = list(script)
        self._during = during
        self.reads = 0

    def read(self) -> Sequence[Sample]:
        self.reads += 1
        self._during()
        step = self._script.pop(0) if self._script else None
        if step is not None:
            raise step
        return [Sample(0, 1.0, "sql1", "mem.available_bytes", "", 5.0)]

    def inventory(self) -> dict[str, dict[str, object]]:
        return {}

    def close(self) -> None:
        return


class Events(list[tuple[str, dict[str, object]]]):
    """A list of the reported events."""

    def __call__(self, event: str, /, **fields: object) -> None:
        self.append((event, fields))

    def names(self) -> list[str]:
        return [name for name, _ in self]


def test_slots_are_whole_seconds_of_utc() -> None:
    """Slots are whole UTC seconds: 0.3 s after a second the next slot is 0.7 s away."""
    schedule = Schedule(1_700_000_000 * S + 300_000_000, 42 * S, 1.0)
    assert schedule.wait_s(42 * S) == pytest.approx(0.7)


def test_slots_do_not_drift() -> None:
    """Over a thousand readings of 0.2 s each, every slot is a whole second after the previous one."""
    schedule = Schedule(0, 0, 1.0)
    now = 0
    for slot in range(1000):
        now += round(schedule.wait_s(now) * S)
        assert now == slot * S
        now += 200_000_000
        assert schedule.advance(now) == 0


def test_missed_slots_are_skipped_and_counted() -> None:
    """A reading of 3.5 s misses three slots, and the next is at 4 s."""
    schedule = Schedule(0, 0, 1.0)
    assert schedule.advance(round(3.5 * S)) == 3
    assert schedule.wait_s(round(3.5 * S)) == pytest.approx(0.5)
    assert schedule.advance(4 * S) == 0


def test_an_interval_that_is_no_second() -> None:
    """With an interval of ten seconds, slots are multiples of ten seconds."""
    assert Schedule(1_700_000_003 * S, 0, 10.0).wait_s(0) == pytest.approx(7.0)


def test_each_reading_tells_its_own_cost_for_each_host() -> None:
    """Each reading reports its duration, CPU and measured interval for each host."""
    clock = FakeClock()

    def take_half_a_second() -> None:
        clock.now_ns += S // 2

    got: list[Sample] = []
    collector = Scripted(during=take_half_a_second)
    sampler = Sampler(collector, "local", ["sql1", "web1"], got.extend, on_event=Events(), clock=clock)
    sampler.tick()
    clock.now_ns += S
    got.clear()
    sampler.tick()
    own = [each for each in got if each.metric.startswith("collector.")]
    assert {(each.host, each.metric, each.instance) for each in own} == {
        (host, f"collector.{name}", "local")
        for host in ("sql1", "web1")
        for name in ("cpu_s", "duration_s", "ok")
    }
    values = {each.metric: each.value for each in own}
    assert values["collector.duration_s"] == pytest.approx(0.5)
    assert values["collector.cpu_s"] == pytest.approx(0.05)
    assert values["collector.ok"] == 1
    assert {each.interval_s for each in own} == {1.5}
    assert got[0].metric == "mem.available_bytes"


def test_a_failing_reading_is_survived_and_told_once() -> None:
    """Four failed readings give `ok` 0 each, one event at the start and one at the end, and the gap."""
    failures = [CollectorError("sql1: connection refused; is sshd up?")] * 2 + [
        ZeroDivisionError("x / 0")
    ] * 2
    events, got = Events(), list[Sample]()
    sampler = Sampler(Scripted(*failures), "ssh", ["sql1"], got.extend, on_event=events, clock=FakeClock())
    for _ in range(6):
        sampler.tick()
    ok = [each.value for each in got if each.metric == "collector.ok"]
    assert ok == [0, 0, 0, 0, 1, 1]
    assert events[:2] == [
        (
            "collector_failed",
            {"kind": "ssh", "hosts": ["sql1"], "why": "sql1: connection refused; is sshd up?"},
        ),
        ("collector_recovered", {"kind": "ssh", "hosts": ["sql1"]}),
    ]
    ((event, gap),) = events[2:]
    assert event == "gap"
    assert (gap["missed"], gap["why"]) == (4, "sql1: connection refused; is sshd up?")
    assert sampler.error is None


class TellingScripted(Scripted):
    """A scripted collector that reports its own gaps."""

    def incidents(self) -> Sequence[Incident]:
        return [Incident("gap", {"from": "a", "to": "b", "missed": 7})] if self.reads == 3 else []


def test_a_collector_that_tells_its_own_gaps_is_believed() -> None:
    """If a collector reports its own gaps, the sampler adds none for failed readings."""
    events = Events()
    sampler = Sampler(
        TellingScripted(CollectorError("late")),
        "ssh",
        ["sql1"],
        lambda _: None,
        on_event=events,
        clock=FakeClock(),
    )
    for _ in range(3):
        sampler.tick()
    assert events.names() == ["collector_failed", "collector_recovered", "gap"]
    assert events[2][1] == {"kind": "ssh", "hosts": ["sql1"], "from": "a", "to": "b", "missed": 7}


def test_how_long_readings_have_failed() -> None:
    """The failure time counts from the first failed reading and is reset by a success."""
    clock = FakeClock()
    sampler = Sampler(
        Scripted(*[CollectorError("gone")] * 3), "ssh", ["h"], lambda _: None, on_event=Events(), clock=clock
    )
    for _ in range(3):
        clock.now_ns += 2 * S
        sampler.tick()
    assert (sampler.failing_s, sampler.why) == (4.0, "gone")
    assert sampler.silent_s >= sampler.failing_s
    sampler.tick()
    assert (sampler.failing_s, sampler.silent_s, sampler.why) == (0.0, 0.0, "")


def test_who_fails_until_the_end_leaves_a_gap_too() -> None:
    """A collector that fails until the end has a gap up to the stop of the sampler."""
    events = Events()
    failures = [CollectorError("gone")] * 1000
    with Sampler(Scripted(None, *failures), "ssh", ["h"], lambda _: None, on_event=events, interval_s=0.02):
        until(lambda: "collector_failed" in events.names())
        time.sleep(0.1)
    assert events.names()[0] == "collector_failed"
    assert events.names()[-1] == "gap"
    assert str(events[-1][1]["from"]) < str(events[-1][1]["to"])


def test_an_error_of_a_driver_is_told_by_its_name() -> None:
    """A driver's own error is reported with its type."""
    events = Events()
    sampler = Sampler(
        Scripted(KeyError("f17")), "x", ["h"], lambda _: None, on_event=events, clock=FakeClock()
    )
    sampler.tick()
    assert events[0][1]["why"] == "KeyError: 'f17'"


def test_readings_come_on_time_and_end_on_stop() -> None:
    """At 50 ms of real time, readings are at multiples of the interval and end on stop."""
    got: list[Sample] = []
    collector = Scripted()
    with Sampler(collector, "local", ["sql1"], got.extend, on_event=Events(), interval_s=0.05):
        until(lambda: len(got) >= 4 * 4)
    count = len(got)
    time.sleep(0.12)
    assert len(got) == count
    assert "sampler-local" not in {thread.name for thread in threading.enumerate()}
    assert collector.reads == count / 4 + 1  # the first reading only sets the base and gives no samples


def test_a_slow_collector_leaves_a_gap_that_is_marked() -> None:
    """A reading of 0.12 s at an interval of 0.05 s misses two slots each time, and this is marked."""
    events = Events()
    slow = Scripted(during=lambda: time.sleep(0.12))
    with Sampler(slow, "local", ["sql1"], lambda _: None, on_event=events, interval_s=0.05):
        until(lambda: "gap" in events.names())
    fields = events[events.names().index("gap")][1]
    missed = fields["missed"]
    assert isinstance(missed, int)
    assert missed >= 2
    assert fields["hosts"] == ["sql1"]


def test_a_sink_that_fails_ends_the_sampler_loudly() -> None:
    """A failing sink ends the sampler with an error, because samples would be lost."""

    def full(_samples: Sequence[Sample]) -> None:
        raise OSError(28, "No space left on device")

    collector = Scripted()
    sampler = Sampler(collector, "local", ["sql1"], full, on_event=Events(), interval_s=0.02).start()
    until(lambda: sampler.error is not None)
    assert isinstance(sampler.error, OSError)
    reads = collector.reads
    time.sleep(0.06)
    assert collector.reads == reads
    sampler.stop()
    sampler.stop()


def test_stop_before_start_and_twice_is_fine() -> None:
    """Stopping before the start, and twice, is allowed."""
    sampler = Sampler(Scripted(), "local", ["sql1"], lambda _: None, on_event=Events())
    sampler.stop()
    sampler.stop()


def test_a_reading_that_never_ends_is_named_at_stop() -> None:
    """A stop does not wait for a hanging reading, and names it."""
    release = threading.Event()

    def hang() -> None:
        release.wait(20)

    stuck = Scripted(during=hang)
    sampler = Sampler(stuck, "ssh", ["sql1"], lambda _: None, on_event=Events(), interval_s=0.02).start()
    until(lambda: stuck.reads == 1)
    try:
        with pytest.raises(
            CollectorError, match=r"'ssh' of sql1: its last reading did not end within 0.05 s"
        ):
            sampler.stop(timeout_s=0.05)
    finally:
        release.set()
        sampler.stop()


def test_a_value_that_cannot_be_is_not_measured() -> None:
    """Impossible values are null, counted by series and reported once."""
    clock, events = FakeClock(), Events()
    taken: list[Sample] = []

    class Odd(Scripted):
        def read(self) -> Sequence[Sample]:
            at_ns = clock.time_ns()
            return [
                Sample(at_ns, 1.0, "sql1", "cpu.busy_ratio", "", 2000.0),
                Sample(at_ns, 1.0, "sql1", "disk.write_latency_s", "sda", 39_600.0, 5.0),
                Sample(at_ns, 1.0, "sql1", "disk.writes_per_s", "sda", float("nan")),
                Sample(at_ns, 1.0, "sql1", "cpu.busy_ratio", "0", 1.0001),
                Sample(at_ns, 1e9, "sql1", "cpu.run_queue", "", 1.0),
                Sample(at_ns + 10**20, 1.0, "sql1", "cpu.run_queue", "", 1.0),
            ]

    sampler = Sampler(Odd(), "agent", ["sql1"], taken.extend, on_event=events, clock=clock)
    sampler.tick()
    sampler.tick()
    values = [(each.metric, each.instance, each.value, each.weight) for each in taken[:4]]
    assert values == [
        ("cpu.busy_ratio", "", None, None),
        ("disk.write_latency_s", "sda", None, None),
        ("disk.writes_per_s", "sda", None, None),
        ("cpu.busy_ratio", "0", 1.0001, None),
    ]
    assert not any(each.metric == "cpu.run_queue" for each in taken)
    counts = {(metric, of): one.count for (_, metric, of), one in sampler.nonsense.found.items()}
    assert counts["cpu.busy_ratio", ""] == 2
    assert counts["cpu.run_queue", ""] == 4
    assert events.names() == ["impossible_value"] * 4
    assert "sql1: 1 impossible value" in str(events[0][1]["why"])


def test_a_value_that_is_no_number_fails_the_reading() -> None:
    """A value that is no number fails its reading, and the next one continues."""
    events = Events()
    taken: list[Sample] = []

    class Odd(Scripted):
        def read(self) -> Sequence[Sample]:
            return [Sample(1, 1.0, "sql1", "cpu.busy_ratio", "", "much")]  # type: ignore[arg-type]

    sampler = Sampler(Odd(), "agent", ["sql1"], taken.extend, on_event=events, clock=FakeClock())
    sampler.tick()
    assert events.names() == ["collector_failed"]


@pytest.mark.parametrize(
    "error", [CollectorError("it is gone"), UnicodeDecodeError("utf-8", b"x", 0, 1, "x")]
)
def test_a_sample_that_fails_is_not_the_last_one(error: Exception) -> None:
    """No error of a session sample ends the sampling thread."""
    sampled = threading.Semaphore(0)
    failing = [error, error]

    def sample() -> SessionSample:
        if failing:
            raise failing.pop()
        sampled.release()
        return SessionSample(running=1)

    sampler = SessionSampler("test-sessions", sample, sample)
    try:
        assert sampled.acquire(timeout=10), "no sample came after the ones that failed"
        assert len(sampler.take()) >= 2
    finally:
        sampler.stop()

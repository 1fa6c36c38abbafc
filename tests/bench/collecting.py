"""CPU cost of collecting: this machine compared with sadc and node_exporter, and fifty hosts over ssh."""

from __future__ import annotations

import resource
import shutil
import subprocess
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import psutil
from bench.load import BenchError
from bench.pairs import PAIRS
from bench.rows import Row
from sshd_hosts import sshd_host

from pinchpoint.store.journal import JournalWriter
from pinchpoint_collectors.local import LocalKind
from pinchpoint_collectors.record import Sample, Watch
from pinchpoint_collectors.sampler import Sampler
from pinchpoint_collectors.ssh import SshKind
from pinchpoint_infra.ports import free_port

_LOCAL_GOAL_US = 700.0
_READINGS = 20
_PACE_S = 0.05
_HOSTS = 50
_SSH_GOAL = 0.05
_SSH_S = 20.0


def rows() -> Iterator[Row]:
    """Yield the rows of one reading of this machine next to two peers, then the row of fifty hosts."""
    yield from _local()
    yield _ssh()


def _local() -> Iterator[Row]:
    """Measure Pinchpoint, sadc and node_exporter in turn, five times; yield rows with the medians."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name, ExitStack() as stack:
        folder = Path(name)
        ours = _ours(folder)
        peers = (("sadc", _sadc(folder)), ("node_exporter", stack.enter_context(_node_exporter())))
        found: dict[str, list[float]] = {"ours": [], "sadc": [], "node_exporter": []}
        for _ in range(PAIRS):
            found["ours"].append(ours())
            for peer, once_us in peers:
                found[peer].append(once_us())
    value = median(found["ours"])
    for peer, _ in peers:
        its = median(found[peer])
        yield Row("one reading of this machine, encoded", value, "us", peer, its, value / its)
    met = value <= _LOCAL_GOAL_US
    yield Row("one reading of this machine, encoded", value, "us", goal=_LOCAL_GOAL_US, met=met)


def _ours(folder: Path) -> Callable[[], float]:
    """Return a function that measures the CPU time of a reading and its journal write, in microseconds."""
    collector = LocalKind().connect([Watch("host1", "sql")])
    collector.read()
    numbers = iter(range(1000))

    def once_us() -> float:
        with JournalWriter(folder, f"bench{next(numbers)}") as journal:
            used_s = 0.0
            for _ in range(_READINGS):
                time.sleep(
                    _PACE_S
                )  # wait as in a run: the data of the last reading has left the processor's caches
                before = time.thread_time()
                journal.write_samples(collector.read())
                used_s += time.thread_time() - before
        return used_s / _READINGS * 1e6

    return once_us


def _sadc(folder: Path) -> Callable[[], float]:
    """Return a function that measures sadc's CPU time per record, in microseconds.

    The difference between a run of six and a run of two records excludes the start-up.
    """
    sadc = shutil.which("sadc", path="/usr/lib/sysstat:/usr/lib64/sa:/usr/lib/sa")
    if sadc is None:
        raise BenchError("sadc is missing (Debian: sysstat)")

    def used_s(records: int) -> float:
        # getrusage has microsecond resolution; os.times() does not
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sadc, "-S", "DISK,SNMP", "1", str(records), str(folder / "records")], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        (folder / "records").unlink()
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def once_us() -> float:
        return (used_s(6) - used_s(2)) / 4 * 1e6

    return once_us


class _node_exporter:  # noqa: N801 - used as a function with `with`
    """Start node_exporter; return a function that measures its CPU time per request, in microseconds."""

    def __init__(self) -> None:
        program = shutil.which("prometheus-node-exporter") or shutil.which("node_exporter")
        if program is None:
            raise BenchError("node_exporter is missing (Debian: prometheus-node-exporter)")
        self._program = program

    def __enter__(self) -> Callable[[], float]:
        address = f"127.0.0.1:{free_port()}"
        self._process = subprocess.Popen(
            [self._program, f"--web.listen-address={address}", "--log.level=error"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        url = f"http://{address}/metrics"
        deadline = time.monotonic() + 10
        while not _answers(url):
            if time.monotonic() > deadline:
                raise BenchError("node_exporter does not answer")
            time.sleep(0.1)
        process = psutil.Process(self._process.pid)

        def once_us() -> float:
            before = process.cpu_times()
            for _ in range(_READINGS):
                time.sleep(_PACE_S)
                _answers(url)
            after = process.cpu_times()
            return (after.user + after.system - before.user - before.system) / _READINGS * 1e6

        return once_us

    def __exit__(self, *_exc: object) -> None:
        self._process.kill()
        self._process.wait()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 - loopback
            return bool(answer.read())
    except OSError:
        return False


def _ssh() -> Row:
    """Measure the CPU share of the controller and its ssh processes for fifty hosts."""
    journalled: list[int] = []
    guard = threading.Lock()
    with sshd_host() as host, ExitStack() as stack, tempfile.TemporaryDirectory(prefix="bench-") as name:
        collectors = []
        for number in range(_HOSTS):
            collector = SshKind().connect([Watch(f"host{number}", "sql", options=host.options())])
            stack.callback(collector.close)
            collectors.append(collector)
        journal = stack.enter_context(JournalWriter(Path(name), "bench"))

        def take(samples: Sequence[Sample]) -> None:
            with guard:
                journal.write_samples(samples)
                journalled.append(len(samples))

        for number, collector in enumerate(collectors):
            sampler = Sampler(collector, "ssh", [f"host{number}"], take, on_event=lambda *_, **__: None)
            stack.enter_context(sampler)
        time.sleep(3)
        journalled.clear()
        begin_s, before_s = time.monotonic(), _used_s(host.pid)
        time.sleep(_SSH_S)
        share = (_used_s(host.pid) - before_s) / (time.monotonic() - begin_s)
        readings = len(journalled) / _HOSTS / _SSH_S
    samples = sum(journalled) / len(journalled)
    note = f"{readings:.2f} readings a second of each host, {samples:.0f} samples each"
    met = share <= _SSH_GOAL
    return Row(f"{_HOSTS} hosts over ssh, controller's CPU", share, "x", goal=_SSH_GOAL, met=met, note=note)


def _used_s(sshd: int) -> float:
    """Return the CPU seconds of this process and of the ssh processes that this process started."""
    used = time.process_time()
    for child in psutil.Process().children():
        if child.pid != sshd and child.name() == "ssh":
            times = child.cpu_times()
            used += times.user + times.system
    return used

"""Tests of the kind with both transports: WinRM by pypsrp, SSH by the system's client."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from collectors.windows.sshhost import SshHost, ssh_host
from collectors.windows.standin import Machine
from collectors.windows.winrmhost import WinRmHost, winrm_host
from support import until
from winrmserver import PASSWORD

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import Collector, GapReporter, Sample, Watch
from pinchpoint_collectors.registry import kind
from pinchpoint_collectors.windows import winrm

pytestmark = pytest.mark.timeout(90)

BOTH = pytest.mark.parametrize("way", ["winrm", "ssh"])


@pytest.fixture(autouse=True)
def nothing_open() -> Iterator[None]:
    """Fail the test that leaves a connection open."""
    yield
    gc.collect()


@contextmanager
def standing(way: str, folder: Path) -> Iterator[WinRmHost | SshHost]:
    """Yield the machine behind WinRM or SSH."""
    if way == "ssh":
        with ssh_host(folder) as ssh:
            yield ssh
    else:
        with winrm_host(Machine(), folder) as winrm_server:
            yield winrm_server


@contextmanager
def watching(server: WinRmHost | SshHost, *hosts: str, **options: Any) -> Iterator[Collector]:
    """Yield a collector of the machine under the names of these hosts."""
    disks = {"log": "L:", "tempdb": "C:\\mnt\\tempdb\\files"}
    given = server.options(interval="200ms", **options)
    collector = kind("windows").connect(
        [Watch(host, "sql", disks=disks, options=given) for host in hosts or ("sql1",)]
    )
    try:
        yield collector
    finally:
        collector.close()
        collector.close()


def read_until(collector: Collector, enough: Callable[[list[Sample]], bool], within_s: float = 30) -> None:
    """Read as the sampler does, failures included, until ``enough`` returns True."""
    deadline = time.monotonic() + within_s
    while True:
        try:
            samples = list(collector.read())
        except CollectorError:
            samples = []
        if enough(samples):
            return
        assert time.monotonic() < deadline, "it did not come to that in time"
        time.sleep(0.1)


def read_for(collector: Collector, within_s: float) -> None:
    """Read repeatedly until the time is over; raise the first failure."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        collector.read()
        time.sleep(0.1)


def has(metric: str) -> Callable[[list[Sample]], bool]:
    return lambda samples: any(sample.metric == metric and sample.value is not None for sample in samples)


@BOTH
def test_a_machine_is_watched_over_a_real_connection(way: str, tmp_path: Path) -> None:
    """The script arrives completely, its lines become samples of each host, and the cost is reported."""
    with standing(way, tmp_path) as server, watching(server, "sql1", "report1") as collector:
        samples = list(collector.read())
        found = {(one.host, one.metric, one.instance): one.value for one in samples}
        for host in ("sql1", "report1"):
            assert found[host, "disk.write_latency_s", "L:"] == pytest.approx(0.008)
            assert found[host, "disk.writes_per_s", "C:\\mnt\\tempdb"] == 50
            assert found[host, "cpu.busy_ratio", ""] == pytest.approx(0.25)
            assert found[host, "collector.clock_error_s", "windows"] is not None
            assert abs(found[host, "collector.clock_offset_s", "windows"] or 0) < 1
            assert (found[host, "collector.received_bytes", "windows"] or 0) > 1000
            assert (found[host, "collector.cpu_s", "windows/client"] or 0) > 0
        read_until(collector, has("disk.write_latency_s"))
        facts = collector.inventory()["report1"]
        assert facts["os"] == "Microsoft Windows Server 2022 Standard"
        assert facts["roles"]["tempdb"]["device"] == "C:\\mnt\\tempdb"
        assert facts["disks"]["L:"]["members"] == ["1 L:"]
        assert "HarddiskVolume1" not in facts["disks"]
        assert facts["clock"]["error_s"] > 0
        assert {
            "metric": "disk.flush*",
            "instance": "",
            "why": "Windows does not count flushes",
            "remedy": None,
        } in facts["not_measured"]


@BOTH
def test_a_link_that_is_cut_comes_back_and_its_gap_is_told(way: str, tmp_path: Path) -> None:
    """During a cut link readings fail with the reason; afterwards they work, with a gap between."""
    with standing(way, tmp_path) as server, watching(server) as collector:
        list(collector.read())
        if isinstance(server, SshHost):
            server.cut()
        else:
            server.forget()
        read_until(collector, lambda samples: not has("disk.writes_per_s")(samples))
        read_until(collector, has("disk.writes_per_s"))
        assert isinstance(collector, GapReporter)
        gaps = [one for one in collector.incidents() if one.event == "gap"]
        assert len(gaps) == 1
        assert gaps[0].fields["missed"] >= 1
        assert "127.0.0.1" in gaps[0].fields["why"]


@BOTH
def test_nothing_is_left_on_the_machine(way: str, tmp_path: Path) -> None:
    """Nothing is left on the machine after a normal end or a cut link."""
    with standing(way, tmp_path) as server:
        with watching(server) as collector:
            list(collector.read())
            if isinstance(server, SshHost):
                first = server.running()
                assert len(first) == 1
                server.cut()
                read_until(collector, lambda _: len(now := server.running()) == 1 and now != first)
            else:
                assert [shell.running for shell in server.shells.values()]
        until(
            lambda: not (server.running() if isinstance(server, SshHost) else server.shells),
            "something is left there",
        )
        if isinstance(server, WinRmHost):
            assert server.actions[-1] == "Delete"
            assert set(server.idle) == {"PT60S"}, "what was cut off is ended by Windows after a minute"


@BOTH
def test_a_machine_that_is_not_there_says_so_at_once(way: str, tmp_path: Path) -> None:
    """An unreachable machine gives host, address and reason at once."""
    with standing(way, tmp_path) as server:
        options = server.options()
    options.pop("config", None)
    with pytest.raises(CollectorError, match=r"host 'sql1', collector 'windows': .*127\.0\.0\.1.*") as caught:
        kind("windows").connect([Watch("sql1", "sql", options=options)])
    remedy = {"winrm": "winrm quickconfig -transport:https", "ssh": "start sshd"}[way]
    assert remedy in str(caught.value)


@BOTH
def test_a_drive_that_is_not_there_is_said_with_those_that_are(way: str, tmp_path: Path) -> None:
    """A missing drive's error lists the existing ones before the run, and the session ends."""
    with standing(way, tmp_path) as server:
        watch = Watch("sql1", "sql", disks={"log": "X:\\log"}, options=server.options(interval="200ms"))
        with pytest.raises(
            CollectorError, match=r"role 'log': Windows counts no disk 'X:'; there are C:, L:"
        ):
            kind("windows").connect([watch])
        if isinstance(server, WinRmHost):
            assert not server.shells


def test_winrm_fetches_what_windows_held_while_the_link_was_cut(tmp_path: Path) -> None:
    """After a second without connections WinRM continues its session, without a gap."""
    with winrm_host(Machine(), tmp_path) as server, watching(server) as collector:
        list(collector.read())
        server.cut.set()
        time.sleep(1.0)
        readings = server.machine.readings
        server.cut.clear()
        late: list[Sample] = []
        read_until(
            collector,
            lambda samples: late.extend(samples) or server.machine.readings > readings + 10,  # type: ignore[func-returns-value]
        )
        assert len(server.idle) == 1, "the session is the same"
        assert isinstance(collector, GapReporter)
        assert [one.event for one in collector.incidents()] == []
        times = sorted({one.time_ns for one in late if one.metric == "cpu.waiting_threads"})
        assert len(times) >= 10


# If a login hook has read a reply, requests does not return its connection; garbage collection closes it.
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("tls", [True, False])
def test_winrm_logs_in_by_ntlm(tls: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NTLM logs in to an independent implementation; without TLS messages are encrypted.

    A wrong password's error does not show the password.
    """
    users = tmp_path / "users"
    users.write_text(f"FARM:loader:{PASSWORD}\n")
    monkeypatch.setenv("NTLM_USER_FILE", str(users))
    with winrm_host(Machine(), tmp_path, tls=tls, login="ntlm") as server:
        with watching(server, auth="ntlm") as collector:
            read_until(collector, has("disk.writes_per_s"))
        with pytest.raises(
            CollectorError, match=r"the login was refused.*Performance Monitor Users"
        ) as caught:
            kind("windows").connect(
                [Watch("sql1", "sql", options=server.options(auth="ntlm", password="hunter2"))]
            )
        assert "hunter2" not in str(caught.value)
        assert PASSWORD not in str(caught.value)


def test_winrm_trusts_no_certificate_by_itself(tmp_path: Path) -> None:
    """A self-signed certificate is refused with the remedy, unless the user turns verification off."""
    with winrm_host(Machine(), tmp_path) as server:
        options = {key: value for key, value in server.options().items() if key != "ca"}
        with pytest.raises(CollectorError, match=r"not one that is trusted here; .*`ca:`"):
            kind("windows").connect([Watch("sql1", "sql", options=options)])
        assert server.actions == []
        collector = kind("windows").connect(
            [Watch("sql1", "sql", options={**options, "cert_validation": False})]
        )
        collector.close()


def test_a_machine_that_says_nothing_more_is_a_failure_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a machine sends nothing for some time, the reading fails with the reason."""
    monkeypatch.setattr(winrm, "_ANSWER_S", 3)
    with winrm_host(Machine(), tmp_path) as server, watching(server) as collector:
        list(collector.read())
        monkeypatch.setattr("pinchpoint_collectors.windows.collector._SILENT_S", 0.5)
        for shell in server.shells.values():
            shell.running.clear()  # the machine hangs
        with pytest.raises(CollectorError, match=r"nothing has come for \d+ s"):
            read_for(collector, 20)

"""What a host kept by itself of a gap: sysstat's records, asked for and taken only where they lie in it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from collectors.ssh.recorded import answered, hello
from support import missing

from pinchpoint_collectors.linux_over_ssh.hello import parse
from pinchpoint_collectors.linux_over_ssh.history import History, Wanted
from pinchpoint_collectors.linux_over_ssh.script import script
from pinchpoint_collectors.remote.clock import HostClock

S = 1_000_000_000
GAP = (1_800_000_000 * S, 1_800_000_030 * S)
WANTED = Wanted(("sql1", "web1"), [0, 1], ["sdb"], ["eth0"], parse(hello()).files)


class Asked:
    """A session that keeps the questions; answers are put in by the test."""

    def __init__(self, offset_ns: int = 0) -> None:
        self.wall = HostClock()
        self.wall.observe(0, offset_ns, 0)
        self.answers: dict[int, list[str]] = {}
        self.questions: list[tuple[int, int]] = []

    def ask_records(self, from_s: int, to_s: int) -> int:
        self.questions.append((from_s, to_s))
        return len(self.questions)


def sadf(*times_s: int, interval_s: int = 5) -> str:
    """As ``sadf -j`` prints it, in one line."""

    def record(time_s: int) -> dict[str, Any]:
        moment = datetime.fromtimestamp(time_s, UTC)
        stamp = {"date": f"{moment:%Y-%m-%d}", "time": f"{moment:%H:%M:%S}", "utc": 1, "interval": interval_s}
        return {
            "timestamp": stamp,
            "cpu-load": [{"cpu": "all", "idle": 25.0, "iowait": 5.0, "steal": 0.0}],
            "disk": [
                {"disk-device": "dev8-16", "tps": 100.0, "rkB": 0.0, "wkB": 800.0, "await": 2.0},
                {"disk-device": "sdz", "tps": 7.0},
            ],
            "network": {"net-dev": [{"iface": "eth0", "rxkB": 1.0, "txkB": 2.0}, {"iface": "lo"}]},
        }

    host = {"nodename": "elsewhere", "statistics": [record(time_s) for time_s in times_s]}
    return json.dumps({"sysstat": {"hosts": [host]}})


def go_on(history: History, session: Asked, now_s: float) -> tuple[list[Any], list[Any]]:
    return history.go_on(session, WANTED, now_s)  # type: ignore[arg-type]  # a stand-in of four members


def test_records_in_the_gap_are_taken_and_said_as_such() -> None:
    """Of 5 s each: those that begin before or end after it are left out; each host has them."""
    history, session = History(), Asked()
    history.missed(*GAP, now_s=0.0)
    assert go_on(history, session, 0.0) == ([], [])
    assert session.questions == [(1_800_000_000 - 660, 1_800_000_030 + 660)]
    session.answers[1] = ["sadf: a warning", sadf(*range(1_799_999_995, 1_800_000_050, 5))]
    samples, (incident,) = go_on(history, session, 1.0)
    times = sorted({each.time_ns // S - 1_800_000_000 for each in samples})
    assert times == [5, 10, 15, 20, 25, 30]
    assert {each.host for each in samples} == {"sql1", "web1"}
    assert {each.interval_s for each in samples} == {5.0}
    busy = [each.value for each in samples if each.metric == "cpu.busy_ratio"]
    assert busy == [0.7] * 12
    assert incident.event == "gap_filled"
    assert incident.fields["by"] == "sysstat"
    assert (incident.fields["readings"], incident.fields["interval_s"]) == (6, 5.0)


def test_only_what_is_watched_is_taken_under_its_own_name() -> None:
    """dev8-16 is sdb; a disk and an interface that nobody watches are left out."""
    history, session = History(), Asked()
    history.missed(*GAP, now_s=0.0)
    go_on(history, session, 0.0)
    session.answers[1] = [sadf(1_800_000_010, 1_800_000_030)]
    samples, _ = go_on(history, session, 1.0)
    assert {each.instance for each in samples if each.metric.startswith("disk.")} == {"sdb"}
    assert {each.instance for each in samples if each.metric.startswith("net.")} == {"eth0"}


def test_records_that_are_coarser_than_the_gap_are_not_spread_over_it() -> None:
    """A mean over ten minutes says nothing of half a minute in it: no sample, and why."""
    history, session = History(), Asked()
    history.missed(*GAP, now_s=0.0)
    go_on(history, session, 0.0)
    session.answers[1] = [sadf(1_800_000_200, interval_s=600)]
    samples, (incident,) = go_on(history, session, 1.0)
    assert samples == []
    assert incident.event == "gap_not_filled"
    assert "cover 600 s each" in incident.fields["why"]


def test_what_is_not_written_yet_is_asked_for_again() -> None:
    """Sysstat writes every so often: the record behind the gap decides that all is there."""
    history, session = History(), Asked()
    history.missed(*GAP, now_s=0.0)
    go_on(history, session, 0.0)
    session.answers[1] = [sadf(1_800_000_010)]
    assert go_on(history, session, 1.0) == ([], [])
    assert go_on(history, session, 4.5) == ([], [])
    assert len(session.questions) == 1
    go_on(history, session, 5.0)
    session.answers[2] = [sadf(1_800_000_010, 1_800_000_040)]
    samples, (incident,) = go_on(history, session, 6.0)
    assert samples
    assert incident.event == "gap_filled"


def test_a_host_without_records_of_that_time_is_given_up() -> None:
    """After a quarter of an hour, and it is said."""
    history, session = History(), Asked()
    history.missed(*GAP, now_s=0.0)
    go_on(history, session, 0.0)
    session.answers[1] = []
    assert go_on(history, session, 1.0) == ([], [])
    samples, (incident,) = go_on(history, session, 1000.0)
    assert samples == []
    assert incident.fields["why"] == "sysstat there has written nothing of it"
    assert go_on(history, session, 2000.0) == ([], [])


def test_the_hosts_clock_is_an_hour_ahead() -> None:
    """It is asked by its own clock, and its records are stamped by ours."""
    history, session = History(), Asked(offset_ns=3600 * S)
    history.missed(*GAP, now_s=0.0)
    go_on(history, session, 0.0)
    assert session.questions[0][0] == 1_800_000_000 + 3600 - 660
    session.answers[1] = [sadf(1_800_003_610, 1_800_003_640)]
    samples, _ = go_on(history, session, 1.0)
    assert {each.time_ns for each in samples} == {1_800_000_010 * S}


def test_a_session_that_was_lost_takes_its_answer_with_it() -> None:
    """The next one is asked anew."""
    history, session = History(), Asked()
    history.missed(*GAP, now_s=0.0)
    go_on(history, session, 0.0)
    history.unplug()
    go_on(history, session, 1.0)
    assert len(session.questions) == 2


def test_what_sadf_prints_and_nobody_understands_is_said() -> None:
    """An older version's frame, say."""
    history, session = History(), Asked()
    history.missed(*GAP, now_s=0.0)
    go_on(history, session, 0.0)
    session.answers[1] = ["{}"]
    _, (incident,) = go_on(history, session, 1.0)
    assert "was not understood" in incident.fields["why"]


def test_records_in_the_hosts_own_time() -> None:
    """Half past five hours east of UTC: stamped by our clock all the same."""
    history, session = History(), Asked()
    history.missed(*GAP, now_s=0.0)
    go_on(history, session, 0.0)
    east_s = 5 * 3600 + 1800
    local = sadf(1_800_000_010 + east_s, 1_800_000_040 + east_s).replace('"utc": 1', '"utc": 0')
    session.answers[1] = ["zone +0530 +0530", local]
    samples, _ = go_on(history, session, 1.0)
    assert {each.time_ns for each in samples} == {1_800_000_010 * S}


def test_records_over_a_clock_change_are_left_alone() -> None:
    """Whether they are of the first or the second hour of that name nobody can tell."""
    history, session = History(), Asked()
    history.missed(*GAP, now_s=0.0)
    go_on(history, session, 0.0)
    session.answers[1] = ["zone +0200 +0100", sadf(1_800_000_010, 1_800_000_040)]
    samples, (incident,) = go_on(history, session, 1.0)
    assert samples == []
    assert "clocks there were changed" in incident.fields["why"]


@pytest.mark.parametrize("zone", ["UTC", "XXX-9:30", "YYY+11"])
def test_sysstat_is_asked_in_the_time_of_its_files(zone: str, tmp_path: Path) -> None:
    """Wherever the host is: its days begin at its own midnight, and what it is asked for are UTC seconds."""
    sadc = shutil.which("sadc", path="/usr/lib/sysstat:/usr/lib64/sa:/usr/lib/sa")
    if sadc is None or shutil.which("sadf") is None:
        missing("sadc and sadf are missing (Debian: sysstat)")
    env = {**os.environ, "TZ": zone}
    day = subprocess.run(["date", "+%d"], env=env, capture_output=True, text=True, check=True).stdout.strip()
    begin_s = int(time.time())
    subprocess.run([sadc, "1", "3", str(tmp_path / f"sa{day}")], env=env, check=True)
    question = f"h 1 {begin_s - 60} {int(time.time()) + 60}\n"
    text = script(1.0, 40.0, ("/proc/stat",), (), str(tmp_path), processes=False)
    there = answered(text + question, env)
    lines = [line.removeprefix("#h 1 ") for line in there.stderr.splitlines() if line.startswith("#h 1 ")]
    history, session = History(), Asked()
    history.missed(begin_s * S, begin_s * S + S, now_s=0.0)
    go_on(history, session, 0.0)
    session.answers[1] = lines
    samples, (incident,) = go_on(history, session, 1.0)
    assert incident.event == "gap_filled", (incident, lines)
    assert all(abs(each.time_ns / S - begin_s) < 5 for each in samples)

"""Tests of a piped process, of the pauses between reconnects, and of unknown names."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from pinchpoint_collectors.common import names
from pinchpoint_collectors.common.backoff import Backoff
from pinchpoint_collectors.common.process import PipedProcess
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.remote import ssh


def pumped(link: PipedProcess, until_s: float = 10.0) -> None:
    """Read all output until the process ends."""
    end = time.monotonic() + until_s
    while not link.ended:
        assert time.monotonic() < end
        link.pump(0.2)


def test_pieces_come_whole_and_once() -> None:
    """Only complete lines are returned, standard error is separate, and the bytes of both are counted."""
    link = PipedProcess(
        ["sh", "-c", 'printf "a b\\nc"; echo oops >&2; read -r x; printf "d\\n%s\\nrest" "$x"']
    )
    try:
        while not link.errors:
            link.pump(5.0)
        link.pump(0.2)
        assert list(link.pieces()) == ["a b"]
        assert link.write("said\n")
        pumped(link)
        assert list(link.pieces()) == ["cd", "said"]
        assert link.rest == "rest"
        assert link.error_lines() == ["oops"]
        assert link.received_bytes == len("a b\ncd\nsaid\nrestoops\n")
        assert link.status() == 0
    finally:
        link.close()


def test_waiting_ends_when_it_was_said_to() -> None:
    """Waiting for a silent process ends after the time limit."""
    link = PipedProcess(["sleep", "20"])
    try:
        begin = time.monotonic()
        assert not link.pump(0.2)
        assert time.monotonic() - begin < 5
        assert not link.ended
    finally:
        link.close()


def test_one_that_talks_and_one_that_ignores_the_end_of_its_input_are_closed() -> None:
    """A process that fills its pipe or ignores the end of input is closed; closing twice is allowed."""
    for command in (["cat", "/dev/zero"], ["sleep", "60"]):
        link = PipedProcess(command)
        pid = link.pid
        begin = time.monotonic()
        link.close()
        link.close()
        assert time.monotonic() - begin < 8
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_who_listens_no_more_is_noticed() -> None:
    """Writing to a process that has ended raises no error."""
    link = PipedProcess(["true"])
    try:
        pumped(link)
        link.status()
        assert not link.write("anybody there?\n")
    finally:
        link.close()


def test_one_that_takes_nothing_is_given_up_in_time() -> None:
    """A write larger than the pipe ends at its deadline; a process that reads gets all of it."""
    for command, whole in ((["sleep", "20"], False), (["sh", "-c", "wc -c"], True)):
        link = PipedProcess(command)
        try:
            begin_s = time.monotonic()
            assert link.write("x" * 2_000_000, begin_s + (5 if whole else 0.3)) == whole
            assert time.monotonic() - begin_s < 5
        finally:
            link.close()


def test_a_missing_program_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A missing program's error names its package."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CollectorError, match="openssh-client"):
        ssh.start(ssh.Address("sql1"), "true")


def test_a_lost_link_is_tried_at_once_and_then_ever_more_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lost link is retried after 1, 2, 4, 8, 16 and then every 30 s; a success resets the pauses."""
    now_s, waits = [100.0], list[float]()
    monkeypatch.setattr(time, "monotonic", lambda: now_s[0])
    monkeypatch.setattr(time, "sleep", waits.append)
    lost = Backoff(1.0, 30.0, jitter=0.0)
    assert lost.due
    for _ in range(7):
        lost.failed()
        assert not lost.due
        lost.wait()
        now_s[0] += waits[-1]
        assert lost.due
    assert waits == [1, 2, 4, 8, 16, 30, 30]
    lost.succeeded()
    lost.wait()
    lost.failed()
    lost.wait()
    assert waits[7:] == [1]


def test_sessions_do_not_come_back_in_step() -> None:
    """Pauses vary by a quarter in both directions, so that sessions do not reconnect together."""
    pauses = set()
    for _ in range(50):
        one = Backoff(1.0, 2.0, jitter=0.25)
        begin_s = time.monotonic()
        one.failed()
        pauses.add(one._not_before_s - begin_s)
    assert 0.74 < min(pauses) < max(pauses) < 1.26
    assert len(pauses) > 40


def test_an_unknown_name_is_answered_with_all_there_are() -> None:
    """An unknown name's error lists all names in their order and the nearest."""
    assert (
        names.unknown("kind", "shh", ["ssh", "local"])
        == "unknown kind 'shh'; allowed: local, ssh; nearest: ssh"
    )
    assert names.allowed("xyz", ["ssh", "local"]) == "allowed: ssh, local"

"""A process at the end of two pipes, and when a lost one is tried again."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.remote.link import Backoff, Link


def pumped(link: Link, until_s: float = 10.0) -> None:
    """All it says until it ends."""
    end = time.monotonic() + until_s
    while not link.ended:
        assert time.monotonic() < end
        link.pump(0.2)


def test_pieces_come_whole_and_once() -> None:
    """What has no end yet stays; standard error is apart; bytes of both are counted."""
    link = Link(["sh", "-c", 'printf "a b\\nc"; echo oops >&2; read -r x; printf "d\\n%s\\nrest" "$x"'])
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
    """Whoever says nothing holds nobody up."""
    link = Link(["sleep", "20"])
    try:
        begin = time.monotonic()
        assert not link.pump(0.2)
        assert time.monotonic() - begin < 5
        assert not link.ended
    finally:
        link.close()


def test_one_that_talks_and_one_that_ignores_the_end_of_its_input_are_closed() -> None:
    """Neither a full pipe nor a stubborn process is left; closing twice is fine."""
    for command in (["cat", "/dev/zero"], ["sleep", "60"]):
        link = Link(command)
        pid = link.pid
        begin = time.monotonic()
        link.close()
        link.close()
        assert time.monotonic() - begin < 8
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_who_listens_no_more_is_noticed() -> None:
    """Saying something to a process that has ended is no error of ours."""
    link = Link(["true"])
    try:
        pumped(link)
        link.status()
        assert not link.write("anybody there?\n")
    finally:
        link.close()


def test_a_missing_program_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With the package."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CollectorError, match="openssh-client"):
        Link(["ssh", "sql1"])


def test_a_lost_link_is_tried_at_once_and_then_ever_more_seldom() -> None:
    """After 1, 2, 4, 8, 16 and then every 30 s; from the beginning after a success."""
    backoff, now_s, waits = Backoff(), 100.0, []
    assert backoff.due(now_s)
    for _ in range(7):
        backoff.failed(now_s)
        begin_s = now_s
        while not backoff.due(now_s):
            now_s += 0.5
        waits.append(now_s - begin_s)
    assert waits == [1, 2, 4, 8, 16, 30, 30]
    backoff.worked()
    assert backoff.due(now_s)
    backoff.failed(now_s)
    assert backoff.due(now_s + 1)

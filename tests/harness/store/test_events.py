"""events.jsonl: every event is written or counted, and the file stays small."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest

from pinchpoint.store.write import IN_FULL, EventLog


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_gap_a_second_for_eight_hours_is_one_line_a_minute(tmp_path: Path) -> None:
    """A gap per second for eight hours is written in full at first, then as one counted line per minute."""
    path, clock = tmp_path / "events.jsonl", Clock()
    log = EventLog(path, clock)
    for second in range(8 * 3600):
        clock.now_s = second
        log.add({"time": second, "event": "gap", "missed": 1})
        if second % 10_000 == 0:
            log.add({"time": second, "event": "phase", "phase": "measure"})
    log.close()
    log.close()
    found = lines(path)
    gaps = [line for line in found if line["event"] == "gap"]
    assert sum(line.get("stands_for", 1) for line in gaps) == 8 * 3600
    assert all("stands_for" not in line for line in gaps[:IN_FULL])
    assert len(gaps) <= IN_FULL + 8 * 60
    assert gaps[-1]["time"] == 8 * 3600 - 1
    assert len([line for line in found if line["event"] == "phase"]) == 3


def test_a_rare_event_among_many_is_written_at_once(tmp_path: Path) -> None:
    """A rare event is written at once beside frequent ones, as names are counted separately."""
    path, clock = tmp_path / "events.jsonl", Clock()
    log = EventLog(path, clock)
    for number in range(IN_FULL + 5):
        log.add({"event": "gap", "number": number})
    log.add({"event": "worker_lost"})
    assert lines(path)[-1] == {"event": "worker_lost"}
    clock.now_s = 61
    log.add({"event": "gap", "number": "later"})
    assert lines(path)[-1] == {"event": "gap", "number": "later", "stands_for": 6}
    log.close()
    assert len(lines(path)) == IN_FULL + 2


class Filling:
    """A file on a disk that accepts only a part of a write, a given number of times."""

    def __init__(self, file: Any, times: int) -> None:
        self._file, self._times = file, times

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, line: bytes) -> int:
        self._times -= 1
        written: int = self._file.write(line[: len(line) // 2] if self._times >= 0 else line)
        return written


def test_a_line_that_a_full_disk_takes_half_of_spoils_no_other(tmp_path: Path) -> None:
    """A half-written line is an error about space; earlier lines stay, and later ones are complete."""
    path = tmp_path / "events.jsonl"
    log = EventLog(path)
    log.add({"event": "phase", "phase": "measure"})
    log._file = Filling(log._file, times=2)  # type: ignore[assignment]
    for _ in range(2):
        with pytest.raises(OSError, match="space") as refused:
            log.add({"event": "gap", "missed": 1})
        assert refused.value.errno == errno.ENOSPC
        assert lines(path) == [{"event": "phase", "phase": "measure"}]
    log.add({"event": "worker_lost"})
    log.close()
    assert lines(path) == [{"event": "phase", "phase": "measure"}, {"event": "worker_lost"}]

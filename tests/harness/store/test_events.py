"""events.jsonl: every event is there, or counted; the file stays small whatever happens how often."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pinchpoint.store.events import IN_FULL, EventLog


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_gap_a_second_for_eight_hours_is_one_line_a_minute(tmp_path: Path) -> None:
    """The first ones in full; then one a minute that says how many it stands for: none is lost."""
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
    """Names are counted apart; what comes back after a quiet minute is written when it comes."""
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

"""Run by test_long_run in its own process: writes eight hours of a run and prints its memory use.

Argument: the run directory to create. Prints ``{"before_bytes", "writing_bytes", "merging_bytes"}`` (largest
resident memory until then), ``journal_bytes`` (largest size of the journal), and ``files_bytes`` as JSON.
"""

from __future__ import annotations

import json
import random
import sys
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from pinchpoint.store import compact, histogram
from pinchpoint.store.coarse import step_s
from pinchpoint.store.journal import JournalWriter
from pinchpoint.store.schema import JOURNAL, OPERATIONS, SAMPLES
from pinchpoint_collectors.record import Sample

BEGIN_S = 1_800_000_003
HOURS_8_S = 8 * 3600
OPERATIONS_OF = {"crawl": 4, "orders": 4, "burst": 4}
SERIES = 100
POOL = 4999


def text_of(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def peak_bytes() -> int:
    """Return this process's largest resident memory; ``ru_maxrss`` starts with the parent's peak."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) * 1024


def histograms(draw: random.Random) -> list[str]:
    times = [np.array([round(draw.lognormvariate(14.5, 0.6)) for _ in range(60)]) for _ in range(POOL)]
    # The histograms are chosen from thousands, as repeated ones would be compressed away.
    return [histogram.encoded(histogram.counted(one)) for one in times]


def rows_of(second: int, number: int, scenario: str, pool: list[str]) -> list[list[object]]:
    """Return rows with 60 successes of each operation per second, and one failure in five seconds."""
    rows: list[list[object]] = []
    for operation in range(OPERATIONS_OF[scenario]):
        service = pool[(second * 7 + operation * 31) % POOL]
        response = None if scenario == "crawl" else pool[(second * 11 + operation * 37) % POOL]
        worker, name = f"generator{number}", f"operation{operation}"
        rows.append([second, 1.0, worker, scenario, name, "ok", 60, 6000, service, response, 0])
        if second % 5 == 0:
            rows.append([second, 1.0, worker, scenario, name, "timeout", 60, 0, service, response, 0])
    return rows


def main(run: Path) -> None:
    journal = run / JOURNAL
    journal.mkdir(parents=True)
    draw = random.Random(1)
    pool = histograms(draw)
    manifest = {"phases": [{"name": "measure", "from": text_of(BEGIN_S), "to": None}]}
    watcher = JournalWriter(journal, "controller")
    writers = {name: JournalWriter(journal, f"generator{n}") for n, name in enumerate(OPERATIONS_OF, 1)}
    before, journal_bytes = peak_bytes(), 0
    for second in range(BEGIN_S, BEGIN_S + HOURS_8_S):
        now_ns = (second + 1) * 10**9
        for number, (scenario, writer) in enumerate(writers.items(), 1):
            writer.write_operations(rows_of(second, number, scenario, pool), now_ns)
        watcher.write_samples(
            Sample(now_ns, 1.0, "sql1", f"metric{n}", "", draw.random()) for n in range(SERIES)
        )
        if (second - BEGIN_S) % 60 == 59:
            compact.compact_closed(journal, step_s(manifest, text_of(second)))
            if (second - BEGIN_S) % 3600 == 3599:
                journal_bytes = max(journal_bytes, sum(path.stat().st_size for path in journal.iterdir()))
    for one in (watcher, *writers.values()):
        one.close()
    writing = peak_bytes()
    step = step_s(manifest, text_of(BEGIN_S + HOURS_8_S))
    compact.merge(journal, run / OPERATIONS, run / SAMPLES, step)
    said = {"before_bytes": before, "writing_bytes": writing, "merging_bytes": peak_bytes()}
    said |= {"journal_bytes": journal_bytes}
    said |= {"files_bytes": sum((run / name).stat().st_size for name in (OPERATIONS, SAMPLES))}
    print(json.dumps(said))


main(Path(sys.argv[1]))

"""CPU of 2,000 operations in one second, in our recorder and in Locust's statistics (JSON, ns).

The script has its own process, because Locust patches the standard library. It prints the smallest of several
tries, because other work on the machine only makes code slower.
"""

from __future__ import annotations

import json
import time

from locust.stats import RequestStats

from pinchpoint.loadgen.recorder import Recorder

COUNT = 2000


def main() -> None:
    """Measure and print."""
    recorder = Recorder()
    user = recorder.user("orders")
    user.intended_ns = time.perf_counter_ns()
    record, log = user.add, RequestStats().log_request
    ours_ns, locust_ns = [], []
    for _ in range(20):
        second = recorder.utc_ns(time.perf_counter_ns()) // 1_000_000_000
        first = recorder.counter_ns(second * 1_000_000_000)
        ends = [first + number * 400_000 for number in range(COUNT)]
        starts = [end - 1_200_000 - number * 7919 % 900_000 for number, end in enumerate(ends)]
        begun = time.thread_time_ns()
        for start, end in zip(starts, ends, strict=True):
            record("log_append", "ok", start, end, 100)
        taken = recorder.take(second + 1)
        found = taken.rows("g1")
        progress = taken.progress()
        between = time.thread_time_ns()
        for start, end in zip(starts, ends, strict=True):
            log("orders", "log_append", (end - start) // 1_000_000, 100)
        ours_ns.append(between - begun)
        locust_ns.append(time.thread_time_ns() - between)
        if (found[0][6], progress["orders"]["ok"]) != (COUNT, COUNT):
            raise SystemExit(f"not all were recorded: {found[0][6]}")
    print(json.dumps({"ours_ns": min(ours_ns), "locust_ns": min(locust_ns)}))


if __name__ == "__main__":
    main()

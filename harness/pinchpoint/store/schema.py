"""The columns of a run's two tables, and the names of its files."""

from __future__ import annotations

import pyarrow as pa

RUN_SCHEMA = "pinchpoint.run/1"

MANIFEST = "manifest.json"
OPERATIONS = "operations.parquet"
SAMPLES = "samples.parquet"
EVENTS = "events.jsonl"
VERDICT = "verdict.json"
REPORT = "report.html"
JOURNAL = "journal"

LONG_RUN_S = 3600
COARSE_S = 10
"""Operations of a run with more than an hour of load are kept in steps of ten seconds."""

SEND, SENT = "/send", "sent"
"""Operation and outcome of the rows that hold how late a generator started what it could have started on
time: a stage of no operation, as a histogram, so that its percentiles over any time are exact."""

UNFINISHED, GIVEN_UP = "/unfinished", "given_up"
"""Operation and outcome of the rows of what had not ended some seconds after the load: a stage of none, as
only its end would have shown which it was, that had been going on for the row's service time."""

PAUSE = "/pause"
"""Operation of the rows of what sessions wait by themselves between two operations: a stage of none
(``pinchpoint_scenarios.contract.PAUSE``)."""

OPERATIONS_SCHEMA = pa.schema(
    [
        ("time_s", pa.int64()),  # UTC second in which the operation ended; the first of the row's interval
        ("interval_s", pa.float64()),  # seconds the row covers: 1, or COARSE_S aligned to UTC
        ("worker", pa.string()),
        ("scenario", pa.string()),  # its name in the plan
        ("operation", pa.string()),  # "a/b" is stage b of operation a: timed, not throughput
        ("outcome", pa.string()),  # "ok", "dropped", or the name of the failure
        ("count", pa.int64()),
        ("bytes", pa.int64()),
        ("service", pa.string()),  # HdrHistogram V2, base64, µs; null where nothing was timed
        ("response", pa.string()),  # likewise, from the intended start; null for closed load
        ("dropped", pa.int64()),  # operations that could not start, in the second they were intended for
    ]
)

SAMPLES_SCHEMA = pa.schema(
    [
        ("time_ns", pa.int64()),
        ("interval_s", pa.float64()),
        ("host", pa.string()),
        ("metric", pa.string()),
        ("instance", pa.string()),
        ("value", pa.float64()),  # null = not measured
        ("weight", pa.float64()),  # operations behind a mean; null where the value is no mean
    ]
)

MAY_BE_NULL = frozenset({"value", "weight", "service", "response"})

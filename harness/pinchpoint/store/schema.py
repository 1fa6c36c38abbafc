"""Defines the columns of a run's two tables, and the names of a run's files."""

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
"""Seconds that a row of operations covers in a run with more than an hour of load."""

SEND, SENT = "/send", "sent"
"""Operation and outcome of the rows with the start delays that the load generator itself caused. These rows
belong to no operation; they are histograms, so that percentiles over any time are exact."""

UNFINISHED, GIVEN_UP = "/unfinished", "given_up"
"""Operation and outcome of the rows for operations that had not ended some seconds after the load. These rows
belong to no operation, because its name is known only at its end; their service time is the time since the
start."""

PAUSE = "/pause"
"""Operation of the rows with the pauses of sessions between two operations; these rows belong to no operation
(``pinchpoint_scenarios.contract.PAUSE``)."""

OPERATIONS_SCHEMA = pa.schema(
    [
        # UTC second in which the operation ended; the first second of the row's interval
        ("time_s", pa.int64()),
        ("interval_s", pa.float64()),  # seconds that the row covers: 1, or COARSE_S aligned to UTC
        ("worker", pa.string()),
        ("scenario", pa.string()),  # name of the scenario in the plan
        ("operation", pa.string()),  # "a/b" is stage b of operation a: timed, but not counted as throughput
        ("outcome", pa.string()),  # "ok", "dropped", or the name of the failure
        ("count", pa.int64()),
        ("bytes", pa.int64()),
        ("service", pa.string()),  # service times: HdrHistogram V2, base64, µs; null if nothing was timed
        # response times, from the intended start: HdrHistogram V2, base64, µs; null for closed load
        ("response", pa.string()),
        ("dropped", pa.int64()),  # operations that could not start, in the second of their intended start
    ]
)

SAMPLES_SCHEMA = pa.schema(
    [
        ("time_ns", pa.int64()),
        ("interval_s", pa.float64()),
        ("host", pa.string()),
        ("metric", pa.string()),
        ("instance", pa.string()),
        ("value", pa.float64()),  # null: not measured
        # number of operations whose mean is the value; null if the value is not a mean
        ("weight", pa.float64()),
    ]
)

MAY_BE_NULL = frozenset({"value", "weight", "service", "response"})

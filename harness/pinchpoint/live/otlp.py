"""Sends the state of a run as OpenTelemetry metrics by OTLP over HTTP (the extra ``otel``)."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Metric,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from pinchpoint.base.objects import JsonObject
from pinchpoint.live.prometheus import families

EVERY_S = 5.0
_TIMEOUT_S = 4.0


def push(newest: Callable[[], JsonObject | None], url: str) -> None:
    """Send the latest state every five seconds. Only the first failure is reported on stderr."""
    # further messages would appear within the progress of the run
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    exporter = OTLPMetricExporter(endpoint=f"{url.rstrip('/')}/v1/metrics", timeout=_TIMEOUT_S)
    begun_ns, failed = time.time_ns(), False
    while True:
        state = newest()
        if (
            state is not None
            and exporter.export(metrics(state, begun_ns)) is MetricExportResult.FAILURE
            and not failed
        ):
            failed = True
            print(f"--otlp: {url} does not take metrics; the run goes on without it", file=sys.stderr)  # noqa: T201 -- a process of its own
        time.sleep(EVERY_S)


def metrics(state: JsonObject, begun_ns: int) -> MetricsData:
    """Return all figures of /metrics under the same names."""
    at_ns = int(state["time_s"] * 1e9)
    result = []
    for name, kind, meaning, rows in families(state):
        points = [
            NumberDataPoint(dict(labels), begun_ns if kind == "counter" else 0, at_ns, float(value))
            for labels, value in rows
            if value is not None
        ]
        if points:
            data = (
                Sum(points, AggregationTemporality.CUMULATIVE, True) if kind == "counter" else Gauge(points)
            )
            result.append(Metric(f"pinchpoint_{name}", meaning, "", data))
    resource = Resource.create(
        {"service.name": "pinchpoint", "pinchpoint.plan": state["plan"], "pinchpoint.farm": state["farm"]}
    )
    return MetricsData(
        [ResourceMetrics(resource, [ScopeMetrics(InstrumentationScope("pinchpoint"), result, "")], "")]
    )

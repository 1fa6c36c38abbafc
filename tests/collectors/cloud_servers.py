"""Test servers for Azure Monitor and CloudWatch: they reply to the real SDKs according to the specifications.

A test adds each value with the time at which it becomes readable, because both services are minutes late.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from httpserver import http_served
from winrmserver import certificate

Answer = tuple[int, str, bytes, Mapping[str, str]]


@dataclass
class Measured:
    """The values that the platform has measured.

    Attributes:
        now_s: time of the platform and the test, in seconds since 1970.
        late_s: seconds between the end of an interval and the time when its value is readable.
        values: (metric's name, instance or "") -> start of the interval -> value.
        refuse: reply to each query while set; None: the query is answered.
        queries: names of the requested metrics so far.
    """

    now_s: float
    late_s: float = 120.0
    values: dict[tuple[str, str], dict[int, float]] = field(default_factory=dict)
    refuse: Answer | None = None
    queries: list[Sequence[str]] = field(default_factory=list)

    def put(self, name: str, instance: str, begin_s: int, value: float) -> None:
        self.values.setdefault((name, instance), {})[begin_s] = value

    def readable(
        self, name: str, instance: str, grain_s: int, begin_s: float, end_s: float
    ) -> Mapping[int, float]:
        """Return the values that are readable now, by start of the interval."""
        return {
            at: value
            for at, value in sorted(self.values.get((name, instance), {}).items())
            if begin_s <= at < end_s and at + grain_s + self.late_s <= self.now_s
        }

    def instances(self, name: str) -> list[str]:
        return sorted(instance for known, instance in self.values if known == name)


@contextmanager
def _serving(answer: Callable[[str, str, bytes], Answer], tls: Path | None = None) -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, kind, content, headers = answer(self.path, self.headers.get("X-Amz-Target") or "", body)
            self.send_response(status)
            for name, value in {"Content-Type": kind, "Content-Length": str(len(content)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def do_GET(self) -> None:
            self.do_POST()

        def log_message(self, *_: Any) -> None:
            """Discard the log message."""

    context = None
    if tls is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate(tls / "ca.pem", tls / "key.pem"), tls / "key.pem")
    with http_served(Handler, tls=context) as port:
        yield port


def as_json(status: int, content: object, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return status, "application/json", json.dumps(content).encode(), named


# ---- Azure ------------------------------------------------------------------------------------------------

DIMENSION = "LUN"


@contextmanager
def azure_monitor(measured: Measured, folder: Path, lacks: Sequence[str] = ()) -> Iterator[str]:
    """Run the metrics data plane and its login; yield its address. ``ca.pem`` is in the folder.

    Args:
        measured: the values; their instance is a disk's LUN.
        folder: path for the certificate.
        lacks: metrics for which a query is refused, as on an older machine.
    """

    def answer(path: str, _target: str, body: bytes) -> Answer:
        place = urlsplit(path)
        if "openid-configuration" in path:
            base = f"https://127.0.0.1:{port}/tenant1"
            return as_json(
                200,
                {
                    "token_endpoint": f"{base}/oauth2/v2.0/token",
                    "authorization_endpoint": f"{base}/oauth2/v2.0/authorize",
                    "issuer": f"{base}/v2.0",
                },
            )
        if place.path.endswith("/token"):
            if b"client_secret=right" not in body:
                said = {
                    "error": "invalid_client",
                    "error_description": "AADSTS7000215: Invalid client secret.",
                }
                return as_json(401, said)
            return as_json(200, {"token_type": "Bearer", "expires_in": 3600, "access_token": "a.b.c"})
        if measured.refuse is not None:
            return measured.refuse
        asked = {name: values[0] for name, values in parse_qs(place.query).items()}
        names = asked["metricnames"].split(",")
        measured.queries.append(names)
        unknown = [name for name in names if name in lacks]
        if unknown:
            valid = ",".join(name for name in (*names, "Percentage CPU") if name not in lacks)
            why = (
                "Failed to find metric configuration for provider: Microsoft.Compute, resource Type: "
                f"virtualMachines, metric: {unknown[0]}, Valid metrics: {valid}"
            )
            return as_json(400, {"error": {"code": "BadRequest", "message": why}})
        grain_s = {"PT1M": 60, "PT5M": 300}[asked["interval"]]
        by_lun = asked.get("filter") == f"{DIMENSION} eq '*'"
        [resource] = json.loads(body)["resourceids"]
        value = [_azure_metric(measured, name, asked, grain_s, by_lun=by_lun) for name in names]
        result = {
            "starttime": asked["starttime"],
            "endtime": asked["endtime"],
            "interval": asked["interval"],
            "namespace": asked["metricnamespace"],
            "resourceregion": "westeurope",
            "resourceid": resource,
            "value": value,
        }
        return as_json(200, {"values": [result]})

    with _serving(answer, folder) as found:
        port = found
        yield f"https://127.0.0.1:{port}"


def _azure_metric(
    measured: Measured, name: str, asked: Mapping[str, str], grain_s: int, *, by_lun: bool
) -> dict[str, Any]:
    begin_s, end_s = (datetime.fromisoformat(asked[key]).timestamp() for key in ("starttime", "endtime"))
    series = []
    for instance in measured.instances(name):
        values = measured.readable(name, instance, grain_s, begin_s, end_s)
        # Each interval of the requested time has an element, which is empty while there is no value.
        steps = range(int(begin_s), int(end_s), grain_s)
        series.append(
            {
                "metadatavalues": [{"name": {"value": DIMENSION.lower()}, "value": instance}]
                if by_lun
                else [],
                "data": [
                    {"timeStamp": _iso(at)} | ({"average": values[at]} if at in values else {})
                    for at in steps
                ],
            }
        )
    return {
        "id": f"vm/providers/Microsoft.Insights/metrics/{name}",
        "type": "Microsoft.Insights/metrics",
        "name": {"value": name, "localizedValue": name},
        "displayDescription": name,
        "unit": "Percent",
        "errorCode": "Success",
        "timeseries": series,
    }


def _iso(time_s: float) -> str:
    return datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# ---- AWS --------------------------------------------------------------------------------------------------


@contextmanager
def cloud_watch(measured: Measured) -> Iterator[str]:
    """Run GetMetricData in boto3's JSON protocol; an instance is the values of all dimensions."""

    def answer(_path: str, target: str, body: bytes) -> Answer:
        if measured.refuse is not None:
            return measured.refuse
        assert target.endswith(".GetMetricData"), target
        asked = json.loads(body)
        begin_s, end_s = asked["StartTime"], asked["EndTime"]
        results = []
        measured.queries.append(
            [one["MetricStat"]["Metric"]["MetricName"] for one in asked["MetricDataQueries"]]
        )
        for query in asked["MetricDataQueries"]:
            metric = query["MetricStat"]["Metric"]
            instance = "/".join(each["Value"] for each in metric["Dimensions"])
            values = measured.readable(
                metric["MetricName"], instance, query["MetricStat"]["Period"], begin_s, end_s
            )
            results.append(
                {
                    "Id": query["Id"],
                    "Label": metric["MetricName"],
                    "Timestamps": list(values),
                    "Values": list(values.values()),
                    "StatusCode": "Complete",
                }
            )
        half = len(results) // 2
        if "NextToken" not in asked:  # in two pages, as a large reply
            return as_json(200, {"MetricDataResults": results[:half], "NextToken": "second"})
        return as_json(200, {"MetricDataResults": results[half:]})

    with _serving(answer) as port:
        yield f"http://127.0.0.1:{port}"

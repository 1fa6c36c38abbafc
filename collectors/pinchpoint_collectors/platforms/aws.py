"""Collector kind ``aws``: CloudWatch's metrics of an instance and its EBS volumes.

https://docs.aws.amazon.com/ebs/latest/userguide/using_cloudwatch_ebs.html. Amazon reports no share of a
limit: a check per minute reports whether the load on a volume or instance exceeded its limit.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from pinchpoint_collectors.errors import CollectorError, OptionError
from pinchpoint_collectors.platforms.base import (
    MetricPoint,
    MetricSeries,
    ThrottledError,
    as_instances,
    asked_pause_s,
    connected,
    first_line,
    place,
)
from pinchpoint_collectors.record import Collector, Watch

_MINUTE, _FIVE = 60, 300
_AT_ONCE = 500
"""Largest number of metrics in one query (GetMetricData)."""


class _AwsMetric(NamedTuple):
    """The meaning of one of Amazon's metrics.

    Attributes:
        metric: name of the metric.
        statistic: statistic that is queried.
        unit: factor from Amazon's unit to the base unit.
        grain_s: interval of its values in seconds.
        left: whether the value is the remaining share and not the used one.
    """

    metric: str
    statistic: str
    unit: float
    grain_s: int = _MINUTE
    left: bool = False


_VOLUME: Mapping[str, _AwsMetric] = {
    "VolumeReadOps": _AwsMetric("cloud.disk_reads_per_s", "Sum", 1 / _MINUTE),
    "VolumeWriteOps": _AwsMetric("cloud.disk_writes_per_s", "Sum", 1 / _MINUTE),
    "VolumeQueueLength": _AwsMetric("cloud.disk_outstanding", "Average", 1.0),
    "VolumeAvgReadLatency": _AwsMetric("cloud.disk_read_latency_s", "Average", 0.001),
    "VolumeAvgWriteLatency": _AwsMetric("cloud.disk_write_latency_s", "Average", 0.001),
    "VolumeIOPSExceededCheck": _AwsMetric("cloud.disk_iops_exceeded_ratio", "Maximum", 1.0),
    "VolumeThroughputExceededCheck": _AwsMetric("cloud.disk_bytes_exceeded_ratio", "Maximum", 1.0),
    "BurstBalance": _AwsMetric("cloud.disk_burst_used_ratio", "Average", 0.01, _FIVE, left=True),
}
_INSTANCE: Mapping[str, _AwsMetric] = {
    "InstanceEBSIOPSExceededCheck": _AwsMetric("cloud.vm_iops_exceeded_ratio", "Maximum", 1.0),
    "InstanceEBSThroughputExceededCheck": _AwsMetric("cloud.vm_bytes_exceeded_ratio", "Maximum", 1.0),
    "EBSIOBalance%": _AwsMetric("cloud.vm_burst_iops_used_ratio", "Average", 0.01, _FIVE, left=True),
    "EBSByteBalance%": _AwsMetric("cloud.vm_burst_bytes_used_ratio", "Average", 0.01, _FIVE, left=True),
}
_ADD_UP = frozenset({"cloud.disk_reads_per_s", "cloud.disk_writes_per_s", "cloud.disk_outstanding"})
"""Metrics that are added up over the volumes of one role. Of all others the highest value counts."""


class AwsKind:
    """Collector kind ``aws`` of farm.yaml.

    Options in farm.yaml: ``instance`` (its id), ``region``, ``volumes`` (disk role -> volume, or the list of
    a stripe's volumes); ``profile``, or ``access_key`` and ``secret_key`` (and ``session_token``), else
    boto3's own order (environment, ~/.aws, the instance's role); ``endpoint`` for another address.
    """

    name = "aws"
    options = frozenset(
        {"instance", "region", "volumes", "profile", "access_key", "secret_key", "session_token", "endpoint"}
    )
    public = frozenset({"instance", "region", "volumes", "profile", "endpoint"})

    def machine(self, watch: Watch) -> str:
        return str(watch.options.get("instance"))

    def check_options(self, watch: Watch) -> None:
        where, given = place(watch, self.name), watch.options
        if not str(given.get("instance") or "").startswith("i-"):
            raise OptionError("instance", "no id of an instance; needed: as in i-0123456789abcdef0", where)
        if not given.get("region"):
            raise OptionError("region", "missing; needed: the instance's region, such as eu-west-1", where)
        if bool(given.get("access_key")) != bool(given.get("secret_key")):
            raise OptionError(
                "access_key", "access_key and secret_key go together; give both, or none", where
            )
        if given.get("volumes") is not None:
            named = as_instances("volumes", given["volumes"], watch.disks, where)
            wrong = [one for each in named.values() for one in each if not one.startswith("vol-")]
            if wrong:
                raise OptionError(
                    "volumes", f"{wrong[0]!r} is no volume; needed: as in vol-0123456789abcdef0", where
                )

    def connect(self, watches: Sequence[Watch]) -> Collector:
        """Log in and fetch the last minutes. Raises ``CollectorError`` with the remedy."""
        first = watches[0]
        self.check_options(first)
        where = f"{place(first, self.name)} ({first.options['instance']})"
        return connected(watches, where, {"boto3": "boto3"}, self.name, CloudWatch)


class CloudWatch:
    """The metrics of one instance and its volumes."""

    name = "CloudWatch"

    def __init__(self, watch: Watch, where: str) -> None:
        import boto3  # noqa: PLC0415
        from botocore.config import Config  # noqa: PLC0415
        from botocore.exceptions import BotoCoreError  # noqa: PLC0415

        given = watch.options
        self._where = where
        self._instance = str(given["instance"])
        volumes = as_instances("volumes", given["volumes"], (), where) if given.get("volumes") else {}
        self._volumes = {volume: role for role, each in volumes.items() for volume in each}
        self.series: Sequence[MetricSeries] = [
            *(MetricSeries(of.metric, "", of.grain_s) for of in _INSTANCE.values()),
            *(MetricSeries(of.metric, role, of.grain_s) for role in volumes for of in _VOLUME.values()),
        ]
        text = {
            name: str(given[name])
            for name in ("access_key", "secret_key", "session_token", "profile")
            if name in given
        }
        try:
            session = boto3.Session(
                aws_access_key_id=text.get("access_key"),
                aws_secret_access_key=text.get("secret_key"),
                aws_session_token=text.get("session_token"),
                profile_name=text.get("profile"),
                region_name=str(given["region"]),
            )
            self._client = session.client(
                "cloudwatch",
                endpoint_url=str(given["endpoint"]) if given.get("endpoint") else None,
                # The caller decides about retries.
                config=Config(retries={"total_max_attempts": 1}, connect_timeout=5, read_timeout=10),
            )
        except (BotoCoreError, ValueError) as error:
            raise CollectorError(
                f"{where}: {first_line(error)}; correct region, profile and endpoint"
            ) from error

    def fetch(self, begin_s: int, end_s: int) -> Iterator[MetricPoint]:
        result: dict[tuple[MetricSeries, int], dict[str, float]] = {}
        queries = list(self._queries())
        for start in range(0, len(queries), _AT_ONCE):
            part = queries[start : start + _AT_ONCE]
            for number, at_s, value in self._values(part, begin_s, end_s):
                asked = part[number]
                # The answer may have the same volume under both of its dimensions.
                result.setdefault((asked.series, at_s), {})[asked.volume] = asked.of.unit * value
        for (series, at_s), values in result.items():
            value = sum(values.values()) if series.metric in _ADD_UP else max(values.values())
            yield MetricPoint(series, at_s, value)

    def unknown(self) -> Mapping[str, str]:
        return {
            "cloud.disk_burst_used_ratio": "CloudWatch reports it for gp2, st1 and sc1 volumes only",
        }

    def close(self) -> None:
        self._client.close()

    def _queries(self) -> Iterator[_Asked]:
        instance = {"Name": "InstanceId", "Value": self._instance}
        for name, of in _INSTANCE.items():
            yield _Asked(MetricSeries(of.metric, "", of.grain_s), of, "", "AWS/EC2", name, [instance])
        for volume, role in self._volumes.items():
            only = [{"Name": "VolumeId", "Value": volume}]
            for name, of in _VOLUME.items():
                series = MetricSeries(of.metric, role, of.grain_s)
                yield _Asked(series, of, volume, "AWS/EBS", name, only)
                if name.endswith("Check") or "Avg" in name:  # measured per attachment
                    yield _Asked(series, of, volume, "AWS/EBS", name, [*only, instance])

    def _values(
        self, queries: Sequence[_Asked], begin_s: int, end_s: int
    ) -> Iterator[tuple[int, int, float]]:
        """Yield number of the query, begin of the interval, and value in Amazon's unit or as used share."""
        token: dict[str, str] = {}
        for _ in itertools.count():
            answer = self._ask(
                MetricDataQueries=[one.query(number) for number, one in enumerate(queries)],
                StartTime=datetime.fromtimestamp(begin_s // _FIVE * _FIVE, UTC),
                EndTime=datetime.fromtimestamp(max(end_s, begin_s + _MINUTE), UTC),
                ScanBy="TimestampAscending",
                **token,
            )
            for result in answer["MetricDataResults"]:
                number = int(result["Id"].removeprefix("q"))
                of = queries[number].of
                for at, value in zip(result["Timestamps"], result["Values"], strict=True):
                    yield number, round(at.timestamp()), (100.0 - value) if of.left else value
            if not answer.get("NextToken"):
                return
            token = {"NextToken": answer["NextToken"]}

    def _ask(self, **asked: Any) -> Any:
        from botocore.exceptions import (  # noqa: PLC0415
            BotoCoreError,
            ClientError,
            NoCredentialsError,
            PartialCredentialsError,
        )

        try:
            return self._client.get_metric_data(**asked)
        except ClientError as error:
            raise self._refused(error) from error
        except (NoCredentialsError, PartialCredentialsError) as error:
            raise CollectorError(f"{self._where}: no login for AWS was found; {_LOGIN}") from error
        except BotoCoreError as error:
            raise CollectorError(
                f"{self._where}: no answer from CloudWatch ({first_line(error)}); check `region`, and the "
                "way to the Internet from here"
            ) from error

    def _refused(self, error: Any) -> CollectorError:
        answer = error.response
        code = str(answer.get("Error", {}).get("Code", ""))
        about = answer.get("ResponseMetadata", {})
        status = int(about.get("HTTPStatusCode") or 0)
        if status == 429 or code.startswith(
            ("Throttl", "TooManyRequests", "RequestLimitExceeded", "LimitExceeded")
        ):
            after_s = asked_pause_s(about.get("HTTPHeaders", {}))
            return ThrottledError(f"{self._where}: CloudWatch limits the number of queries ({code})", after_s)
        result = str(answer.get("Error", {}).get("Message", "")).splitlines()[:1]
        words = f"HTTP {status} {code}{': ' + result[0][:200] if result else ''}"
        remedy = next(
            (what for name, what in _CODES.items() if name in code), "see AWS' status page, then run again"
        )
        return CollectorError(f"{self._where}: CloudWatch answered {words}; {remedy}")


class _Asked(NamedTuple):
    series: MetricSeries
    of: _AwsMetric
    volume: str
    namespace: str
    name: str
    dimensions: list[dict[str, str]]

    def query(self, number: int) -> dict[str, Any]:
        """Return the metric as a query of GetMetricData."""
        metric = {"Namespace": self.namespace, "MetricName": self.name, "Dimensions": self.dimensions}
        stat = {"Metric": metric, "Period": self.of.grain_s, "Stat": self.of.statistic}
        return {"Id": f"q{number}", "MetricStat": stat, "ReturnData": True}


_LOGIN = "give profile, or access_key and secret_key, in farm.yaml, or run: aws configure"
_CODES = {
    "AccessDenied": "this login may not read it: allow it cloudwatch:GetMetricData",
    "Unauthorized": "this login may not read it: allow it cloudwatch:GetMetricData",
    "ExpiredToken": f"the login has expired; {_LOGIN}",
    "InvalidClientToken": f"the login is not known; {_LOGIN}",
    "UnrecognizedClient": f"the login is not known; {_LOGIN}",
    "SignatureDoesNotMatch": "the secret key is wrong; correct secret_key",
    "InvalidParameter": "compare `instance`, `volumes` and `region` with the console",
}
"""Words in an error code -> remedy."""

"""Collector kind ``azure``: Azure Monitor's metrics of a virtual machine and its disks.

Azure reports per minute the share of their limits that a disk and the machine used:
https://learn.microsoft.com/azure/virtual-machines/disks-metrics. A share of 1 means that the limit was
reached.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
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

# The libraries log each failed login method, but the collector reports the failure itself.
logging.getLogger("azure").addHandler(logging.NullHandler())

_NAMESPACE = "Microsoft.Compute/virtualMachines"
_RESOURCE = re.compile(
    r"/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.Compute/virtualMachines/[^/]+",
    re.IGNORECASE,
)
_VALID = re.compile(r"Valid metrics:\s*(.+)", re.DOTALL)
_LIBRARIES = {
    "azure.monitor.querymetrics": "azure-monitor-querymetrics",
    "azure.identity": "azure-identity",
}
_MINUTE, _FIVE = 60, 300
OS_DISK = "os"
"""Role of the system disk, which has no LUN."""


class _AzureMetric(NamedTuple):
    """The meaning of one of Azure's metrics: metric, factor to the base unit, interval in seconds."""

    metric: str
    unit: float
    grain_s: int


_DISK: Mapping[str, _AzureMetric] = {
    "Disk IOPS Consumed Percentage": _AzureMetric("cloud.disk_iops_ratio", 0.01, _MINUTE),
    "Disk Bandwidth Consumed Percentage": _AzureMetric("cloud.disk_bytes_ratio", 0.01, _MINUTE),
    "Disk Latency": _AzureMetric("cloud.disk_latency_s", 0.001, _MINUTE),
    "Disk Used Burst IO Credits Percentage": _AzureMetric("cloud.disk_burst_iops_used_ratio", 0.01, _FIVE),
    "Disk Used Burst BPS Credits Percentage": _AzureMetric("cloud.disk_burst_bytes_used_ratio", 0.01, _FIVE),
}
"""Suffixes after ``Data `` (each disk by its LUN) or ``OS ``."""
_MACHINE: Mapping[str, _AzureMetric] = {
    "VM Uncached IOPS Consumed Percentage": _AzureMetric("cloud.vm_uncached_iops_ratio", 0.01, _MINUTE),
    "VM Uncached Bandwidth Consumed Percentage": _AzureMetric("cloud.vm_uncached_bytes_ratio", 0.01, _MINUTE),
    "VM Cached IOPS Consumed Percentage": _AzureMetric("cloud.vm_cached_iops_ratio", 0.01, _MINUTE),
    "VM Cached Bandwidth Consumed Percentage": _AzureMetric("cloud.vm_cached_bytes_ratio", 0.01, _MINUTE),
}


class AzureKind:
    """Collector kind ``azure`` of farm.yaml.

    Options in farm.yaml: ``resource`` (the machine's resource id), ``region``; ``luns`` (disk role -> LUN, or
    the list of a stripe's LUNs, or ``os``); ``tenant``, ``client`` and ``secret`` of an application, else
    azure-identity's default (environment, managed identity, ``az login``); for other clouds ``authority``,
    ``endpoint`` and ``audience``; ``ca``.
    """

    name = "azure"
    options = frozenset(
        {
            "resource",
            "region",
            "luns",
            "tenant",
            "client",
            "secret",
            "authority",
            "endpoint",
            "audience",
            "ca",
        }
    )
    public = options - {"secret"}

    def machine(self, watch: Watch) -> str:
        return str(watch.options.get("resource")).lower()

    def check_options(self, watch: Watch) -> None:
        where = place(watch, self.name)
        given = watch.options
        if not _RESOURCE.fullmatch(str(given.get("resource") or "")):
            raise OptionError(
                "resource",
                "no resource id of a virtual machine; needed: /subscriptions/ID/resourceGroups/GROUP/"
                "providers/Microsoft.Compute/virtualMachines/NAME, as `az vm show --query id` prints it",
                where,
            )
        if not given.get("region") and not given.get("endpoint"):
            raise OptionError("region", "missing; needed: the machine's region, such as westeurope", where)
        application = [name for name in ("tenant", "client", "secret") if given.get(name)]
        if application and len(application) < 3:
            raise OptionError(
                application[0], "given without the others; needed: tenant, client and secret", where
            )
        if given.get("luns") is not None:
            as_instances("luns", given["luns"], watch.disks, where)

    def connect(self, watches: Sequence[Watch]) -> Collector:
        """Log in and fetch the last minutes. Raises ``CollectorError`` with the remedy."""
        first = watches[0]
        self.check_options(first)
        where = f"{place(first, self.name)} ({str(first.options['resource']).rpartition('/')[2]})"
        return connected(watches, where, _LIBRARIES, self.name, AzureMonitor)


class AzureMonitor:
    """The metrics of one virtual machine, from the metrics data plane."""

    name = "Azure Monitor"

    def __init__(self, watch: Watch, where: str) -> None:
        from azure.monitor.querymetrics import MetricsClient  # noqa: PLC0415

        given = watch.options
        self._where = where
        self._resource = str(given["resource"])
        luns = as_instances("luns", given.get("luns") or {OS_DISK: OS_DISK}, (), where)
        self._roles = {lun: role for role, each in luns.items() for lun in each}
        self._asked: dict[str, _AzureMetric] = dict(_MACHINE)
        if OS_DISK in self._roles:
            self._asked |= {f"OS {name}": of for name, of in _DISK.items()}
        if any(lun != OS_DISK for lun in self._roles):
            self._asked |= {f"Data {name}": of for name, of in _DISK.items()}
        self.series: Sequence[MetricSeries] = [
            *(MetricSeries(of.metric, "", of.grain_s) for of in _MACHINE.values()),
            *(MetricSeries(of.metric, role, of.grain_s) for role in luns for of in _DISK.values()),
        ]
        self._unknown: dict[str, str] = {}
        region = str(given.get("region") or "")
        self._endpoint = str(given.get("endpoint") or f"https://{region}.metrics.monitor.azure.com")
        more = {"audience": str(given["audience"])} if given.get("audience") else {}
        common = {"connection_verify": str(given["ca"])} if given.get("ca") else {}
        self._credential = _credential(given, common)
        self._client = MetricsClient(
            self._endpoint,
            self._credential,
            retry_total=0,  # the caller decides about retries
            connection_timeout=5,
            read_timeout=10,
            **more,
            **common,
        )

    def fetch(self, begin_s: int, end_s: int) -> Iterator[MetricPoint]:
        highest: dict[tuple[MetricSeries, int], float] = {}
        for names, grain_s, of_disks in self._queries():
            for series, at, value in self._query(names, grain_s, of_disks, begin_s, end_s):
                # Of several disks of a role the one nearest to its limit counts, because it limits the
                # stripe.
                highest[series, at] = max(value, highest.get((series, at), value))
        for (series, at), value in highest.items():
            yield MetricPoint(series, at, value)

    def unknown(self) -> Mapping[str, str]:
        return self._unknown

    def close(self) -> None:
        self._client.close()
        self._credential.close()

    def _queries(self) -> Iterator[tuple[list[str], int, bool]]:
        """Return names, interval, and whether by LUN: a filter by LUN is refused for metrics without LUNs."""
        for grain_s in (_MINUTE, _FIVE):
            for of_disks in (False, True):
                names = [
                    name
                    for name, of in self._asked.items()
                    if of.grain_s == grain_s and name.startswith("Data ") == of_disks
                ]
                if names:
                    yield names, grain_s, of_disks

    def _query(
        self, names: list[str], grain_s: int, of_disks: bool, begin_s: int, end_s: int
    ) -> Iterator[tuple[MetricSeries, int, float]]:
        from azure.core.exceptions import (  # noqa: PLC0415
            ClientAuthenticationError,
            HttpResponseError,
            ServiceRequestError,
            ServiceResponseError,
        )

        begin = datetime.fromtimestamp(begin_s // grain_s * grain_s, UTC)
        end = datetime.fromtimestamp(max(end_s, begin_s + grain_s), UTC)
        asked: dict[str, Any] = {"filter": "LUN eq '*'", "max_results": 100} if of_disks else {}
        try:
            answers = self._client.query_resources(
                resource_ids=[self._resource],
                metric_namespace=_NAMESPACE,
                metric_names=names,
                timespan=(begin, end),
                granularity=timedelta(seconds=grain_s),
                aggregations=["Average"],
                **asked,
            )
        except ClientAuthenticationError as error:
            raise CollectorError(f"{self._where}: {_login(error)}") from error
        except HttpResponseError as error:
            left = self._without_unknown(names, error)
            if left is None:
                raise self._refused(error) from error
            if left:
                yield from self._query(left, grain_s, of_disks, begin_s, end_s)
            return
        except (ServiceRequestError, ServiceResponseError) as error:
            raise CollectorError(
                f"{self._where}: no answer from {self._endpoint} ({first_line(error)}); check `region`, and "
                "the way to the Internet from here"
            ) from error
        for answer in answers:
            for metric in answer.metrics:
                yield from self._values(metric, grain_s)

    def _values(self, metric: Any, grain_s: int) -> Iterator[tuple[MetricSeries, int, float]]:
        of = self._asked.get(str(metric.name))
        if of is None:
            return
        for element in metric.timeseries:
            lun = next(
                (str(value) for name, value in element.metadata_values.items() if name.lower() == "lun"), None
            )
            named = str(metric.name)
            role = (
                self._roles.get(OS_DISK if named.startswith("OS ") else str(lun))
                if named not in _MACHINE
                else ""
            )
            if role is None:
                continue  # a disk without a role
            for value in element.data:
                if value.average is not None:
                    series = MetricSeries(of.metric, role, grain_s)
                    yield series, round(value.timestamp.timestamp()), float(value.average) * of.unit

    def _without_unknown(self, names: list[str], error: Any) -> list[str] | None:
        """Return the names without those that the platform lacks for this machine; None: another error."""
        listed = _VALID.search(str(getattr(error, "message", "") or error))
        if error.status_code != 400 or listed is None:
            return None
        valid = {name.strip(" .\n'\"").lower() for name in listed[1].split(",")}
        left = [name for name in names if name.lower() in valid]
        if len(left) == len(names):
            return None
        for name in set(names) - set(left):
            self._unknown[self._asked.pop(name).metric] = (
                f"Azure Monitor has no metric {name} for this machine"
            )
        return left

    def _refused(self, error: Any) -> CollectorError:
        status = int(error.status_code or 0)
        if status == 429:
            after_s = asked_pause_s(error.response.headers if error.response else {})
            return ThrottledError(
                f"{self._where}: Azure Monitor limits the number of queries (HTTP 429)", after_s
            )
        remedy = _STATUS.get(status, "see Azure's status page, then run again")
        return CollectorError(
            f"{self._where}: Azure Monitor answered HTTP {status} ({first_line(error)}); {remedy}"
        )


_STATUS = {
    400: "compare `resource`, `region` and `luns` with `az vm show`",
    401: "the login is not accepted: correct tenant, client and secret, or run: az login",
    403: "this login may not read it: give it the role Monitoring Reader on the subscription",
    404: "there is no such machine: compare `resource` and `region` with `az vm show`",
}
"""HTTP status -> remedy."""


def _credential(given: Mapping[str, Any], common: Mapping[str, Any]) -> Any:
    from azure.identity import ClientSecretCredential, DefaultAzureCredential  # noqa: PLC0415

    more: dict[str, Any] = dict(common)
    if given.get("authority"):
        more |= {"authority": str(given["authority"]), "disable_instance_discovery": True}
    if given.get("tenant"):
        application = str(given["tenant"]), str(given["client"]), str(given["secret"])
        return ClientSecretCredential(*application, retry_total=0, **more)
    return DefaultAzureCredential(**more)


def _login(error: Any) -> str:
    status = getattr(error, "status_code", None)
    if status in (401, 403):
        return f"Azure Monitor answered HTTP {status}; {_STATUS[status]}"
    return f"the login to Azure failed ({first_line(error)}); {_STATUS[401]}"

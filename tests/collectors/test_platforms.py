"""Tests of kinds ``azure`` and ``aws`` with the clouds' libraries: lag, throttling, logins, gaps."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from collectors.cloud_servers import Measured, as_json, azure_monitor, cloud_watch

from pinchpoint_collectors.errors import CollectorError, OptionError
from pinchpoint_collectors.platforms import azure
from pinchpoint_collectors.platforms.aws import CloudWatch
from pinchpoint_collectors.platforms.azure import AzureMonitor
from pinchpoint_collectors.platforms.base import LATE_S, PlatformCollector
from pinchpoint_collectors.record import GapReporter, LateCollector, Sample, Watch
from pinchpoint_collectors.registry import kind
from pinchpoint_collectors.sampler import Sampler

START = 1_800_000_000 // 300 * 300 + 20  # 20 s into a minute, and into five minutes
MINUTE = START // 60 * 60
RESOURCE = "/subscriptions/s1/resourceGroups/prod/providers/Microsoft.Compute/virtualMachines/sql1"
IOPS, BANDWIDTH = "Data Disk IOPS Consumed Percentage", "Data Disk Bandwidth Consumed Percentage"
VM = "VM Uncached Bandwidth Consumed Percentage"


def options(url: str, folder: Path, **more: Any) -> dict[str, Any]:
    return {
        "resource": RESOURCE,
        "region": "westeurope",
        "endpoint": url,
        "authority": url,
        "ca": str(folder / "ca.pem"),
        "tenant": "tenant1",
        "client": "c",
        "secret": "right",
        "luns": {"log": 0, "data": [1, 2]},
        **more,
    }


def watched(given: dict[str, Any]) -> Watch:
    return Watch("sql1", "sql", disks={"log": "sdc", "data": "sdd"}, options=given)


def of_azure(measured: Measured, url: str, folder: Path, **more: Any) -> PlatformCollector:
    watch = watched(options(url, folder, **more))
    collector = PlatformCollector([watch], AzureMonitor(watch, "sql1"), "sql1", lambda: measured.now_s)
    assert collector.read() == ()
    return collector


def values(samples: Iterator[Sample] | Any) -> dict[tuple[str, str, int], float | None]:
    return {(one.metric, one.instance, one.time_ns // 10**9): one.value for one in samples}


def run_on(measured: Measured, collector: PlatformCollector, seconds: float) -> list[Sample]:
    """Return the samples of readings every five seconds of the platform's clock."""
    found: list[Sample] = []
    until_s = measured.now_s + seconds
    while measured.now_s < until_s:
        measured.now_s += 5
        found += collector.read()
    return found


def test_each_value_is_placed_at_its_own_minute_however_late_it_comes(tmp_path: Path) -> None:
    """A value that is readable two minutes late has the end of its minute as its time, in base units."""
    measured = Measured(START)
    for minute in range(-10, 5):
        at = MINUTE + 60 * minute
        measured.put(IOPS, "0", at, 100.0 + minute)
        measured.put(IOPS, "1", at, 10.0)
        measured.put(IOPS, "2", at, 40.0)
        measured.put(IOPS, "7", at, 99.0)  # a disk of no role
        measured.put("Data Disk Latency", "0", at, 34.0)
        measured.put(VM, "", at, 64.0)
    with azure_monitor(measured, tmp_path) as url:
        collector = of_azure(measured, url, tmp_path)
        assert isinstance(collector, GapReporter)
        assert isinstance(collector, LateCollector)
        samples = values(run_on(measured, collector, 200))
        collector.close()
    log = {
        at: value
        for (metric, role, at), value in samples.items()
        if (metric, role) == ("cloud.disk_iops_ratio", "log")
    }
    assert log[MINUTE + 60] == pytest.approx(1.0)
    assert samples["cloud.disk_iops_ratio", "data", MINUTE + 60] == pytest.approx(0.4), "the stripe's busiest"
    assert samples["cloud.disk_latency_s", "log", MINUTE + 60] == pytest.approx(0.034)
    assert samples["cloud.vm_uncached_bytes_ratio", "", MINUTE + 60] == pytest.approx(0.64)
    assert MINUTE + 240 not in log, "not readable yet"
    assert not any(value is None for value in samples.values()), "late is not lost"
    assert {name for asked in measured.queries for name in asked} >= {IOPS, BANDWIDTH, VM}


def test_what_comes_after_the_measurement_is_waited_for_and_what_never_comes_is_said(tmp_path: Path) -> None:
    """The last minutes are fetched after the end; a minute without a value is null, with a gap."""
    measured = Measured(START, late_s=170)
    for minute in (-10, -9, -8, -7, -6, 0, 1, 3):  # the run's third minute has no value
        measured.put(IOPS, "0", MINUTE + 60 * minute, 50.0)
    with azure_monitor(measured, tmp_path) as url:
        collector = of_azure(measured, url, tmp_path, luns={"log": 0})
        collector_samples = run_on(measured, collector, 225)
        end_ns = int(measured.now_s) * 10**9  # four minutes and five seconds after the first start
        assert not collector.complete(end_ns)
        assert not any(
            one.value is not None and one.time_ns // 10**9 > MINUTE + 180 for one in collector_samples
        )
        waited_s = 0
        while not collector.complete(end_ns):
            collector_samples += run_on(measured, collector, 5)
            waited_s += 5
            assert waited_s < collector.late_s, "the wait is bounded"
        incidents = collector.incidents()
        collector.close()
    log = {
        at: value
        for (metric, _, at), value in values(collector_samples).items()
        if metric == "cloud.disk_iops_ratio"
    }
    measured_minutes = {at: value for at, value in log.items() if at > MINUTE}
    assert measured_minutes == {MINUTE + 60: 0.5, MINUTE + 120: 0.5, MINUTE + 180: None, MINUTE + 240: 0.5}
    [gap] = [one for one in incidents if one.event == "gap"]
    assert gap.fields["why"] == "Azure Monitor reported no value of it within 4 minutes"
    [said] = [one.fields["why"] for one in incidents if one.event == "partial_answer"]
    assert "not measured: cloud.disk_iops_ratio log (1 of 4 values)" in said


def test_throttling_is_waited_out_and_no_value_is_lost(tmp_path: Path) -> None:
    """After HTTP 429 with Retry-After no query is sent before its end, and then all values arrive."""
    measured = Measured(START, late_s=60)
    for minute in range(-10, 12):
        measured.put(IOPS, "0", MINUTE + 60 * minute, 50.0)
    with azure_monitor(measured, tmp_path) as url:
        collector = of_azure(measured, url, tmp_path, luns={"log": 0})
        run_on(measured, collector, 5)  # the values of the first reading
        measured.refuse = as_json(429, {"error": {"code": "TooManyRequests"}}, Retry_After="400")
        measured.now_s += 40
        with pytest.raises(CollectorError, match=r"limits the number of queries.*next query is in 400 s"):
            collector.read()
        measured.refuse = None
        asked = len(measured.queries)
        measured.now_s += 300
        with pytest.raises(CollectorError, match="no value is lost"):
            collector.read()
        assert len(measured.queries) == asked
        measured.now_s += 120
        found = {
            at: value
            for (metric, _, at), value in values(collector.read()).items()
            if metric == "cloud.disk_iops_ratio"
        }
        collector.close()
    wanted = [MINUTE + 60 * minute for minute in range(1, 7)]
    assert [found.get(at) for at in wanted] == [0.5] * 6


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (401, r"HTTP 401.*run: az login"),
        (403, r"HTTP 403.*role Monitoring Reader"),
        (404, r"HTTP 404.*no such machine: compare `resource`"),
        (503, r"HTTP 503.*status page"),
    ],
)
def test_what_azure_refuses_is_one_sentence_with_the_remedy(tmp_path: Path, status: int, said: str) -> None:
    """Each refusal of Azure at `connect` gives one sentence with the remedy, before the run."""
    measured = Measured(START)
    with azure_monitor(measured, tmp_path) as url:
        measured.refuse = as_json(status, {"error": {"code": "X", "message": "no\nnot at all"}})
        with pytest.raises(CollectorError, match=said) as caught:
            kind("azure").connect([watched(options(url, tmp_path))])
        assert "\n" not in str(caught.value)
        assert "right" not in str(caught.value)


def test_a_wrong_secret_and_an_unreachable_platform_are_explained(tmp_path: Path) -> None:
    """A wrong secret gives the login's own message; an unreachable platform names its address."""
    measured = Measured(START)
    with azure_monitor(measured, tmp_path) as url:
        with pytest.raises(CollectorError, match=r"login to Azure failed.*AADSTS7000215.*correct tenant"):
            kind("azure").connect([watched(options(url, tmp_path, secret="wrong"))])
        given = options(url, tmp_path, endpoint="https://127.0.0.1:1")
        with pytest.raises(CollectorError, match=r"no answer from https://127.0.0.1:1.*check `region`"):
            kind("azure").connect([watched(given)])


def test_a_metric_that_the_machine_lacks_costs_no_other(tmp_path: Path) -> None:
    """A metric that Azure refuses is left out from then on and reported; the others continue."""
    measured = Measured(START)
    for minute in range(-10, 0):
        measured.put(IOPS, "0", MINUTE + 60 * minute, 50.0)
    with azure_monitor(measured, tmp_path, lacks=["Data Disk Latency"]) as url:
        collector = of_azure(measured, url, tmp_path, luns={"log": 0})
        missing = collector.inventory()["sql1"]["not_measured"]
        collector.close()
    why = {each["metric"]: each["why"] for each in missing if each["instance"] == "log"}
    assert "cloud.disk_iops_ratio" not in why
    assert why["cloud.disk_latency_s"] == "Azure Monitor has no metric Data Disk Latency for this machine"
    assert "reported no value of it" in why["cloud.disk_bytes_ratio"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"resource": "sql1"}, "no resource id of a virtual machine"),
        ({"region": None, "endpoint": None}, "region: missing"),
        ({"secret": None}, "given without the others"),
        ({"luns": {"logs": 0}}, "no disk role 'logs' on this host; allowed: data, log"),
        ({"luns": 0}, "needed: a disk role and its disk"),
    ],
)
def test_options_that_cannot_be_are_refused_before_anything_is_reached(
    tmp_path: Path, wrong: dict[str, Any], said: str
) -> None:
    """An impossible option is refused before any request, with field, value and allowed values."""
    given = options("https://127.0.0.1:1", tmp_path) | wrong
    with pytest.raises(OptionError) as caught:
        azure.AzureKind().check_options(watched(given))
    assert said in str(caught.value)


def test_a_sampler_reads_on_until_the_last_values_are_there(tmp_path: Path) -> None:
    """The harness's sampler waits until ``complete``, and its sink then has the last minute."""
    measured = Measured(START, late_s=0)
    for minute in range(-10, 2):
        measured.put(IOPS, "0", MINUTE + 60 * minute, 50.0)
    with azure_monitor(measured, tmp_path) as url:
        collector = of_azure(measured, url, tmp_path, luns={"log": 0})
        got: list[Sample] = []
        sampler = Sampler(collector, "azure", ["sql1"], got.extend, on_event=lambda *_, **__: None)
        end_ns = (MINUTE + 60) * 10**9
        assert not collector.complete(end_ns)
        measured.now_s += 60
        sampler.tick()
        measured.now_s += LATE_S
        sampler.tick()
        assert collector.complete(end_ns)
        collector.close()
    assert values(got)["cloud.disk_iops_ratio", "log", MINUTE + 60] == 0.5


# ---- AWS ------------------------------------------------------------------------------------------------


def aws_options(url: str, **more: Any) -> dict[str, Any]:
    return {
        "instance": "i-1",
        "region": "eu-west-1",
        "endpoint": url,
        "access_key": "AKID",
        "secret_key": "s3cret",
        "volumes": {"log": "vol-a", "data": ["vol-b", "vol-c"]},
        **more,
    }


def of_aws(measured: Measured, url: str) -> PlatformCollector:
    watch = watched(aws_options(url))
    collector = PlatformCollector([watch], CloudWatch(watch, "sql1"), "sql1", lambda: measured.now_s)
    assert collector.read() == ()
    return collector


def test_volumes_of_amazon_are_read_by_the_minute() -> None:
    """EBS metrics are rates per second and used balances; checks have either dimension; stripes are added."""
    measured = Measured(START, late_s=90)
    for minute in range(-10, 3):
        at = MINUTE + 60 * minute
        for volume, count in (("vol-a", 180_000.0), ("vol-b", 6000.0), ("vol-c", 12_000.0)):
            measured.put("VolumeWriteOps", volume, at, count)
        measured.put("VolumeIOPSExceededCheck", "vol-a/i-1", at, 1.0)
        measured.put("VolumeAvgWriteLatency", "vol-a", at, 21.0)
        measured.put("InstanceEBSIOPSExceededCheck", "i-1", at, 0.0)
    for five in range(-2, 1):
        measured.put("BurstBalance", "vol-a", START // 300 * 300 + 300 * five, 30.0)
    with cloud_watch(measured) as url:
        collector = of_aws(measured, url)
        found = values(run_on(measured, collector, 400))
        collector.close()
    at = MINUTE + 60
    assert found["cloud.disk_writes_per_s", "log", at] == pytest.approx(3000)
    assert found["cloud.disk_writes_per_s", "data", at] == pytest.approx(300)
    assert found["cloud.disk_iops_exceeded_ratio", "log", at] == 1.0
    assert found["cloud.disk_write_latency_s", "log", at] == pytest.approx(0.021)
    assert found["cloud.vm_iops_exceeded_ratio", "", at] == 0.0
    assert found["cloud.disk_burst_used_ratio", "log", START // 300 * 300 + 300] == pytest.approx(0.7)


@pytest.mark.parametrize(
    ("status", "code", "said"),
    [
        (400, "Throttling", r"limits the number of queries \(Throttling\).*next query is in 20 s"),
        (403, "AccessDenied", r"AccessDenied.*allow it cloudwatch:GetMetricData"),
        (403, "ExpiredToken", "the login has expired"),
        (400, "InvalidParameterValue", "compare `instance`, `volumes` and `region`"),
    ],
)
def test_what_amazon_refuses_is_one_sentence_with_the_remedy(status: int, code: str, said: str) -> None:
    """Each refusal of CloudWatch, as boto3 raises it, gives one sentence with the remedy."""
    measured = Measured(START)
    with cloud_watch(measured) as url:
        measured.refuse = as_json(
            status, {"__type": f"com.amazonaws#{code}", "message": "no"}, Retry_After="20"
        )
        with pytest.raises(CollectorError, match=said) as caught:
            kind("aws").connect([watched(aws_options(url))])
        assert "s3cret" not in str(caught.value)
    with pytest.raises(CollectorError, match="no answer from CloudWatch"):
        kind("aws").connect([watched(aws_options("http://127.0.0.1:1"))])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"instance": "sql1"}, "no id of an instance"),
        ({"region": ""}, "region: missing"),
        ({"secret_key": None}, "go together"),
        ({"volumes": {"log": "sdc"}}, "'sdc' is no volume"),
    ],
)
def test_options_of_amazon_that_cannot_be_are_refused(wrong: dict[str, Any], said: str) -> None:
    """An impossible option of ``aws`` is refused with field, value and allowed values."""
    with pytest.raises(OptionError) as caught:
        kind("aws").connect([watched(aws_options("http://127.0.0.1:1") | wrong)])
    assert said in str(caught.value)


def test_the_libraries_print_nothing_of_their_own() -> None:
    """The libraries print nothing, although each failed Azure login would print lines."""
    code = (
        "import logging, pinchpoint_collectors.platforms.azure\n"
        "logging.getLogger('azure.identity').warning('no such login')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stderr == ""

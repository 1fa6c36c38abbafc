"""Checks before a run that everything is reachable, permitted and large enough, and tests collectors.

Each collector is tested: reachable, read twice, plausible, complete, on time. A broken figure counts as "not
measured", with the remedy, and never as 0. The check fails if no run could use the host's figures: the host
is not reachable or readable, a disk's figures are those of another disk, or farm.yaml declares the collector
``required``.
"""

from __future__ import annotations

import math
import mmap
import os
import shlex
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, wait
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import psutil

from pinchpoint.base.interrupts import begun, within
from pinchpoint.base.objects import JsonObject
from pinchpoint.base.units import bytes_, of_metric, percent, seconds
from pinchpoint.plan import Farm
from pinchpoint_collectors import registry as collector_kinds
from pinchpoint_collectors.common.counts import counted
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import Collector, Sample, Watch
from pinchpoint_collectors.remote import ssh
from pinchpoint_collectors.remote.clock import WARN_OFFSET_S
from pinchpoint_collectors.remote.ssh import Address
from pinchpoint_scenarios.contract import Scenario
from pinchpoint_scenarios.errors import ScenarioError

_SPACE_BYTES = 200_000_000  # an hour's run on one machine needs about a tenth of this
CHECK_S = 60.0
"""Time limit in seconds for an endpoint or a host to answer a check."""
_PLACES_S = 2.0
CLOSE_S = 10.0
AT_ONCE = 32
"""Number of collectors that are handled at a time. They mostly wait for other machines."""


@dataclass(frozen=True, slots=True)
class HostCheck:
    """One check and its result.

    Attributes:
        what: name of the check: ``scenario orders``, ``collector local (sql1, nosql1)``.
        ok: whether a run can use what was checked.
        found: the result, with the remedy if ``ok`` is false.
        about: kind of collector and host, for each host of a collector's check.
        warning: whether the result may be limited although ``ok`` is true.
    """

    what: str
    ok: bool
    found: str
    about: tuple[tuple[str, str], ...] = ()
    warning: bool = False


Say = Callable[[HostCheck], None]


@dataclass(frozen=True, slots=True)
class Connected:
    """A connected collector with its hosts.

    Attributes:
        kind: kind of the collector.
        hosts: hosts that it reads.
        collector: the collector.
        required: whether the run must end when one of the hosts can no longer be read.
        inventory: facts of each host at the time of connecting.
    """

    kind: str
    hosts: tuple[str, ...]
    collector: Collector
    required: bool = False
    inventory: Mapping[str, JsonObject] = field(default_factory=dict)


def check_scenarios(
    scenarios: Mapping[str, Scenario], say: Say = lambda _: None
) -> tuple[list[HostCheck], dict[str, Any]]:
    """Contact every endpoint in parallel. Return the checks, and scenario -> facts about its servers.

    ``say`` receives each check when it is done, from several threads.
    """

    def check(name: str) -> tuple[HostCheck, dict[str, Any]]:
        facts = {}
        try:
            facts[name] = dict(within(CHECK_S, scenarios[name].check))
            done = HostCheck(f"scenario {name}", ok=True, found=_reported(facts[name]))
        except ScenarioError as error:
            done = HostCheck(f"scenario {name}", ok=False, found=str(error))
        except TimeoutError as error:
            remedy = "look whether it answers, and for a proxy or firewall on the way"
            result = f"{places(scenarios[name])}: {error}; {remedy}"
            done = HostCheck(f"scenario {name}", ok=False, found=result)
        say(done)
        return done, facts

    with ThreadPoolExecutor(AT_ONCE) as pool:
        result = list(pool.map(check, scenarios))
    return [done for done, _ in result], {name: said for _, facts in result for name, said in facts.items()}


def places(scenario: Scenario) -> str:
    """Return the servers of a scenario, or "a server" if its servers are unknown or do not answer."""
    result: list[str] = []
    with suppress(ScenarioError, TimeoutError):
        result = [target.place for target in within(_PLACES_S, scenario.intent).targets]
    return ", ".join(dict.fromkeys(result)) or "a server"


def _reported(facts: JsonObject) -> str:
    """Return short facts about the servers: ``sql: postgresql 18.6; search: reachable``."""
    result = []
    for endpoint, answer in facts.items():
        words = [str(answer[key]) for key in ("server", "version") if answer.get(key)] if answer else []
        words += [f"by {answer['driver']}"] if answer and answer.get("driver") else []
        result.append(f"{endpoint}: {' '.join(words) or 'reachable'}")
        result += answer.get("rights", []) if answer else []
        result += answer.get("warnings", []) if answer else []
    return "; ".join(result)


def connect(
    watches: Sequence[tuple[str, Watch]], stack: ExitStack, say: Say = lambda _: None
) -> Iterator[tuple[HostCheck, Connected | None]]:
    """Connect one collector per machine and kind, and read each twice. ``stack`` closes the collectors.

    Several are connected at a time, because a distant host takes seconds, and a silent one its whole timeout.
    The results are in the order of the watches. ``say`` receives each check when it is done.
    """
    groups: dict[tuple[str, str], list[Watch]] = {}
    for kind, watch in watches:
        groups.setdefault((kind, _machine(kind, watch)), []).append(watch)
    opened: list[Collector] = []
    stack.callback(_close, opened)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield from pool.map(lambda found: _connected(found[0][0], found[1], opened, say), groups.items())


def _machine(kind: str, watch: Watch) -> str:
    """Return a key for the machine of a watch.

    If an option is wrong, the key is the watch itself, and connecting reports the error.
    """
    try:
        return collector_kinds.kind(kind).machine(watch)
    except Exception:  # noqa: BLE001 - as of connecting: that host's, and no other's
        return f"host {watch.host}"


def _close(opened: Sequence[Collector]) -> None:
    """Close all collectors in parallel. An exception is raised after all have been closed.

    A machine that does not answer is not waited for. Its connection ends with this process.
    """
    closing = [begun(collector.close) for collector in opened]
    wait(closing, CLOSE_S)
    for one in closing:
        if one.done():
            one.result()


def _read_twice(
    kind: str, group: list[Watch], opened: list[Collector]
) -> tuple[Collector, Sequence[Sample], Mapping[str, JsonObject]]:
    collector = collector_kinds.kind(kind).connect(group)
    opened.append(collector)
    collector.read()
    return collector, collector.read(), collector.inventory()


def _connected(
    kind: str, group: list[Watch], opened: list[Collector], say: Say
) -> tuple[HostCheck, Connected | None]:
    check, connected = _reached_and_read(kind, group, opened)
    say(check)
    return check, connected


def _reached_and_read(
    kind: str, group: list[Watch], opened: list[Collector]
) -> tuple[HostCheck, Connected | None]:
    hosts = tuple(watch.host for watch in group)
    what = f"collector {kind} ({', '.join(hosts)})"
    about = tuple((kind, host) for host in hosts)
    try:
        collector, samples, inventory = within(CHECK_S, partial(_read_twice, kind, group, opened))
    except CollectorError as error:
        return HostCheck(what, ok=False, found=str(error), about=about), None
    except Exception as error:  # noqa: BLE001 - a driver's own error is that host's, and no other's
        return HostCheck(what, ok=False, found=f"{type(error).__name__}: {error}", about=about), None
    required = any(watch.required for watch in group)
    result = f"{counted(len(samples), 'value')} in a reading"
    connected = Connected(kind, hosts, collector, required, inventory)
    return HostCheck(what, ok=True, found=result, about=about), connected


def check_space(out: Path) -> HostCheck:
    """Check that the folder for runs is writable and has enough space."""
    nearest = next(folder for folder in (out.absolute(), *out.absolute().parents) if folder.exists())
    what = f"run directory {out}"
    if not nearest.is_dir():
        return HostCheck(what, ok=False, found=f"{nearest} is a file; give a folder with --out")
    try:
        tempfile.TemporaryFile(dir=nearest).close()
    except OSError as error:
        return HostCheck(
            what, ok=False, found=f"cannot write in {nearest}: {error.strerror}; give another with --out"
        )
    free = shutil.disk_usage(nearest).free
    if free < _SPACE_BYTES:
        result = f"{free // 10**6} MB free in {nearest}, a run may need {_SPACE_BYTES // 10**6} MB; make room"
        return HostCheck(what, ok=False, found=result)
    return HostCheck(what, ok=True, found=f"writable, {free // 10**9} GB free")


_BUSY_RATIO = 1 / 3
"""CPU utilisation by other work that causes a warning: it lowers the confidence
(``thresholds.OTHER_PROCESSES``)."""


def check_load_here() -> HostCheck:
    """Measure for one second how busy this machine, the load generator, is before the load."""
    busy = psutil.cpu_percent(_BETWEEN_S) / 100
    result = f"{percent(busy)} busy before the load begins"
    if busy >= _BUSY_RATIO:
        result += "; the run may be invalid: end the other work, or run from another machine"
        return HostCheck("load generator (this machine)", ok=True, warning=True, found=result)
    return HostCheck("load generator (this machine)", ok=True, found=result)


_BETWEEN_S = 1.0
_PATIENCE_S = 6.0

Outcome = Literal["ok", "warning", "not measured", "failed"]


@dataclass(frozen=True, slots=True)
class ProofCheck:
    """One check of one host with one kind of collector.

    Attributes:
        host: name of the host in farm.yaml.
        kind: kind of the collector.
        what: ``reached``, ``read twice``, ``units``, ``counters``, ``clock``, ``rights``, ``write ROLE``, or
            the metric that is not measured.
        outcome: ``ok``; ``warning``: a run can use the host, with a note; ``failed``: no run can use it.
        found: the result.
        remedy: the remedy; None if no remedy is needed or possible.
    """

    host: str
    kind: str
    what: str
    outcome: Outcome
    found: str
    remedy: str | None = None


def prove(
    farm: Farm, watches: Sequence[tuple[str, Watch]], say: Say = lambda _: None
) -> tuple[list[HostCheck], list[ProofCheck]]:
    """Connect every collector and test it on each of its hosts. This takes a few seconds of mostly waiting.

    Args:
        farm: farm that defines where write tests are allowed.
        watches: kind and watch of every host.
        say: receives the check of each collector after connecting, from several threads.
    """
    checks, proofs = [], []
    by_name = {(kind, watch.host): watch for kind, watch in watches}
    with ExitStack() as stack:
        there = []
        for check, connected in connect(watches, stack, say):
            checks.append(check)
            proofs += [_reached(check, kind, host) for kind, host in check.about]
            if connected is not None:
                there.append(connected)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            read = list(pool.map(FirstReadings.of, there))
            written = _all_writes(farm, read, by_name, pool)
        for one in read:
            for host in one.connected.hosts:
                name = one.connected.kind, host
                proofs += one.proofs(host, required=by_name[name].required)
                proofs += written.get(name, ())
    return checks, proofs


def _all_writes(
    farm: Farm, read: Sequence[FirstReadings], by_name: Mapping[tuple[str, str], Watch], pool: Executor
) -> dict[tuple[str, str], list[ProofCheck]]:
    """Return the results of the write tests by kind and host.

    Machines are tested in parallel, the disks of one machine one after the other.

    Two tests on one machine would disturb each other. Hosts without a machine id count as one machine.
    """
    machines: dict[str | None, list[tuple[Connected, Watch]]] = {}
    for one in read:
        for host in () if one.failed else one.connected.hosts:
            watch = by_name[one.connected.kind, host]
            machines.setdefault(one.facts[host].get("machine_id"), []).append((one.connected, watch))

    def on_machine(there: list[tuple[Connected, Watch]]) -> list[tuple[tuple[str, str], list[ProofCheck]]]:
        return [((each.kind, watch.host), list(_writes(farm, each, watch))) for each, watch in there]

    return dict(found for machine in pool.map(on_machine, machines.values()) for found in machine)


def _reached(check: HostCheck, kind: str, host: str) -> ProofCheck:
    return ProofCheck(host, kind, "reached", "ok" if check.ok else "failed", check.found)


@dataclass(frozen=True, slots=True)
class FirstReadings:
    """Two readings of one collector with at least a second between them.

    Attributes:
        connected: collector with its hosts.
        times: host -> number of its readings.
        latest: host -> latest sample of each metric and instance.
        failed: why a reading failed; "" if no reading failed.
        facts: host -> inventory.
    """

    connected: Connected
    times: Mapping[str, int]
    latest: Mapping[str, Sequence[Sample]]
    failed: str
    facts: Mapping[str, JsonObject]

    @classmethod
    def of(cls, connected: Connected) -> FirstReadings:
        """Read until each host was read twice, or until the time limit."""
        facts: Mapping[str, JsonObject] = {}
        times = dict.fromkeys(connected.hosts, 0)
        series: Counter[tuple[str, str, str]] = Counter()
        latest: dict[tuple[str, str, str], Sample] = {}
        failed = ""
        try:
            inventory = connected.collector.inventory()
            facts = {host: inventory.get(host, {}) for host in connected.hosts}
            every_s = max(float(facts[host].get("scrape_interval_s") or 0) for host in connected.hosts)
            until_s = time.monotonic() + _PATIENCE_S + 2.5 * every_s
            # drops what was counted while connecting, and while the other hosts connected
            connected.collector.read()
            while time.monotonic() < until_s and not all(count > 1 for count in times.values()):
                time.sleep(_BETWEEN_S)
                for sample in connected.collector.read():
                    name = (sample.host, sample.metric, sample.instance)
                    latest[name] = sample
                    if not sample.metric.startswith("collector.") and sample.interval_s > 0:
                        series[name] += 1  # each reading has one such sample
                        times[sample.host] = max(times[sample.host], series[name])
        except CollectorError as error:
            failed = str(error)
        except Exception as error:  # noqa: BLE001 - a driver's own error is that host's, and no other's
            failed = f"{type(error).__name__}: {error}"
        by_host = {host: [each for each in latest.values() if each.host == host] for host in connected.hosts}
        return cls(connected, times, by_host, failed, facts)

    def proofs(self, host: str, *, required: bool) -> Iterator[ProofCheck]:
        """Yield the checks of one host from two readings and the inventory."""
        kind = self.connected.kind
        check = partial(ProofCheck, host, kind)
        samples = [each for each in self.latest[host] if not each.metric.startswith("collector.")]
        broken: Outcome = "failed" if required else "not measured"
        if self.failed:
            yield check("read twice", "failed", self.failed)
            return
        facts = self.facts[host]
        if self.times[host] < 2:
            result = f"fewer than two readings came within {_PATIENCE_S:.0f} s"
            yield check("read twice", "failed", result, "look at the host's load and its link")
            return
        measured = sum(each.value is not None for each in samples)
        result = f"{measured} values of {len({each.metric for each in samples})} metrics"
        yield check("read twice", "ok", result)
        wrong = implausible(samples, facts)
        if not wrong:
            yield check("units", "ok", "shares, latencies and rates are within what machines can do")
        remedy = "compare with the host's own tools; it is not to be trusted until both agree"
        for sentence in wrong:
            yield check("units", broken, sentence, remedy)
        yield from _counters(check, samples, facts, broken)
        yield from _busy(check, samples)
        yield from _rights(check, facts)
        yield from _processes(check, kind, facts)
        yield _clock(check, self.latest[host], facts)


_Check = partial[ProofCheck]
"""Function that makes a check of a given host and kind of collector."""


def _counters(
    check: _Check, samples: Sequence[Sample], facts: JsonObject, broken: Outcome
) -> Iterator[ProofCheck]:
    up, rates = moved(samples)
    if rates and not up:
        result = f"none of {rates} rates and shares was above 0: the counters stand still"
        yield check("counters", broken, result, "start the host's counters anew, or its exporter")
    elif rates:
        yield check("counters", "ok", f"{up} of {rates} rates and shares moved")
    for metric in absent(samples, facts):
        remedy = "look whether the host, or its exporter, shows it"
        yield check(metric, broken, "the reading does not have it", remedy)
    if lacking := unread(samples):
        result = f"had no value in this reading: {', '.join(lacking)}"
        yield check("counters", "not measured", result, "check again; then see the rights")
    for each in facts.get("not_measured", ()):
        name = f"{each['metric']} {each['instance']}".strip()
        yield check(name, "not measured", each["why"], each["remedy"])


def _busy(check: _Check, samples: Sequence[Sample]) -> Iterator[ProofCheck]:
    """Yield how busy the host is before the load begins."""
    for sample in samples:
        if (sample.metric, sample.instance) == ("cpu.busy_ratio", "") and sample.value is not None:
            busy = sample.value >= _BUSY_RATIO
            result = f"{percent(sample.value)} of its CPU is used before the load begins"
            remedy = "end the other work on it, or test at another time: the verdict may be uncertain"
            outcome: Outcome = "warning" if busy else "ok"
            yield check("other work", outcome, result, remedy if busy else None)


def _rights(check: _Check, facts: JsonObject) -> Iterator[ProofCheck]:
    """Yield the user that a server assigned to the collector, and the rights of this user."""
    server = facts.get("database")
    if not server:
        return
    lines = [f"{key} {server[key]}" for key in ("role", "sees") if server.get(key)]
    result = "; ".join(lines) or "the server does not say whom it took us for"
    if "settings" in server and server["settings"] is None:
        remedy = "grant the monitoring role what docs/database-collectors.md lists"
        yield check("rights", "not measured", f"{result}; settings may not be read", remedy)
    else:
        yield check("rights", "ok", result)


def _processes(check: _Check, kind: str, facts: JsonObject) -> Iterator[ProofCheck]:
    """Yield the processes of the tier. Several servers with one name may belong to several tiers."""
    servers = facts.get("tier_processes") or []
    if not servers:
        return
    result = "; ".join(map(_server, servers))
    name, count = Counter(each["name"] for each in servers).most_common(1)[0]
    if count == 1:
        yield check("processes", "ok", result)
        return
    which = "`port: N`, or `command_line: TEXT` beside `process:`" if kind == "local" else "a host of its own"
    remedy = f"if not all of them are the tier's, say which one is: {which}"
    yield check("processes", "warning", f"{count} servers named {name} are counted: {result}", remedy)


def _server(text: JsonObject) -> str:
    ports = ", ".join(map(str, text["ports"]))
    where = [f"port {ports}"] if ports else []
    where += [text["directory"]] if text["directory"] else []
    return f"{text['name']} {text['pid']}" + (f" ({', '.join(where)})" if where else "")


def _clock(check: _Check, samples: Sequence[Sample], facts: JsonObject) -> ProofCheck:
    if "clock" not in facts:
        return check("clock", "ok", "stamped by this machine's own clock")
    latest = {each.metric: each.value for each in samples if each.metric.startswith("collector.clock")}
    offset_s = latest.get("collector.clock_offset_s", facts["clock"]["offset_s"])
    error_s = latest.get("collector.clock_error_s", facts["clock"]["error_s"])
    if offset_s is None or error_s is None:
        return check("clock", "not measured", "it has not reported its time", "check again")
    result = (
        f"{seconds(abs(offset_s))} {'ahead' if offset_s > 0 else 'behind'}, give or take {seconds(error_s)}"
    )
    if abs(offset_s) > WARN_OFFSET_S:
        remedy = "set it by NTP; samples are corrected, but its logs and files do not fit the run's times"
        return check("clock", "warning", result, remedy)
    return check("clock", "ok", result)


def _writes(farm: Farm, connected: Connected, watch: Watch) -> Iterator[ProofCheck]:
    """Yield the result of a write test for each role whose disk allows one."""
    check, tried = partial(ProofCheck, watch.host, connected.kind), set()
    for role, folder in _allowed(farm, watch).items():
        if farm.environment == "production":
            remedy = "leave `write_test:` out, or prove it on a copy of the farm"
            result = "the farm is production: nothing is written there"
            yield check(f"write {role}", "not measured", result, remedy)
        elif folder not in tried:
            tried.add(folder)
            seen = prove_write(connected.collector, connected.kind, watch, role, folder)
            yield check(f"write {role}", seen.outcome, seen.why, seen.remedy)


def _allowed(farm: Farm, watch: Watch) -> dict[str, str]:
    """Return role -> folder for the write test.

    farm.yaml allows the test, or the folder belongs to an embedded farm.
    """
    if watch.options.get("verify"):
        return {role: place for role, place in watch.disks.items() if Path(place).is_dir()}
    tier = farm.tiers.get(watch.tier)
    host = tier.hosts.get(watch.host) if tier else None
    disks = host.disks if host else {}
    return {role: disk.write_test for role, disk in disks.items() if disk.write_test and role in watch.disks}


_ROUNDING = 0.05
"""Tolerance of a ratio: two counters are read one after the other, so a ratio may exceed 1 by a few ticks."""
_LONGEST_LATENCY_S = 60.0
"""Largest plausible latency in seconds. A kernel gives up a disk operation after 30 s (Linux) or 60 s
(Windows)."""
_MOST_BYTES_PER_S = 1e12
_MOST_PER_S = 1e9
"""Largest plausible rate, above that of any present machine. A larger value has a wrong unit or is no
rate."""
_LARGEST_IO_BYTES = 64 << 20
"""Largest plausible mean I/O size in bytes. Linux' largest request is far smaller (max_hw_sectors_kb); a
larger mean is in the wrong unit, such as sectors or KiB."""
_FEWEST = 10.0
"""Smallest number of operations per second for a reliable mean."""
_NEGATIVE = ("collector.clock_offset_s",)


def implausible(samples: Sequence[Sample], facts: JsonObject) -> list[str]:
    """Yield a sentence for each impossible measurement.

    Args:
        samples: one reading of one host.
        facts: inventory of the host, with its memory and the number of cores that its tier may use.
    """
    result = [sentence for sample in samples if (sentence := _beyond(sample))]
    return [*result, *_beside(samples, facts)]


def _beyond(sample: Sample) -> str | None:
    """Return whether a value is outside of the range of its metric."""
    value = sample.value
    if value is None:
        return None
    lowest, highest = _bounds(sample.metric)
    if math.isfinite(value) and lowest <= value <= highest:
        return None
    name = f"{sample.metric} {sample.instance}".strip()
    shown = of_metric(sample.metric, value) if math.isfinite(value) else str(value)
    edge = f"from {of_metric(sample.metric, lowest)} on" if value < lowest else _up_to(sample.metric, highest)
    return f"{name} is {shown}; plausible: {edge}"


def _bounds(metric: str) -> tuple[float, float]:
    if metric in _NEGATIVE:
        return -math.inf, math.inf
    if metric.endswith("_ratio"):
        return 0.0, 1.0 + _ROUNDING
    if metric.endswith("_latency_s"):
        return 0.0, _LONGEST_LATENCY_S
    if metric.endswith("_bytes_per_s"):
        return 0.0, _MOST_BYTES_PER_S
    if metric.endswith("_per_s"):
        return 0.0, _MOST_PER_S
    return 0.0, math.inf


def _up_to(metric: str, highest: float) -> str:
    return f"up to {of_metric(metric, highest)}" if math.isfinite(highest) else "a finite number"


def _beside(samples: Sequence[Sample], facts: JsonObject) -> Iterator[str]:
    """Yield values that contradict another value or the inventory."""
    values = {(each.metric, each.instance): each.value for each in samples if each.value is not None}
    memory = facts.get("memory_bytes")
    available = values.get(("mem.available_bytes", ""))
    if memory and available is not None and available > memory:
        yield (
            f"mem.available_bytes is {of_metric('_bytes', available)}; "
            f"the machine has {of_metric('_bytes', memory)}"
        )
    for (metric, instance), value in values.items():
        if metric in ("disk.reads_per_s", "disk.writes_per_s") and value >= _FEWEST:
            which = metric.removeprefix("disk.").removesuffix("s_per_s")
            moved = values.get((f"disk.{which}_bytes_per_s", instance))
            if moved is not None and moved / value > _LARGEST_IO_BYTES:
                yield f"a {which} on {instance} is {of_metric('_bytes', moved / value)} in the mean"
        if metric in ("net.received_bytes_per_s", "net.sent_bytes_per_s"):
            speed = values.get(("net.speed_bytes_per_s", instance))
            if speed and value > speed * (1 + _ROUNDING):
                yield (
                    f"{metric} {instance} is {of_metric(metric, value)}; "
                    f"the interface does {of_metric(metric, speed)}"
                )


def moved(samples: Iterable[Sample]) -> tuple[int, int]:
    """Return how many rates and ratios were above 0, and how many were measured."""
    rates = [
        each.value
        for each in samples
        if each.value is not None and each.metric.endswith(("_per_s", "_ratio")) and each.interval_s > 0
    ]
    return sum(value > 0 for value in rates), len(rates)


def unread(samples: Iterable[Sample]) -> list[str]:
    """Return metrics without a value, such as ``disk.reads_per_s (sda, sdb)``.

    A mean over no operations is not listed.
    """
    lacking: dict[str, list[str]] = {}
    for each in samples:
        if each.value is None and each.weight != 0:
            lacking.setdefault(each.metric, []).append(each.instance)
    return [
        metric if instances == [""] else f"{metric} ({', '.join(instances)})"
        for metric, instances in lacking.items()
    ]


def absent(samples: Iterable[Sample], facts: JsonObject) -> list[str]:
    """Return the metrics missing in a reading that every machine, or every disk with a role, should have."""
    names = {(each.metric, each.instance) for each in samples}
    if not any(metric.startswith(("cpu.", "mem.", "disk.")) for metric, _ in names):
        return []  # the collector reads a server and not a machine
    answer = {each["metric"] for each in facts.get("not_measured", ())}
    wanted = [("cpu.busy_ratio", ""), ("mem.available_bytes", "")]
    for role in facts.get("roles", {}).values():
        if role.get("device"):
            wanted += [(f"disk.{what}", role["device"]) for what in _OF_A_DISK]
    lacking = [each for each in dict.fromkeys(wanted) if each not in names and each[0] not in answer]
    return [f"{metric} {instance}".strip() for metric, instance in lacking]


_OF_A_DISK = (
    "reads_per_s",
    "writes_per_s",
    "read_bytes_per_s",
    "write_bytes_per_s",
    "read_latency_s",
    "write_latency_s",
)


SIZE_BYTES = 16 << 20
_BLOCK_BYTES = 1 << 20
_LEAST_FREE_BYTES = 16 * SIZE_BYTES
"""Smallest free space for a test in bytes. With less, a test could fill the disk of a server."""
_SEEN_RATIO = 0.98
_ATTEMPTS = 3
_LIMIT_S = 30.0
_WRITE_PATIENCE_S = 10.0
_SLACK_NS = 100_000_000
_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class WriteTest:
    """The result of a write test.

    Attributes:
        outcome: result, as in ``ProofCheck``.
        why: figures behind the result.
        remedy: the remedy; None if the test passed.
    """

    outcome: Literal["ok", "warning", "not measured", "failed"]
    why: str
    remedy: str | None = None


def here(_watch: Watch, folder: str) -> int:
    """Write a file on this machine, sync it and remove it. Return the bytes written.

    The file is unlinked first, so that nothing remains even after SIGKILL. If the file system allows it, the
    file bypasses the page cache (O_DIRECT). Writing stops after ``_LIMIT_S``. Raises ``CollectorError`` if
    writing fails.
    """
    try:
        free = shutil.disk_usage(folder).free
        if free < _LEAST_FREE_BYTES:
            raise CollectorError(
                f"too little room in {folder}: {bytes_(free)} free, {bytes_(_LEAST_FREE_BYTES)} needed"
            )
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            return _fill(file.fileno(), f"/proc/self/fd/{file.fileno()}")
    except OSError as error:
        raise CollectorError(f"cannot write in {folder}: {error.strerror}") from error


def _fill(plain: int, path: str) -> int:
    direct = None
    with suppress(OSError):  # the file system has no O_DIRECT: fsync also writes to the disk
        direct = os.open(path, os.O_WRONLY | getattr(os, "O_DIRECT", 0))
    written, end_s = 0, time.monotonic() + _LIMIT_S
    with mmap.mmap(-1, _BLOCK_BYTES) as block:  # aligned to a page, as O_DIRECT requires
        block.write(os.urandom(_BLOCK_BYTES))
        try:
            while written < SIZE_BYTES and time.monotonic() < end_s:
                written += os.write(plain if direct is None else direct, block)
            os.fsync(plain)
        finally:
            if direct is not None:
                os.close(direct)
    return written


_SCRIPT = """
cd -- {folder} || exit 1
df -Pk . | {{ read -r line; read -r name size used free rest; test "$free" -ge {free_kib}; }} || {{
  echo "too little room there: {free_mib} MiB free are wanted" >&2; exit 1
}}
file=$(mktemp .pinchpoint-write-XXXXXX) || exit 1
trap 'rm -f -- "$file"' 0
trap 'exit 1' 1 2 13 15
from='if=/dev/urandom bs={block} count={count}'
dd $from of="$file" iflag=fullblock oflag=direct conv=fsync 2>/dev/null ||
  dd $from of="$file" conv=fsync 2>/dev/null || {{ echo "dd could not write 16 MiB there" >&2; exit 1; }}
wc -c <"$file"
"""


def there(watch: Watch, folder: str) -> int:
    """Write a file on a Linux host over ssh with ``dd``. The shell on the host always removes the file."""
    script = _SCRIPT.format(
        folder=shlex.quote(folder),
        free_kib=_LEAST_FREE_BYTES >> 10,
        free_mib=_LEAST_FREE_BYTES >> 20,
        block=_BLOCK_BYTES,
        count=SIZE_BYTES // _BLOCK_BYTES,
    )
    answer = ssh.run(Address.of(watch.options), "exec /bin/sh", given=script, timeout_s=_LIMIT_S + 20)
    return int(answer)


WRITERS: Mapping[str, Callable[[Watch, str], int]] = {"local": here, "ssh": there, "agent": there}
"""Kind of collector -> function that writes on its hosts."""


def prove_write(collector: Collector, kind: str, watch: Watch, role: str, folder: str) -> WriteTest:
    """Write under ``folder`` and compare the bytes with the collector's figures for the disk of the role.

    Other processes may write at the same time, so up to three attempts are made. One success is sufficient.
    """
    facts = collector.inventory().get(watch.host, {})
    device = facts.get("roles", {}).get(role, {}).get("device")
    if device is None:
        return WriteTest(
            "not measured", f"no disk is known for {watch.disks[role]}", "say `device:` in farm.yaml"
        )
    if kind not in WRITERS:
        return WriteTest(
            "not measured", f"kind {kind} cannot write on its hosts", "compare with the host's own tools"
        )
    last = WriteTest("not measured", "not tried")
    try:
        for _ in range(_ATTEMPTS):
            written, by_device = _written(collector, kind, watch, folder)
            last = judge(folder, device, written, by_device, facts.get("disks", {}))
            if last.outcome == "ok":
                return last
    except CollectorError as error:
        remedy = f"allow it (another folder as `write_test:` of {role}), or leave `write_test:` out"
        return WriteTest("not measured", str(error), remedy)
    return last


def _written(
    collector: Collector, kind: str, watch: Watch, folder: str
) -> tuple[int, dict[str, float | None]]:
    """Return the bytes written, and the bytes that each disk counted in that time; None if not counted."""
    collector.read()
    begin_ns = time.time_ns()
    written = WRITERS[kind](watch, folder)
    end_ns = time.time_ns() + _SLACK_NS
    seen: dict[str, float | None] = {}
    until_s = time.monotonic() + _WRITE_PATIENCE_S
    latest_ns = 0
    while latest_ns < end_ns:
        if time.monotonic() > until_s:
            raise CollectorError(f"no reading came for {_WRITE_PATIENCE_S:.0f} s after the write")
        time.sleep(0.2)
        for sample in collector.read():
            if (sample.host, sample.metric) != (watch.host, "disk.write_bytes_per_s"):
                continue
            latest_ns = max(latest_ns, sample.time_ns)
            if sample.time_ns < begin_ns:
                continue
            before = seen.get(sample.instance, 0.0)
            lost = sample.value is None or before is None
            seen[sample.instance] = None if lost else (before or 0) + (sample.value or 0) * sample.interval_s
    return written, seen


def judge(
    folder: str,
    device: str,
    written: int,
    by_device: Mapping[str, float | None],
    disks: Mapping[str, JsonObject],
) -> WriteTest:
    """Judge a test that wrote ``written`` bytes under ``folder``, which should be on ``device``.

    Args:
        folder: folder of the test.
        device: disk of the role.
        written: number of bytes written.
        by_device: disk -> bytes that it counted in the time of the test.
        disks: disk -> facts in the inventory. A disk made of others counts the same bytes as its members.
    """
    kin = {device, *disks.get(device, {}).get("members", ())}
    kin |= {name for name, facts in disks.items() if device in facts.get("members", ())}
    on_it = by_device.get(device)
    if on_it is None:
        why = f"{bytes_(written)} were written in {folder}; {device} did not say what it wrote"
        return WriteTest("not measured", why, "look at the host's own counters")
    others = [
        name
        for name, seen in by_device.items()
        if name not in kin and seen is not None and seen >= written * _SEEN_RATIO
    ]
    text = f"{bytes_(written)} written in {folder}, {bytes_(on_it)} seen on {device}"
    if on_it >= written * _SEEN_RATIO:
        if not others:
            return WriteTest("ok", f"{text}, on no other disk as much")
        why = f"{text}, and as much on {', '.join(others)}"
        return WriteTest("warning", why, "mirrored, or others write there: try again when the host is quiet")
    if others:
        remedy = (
            f"say `device: {others[0]}` or a path that lies on {device}, as `write_test:` and as the role's"
        )
        return WriteTest("failed", f"{text}; it was seen on {', '.join(others)}", remedy)
    return WriteTest(
        "failed", f"{text}, and on no other disk", "the disk's counters are broken, or it is hidden here"
    )

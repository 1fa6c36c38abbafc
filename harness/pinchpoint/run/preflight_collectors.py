"""Each collector proved before a run relies on it: reached, read twice, plausible, complete, on time.

What is broken is "not measured", with the remedy, and never 0. It fails the check where no run could rely on
the host's figures at all: it is not reached or not read, a disk's figures are those of another disk, or
farm.yaml says that the collector is ``required``.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pinchpoint.base.units import seconds
from pinchpoint.plan import Farm
from pinchpoint.run import preflight_writes
from pinchpoint.run.preflight import AT_ONCE, Check, Connected, connect
from pinchpoint.run.preflight_plausible import absent, implausible, moved, unread
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import Sample, Watch
from pinchpoint_collectors.remote.clock import WARN_OFFSET_S

_BETWEEN_S = 1.0
_PATIENCE_S = 6.0

Outcome = Literal["ok", "warning", "not measured", "failed"]


@dataclass(frozen=True, slots=True)
class Proof:
    """One thing that was looked at on one host through one kind of collector.

    Attributes:
        host: its name in farm.yaml.
        kind: the collector's.
        what: ``reached``, ``read twice``, ``units``, ``counters``, ``clock``, ``rights``, ``write ROLE``, or
            the metric that is not measured.
        outcome: ``warning``: a run can rely on it, and its reader should know; ``failed``: it cannot.
        found: what was found.
        remedy: what to do about it; None where nothing is to be, or can be done.
    """

    host: str
    kind: str
    what: str
    outcome: Outcome
    found: str
    remedy: str | None = None


def prove(farm: Farm, watches: Sequence[tuple[str, Watch]]) -> tuple[list[Check], list[Proof]]:
    """Connect every collector and prove it on each of its hosts; a few seconds, most of them waiting.

    Args:
        farm: says where a write of known size may be made.
        watches: (kind, what to watch) of every host.
    """
    checks, proofs = [], []
    by_name = {(kind, watch.host): watch for kind, watch in watches}
    with ExitStack() as stack:
        there = []
        for check, connected in connect(watches, stack):
            checks.append(check)
            proofs += [_reached(check, kind, host) for kind, host in check.about]
            if connected is not None:
                there.append(connected)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            read = list(pool.map(Readings.of, there))
            written = _all_writes(farm, read, by_name, pool)
        for one in read:
            for host in one.connected.hosts:
                name = one.connected.kind, host
                proofs += one.proofs(host, required=by_name[name].required)
                proofs += written.get(name, ())
    return checks, proofs


def _all_writes(
    farm: Farm, read: Sequence[Readings], by_name: Mapping[tuple[str, str], Watch], pool: Executor
) -> dict[tuple[str, str], list[Proof]]:
    """By kind and host, what writes showed: machines at a time, on each one after the other.

    Two at a time on one machine would see each other's; hosts that do not say which they are count as one.
    """
    machines: dict[str | None, list[tuple[Connected, Watch]]] = {}
    for one in read:
        for host in () if one.failed else one.connected.hosts:
            watch = by_name[one.connected.kind, host]
            machines.setdefault(one.facts[host].get("machine_id"), []).append((one.connected, watch))

    def on_machine(there: list[tuple[Connected, Watch]]) -> list[tuple[tuple[str, str], list[Proof]]]:
        return [((each.kind, watch.host), list(_writes(farm, each, watch))) for each, watch in there]

    return dict(found for machine in pool.map(on_machine, machines.values()) for found in machine)


def _reached(check: Check, kind: str, host: str) -> Proof:
    return Proof(host, kind, "reached", "ok" if check.ok else "failed", check.found)


@dataclass(frozen=True, slots=True)
class Readings:
    """Two readings of one collector, a second or more apart.

    Attributes:
        connected: the collector.
        times: how often each host was read.
        latest: of each host the latest sample of each metric and instance.
        failed: why a reading failed; "" where none did.
        facts: the inventory.
    """

    connected: Connected
    times: Mapping[str, int]
    latest: Mapping[str, Sequence[Sample]]
    failed: str
    facts: Mapping[str, Mapping[str, Any]]

    @classmethod
    def of(cls, connected: Connected) -> Readings:
        """Read until each host was read twice, or for so long that it ought to have been."""
        facts: Mapping[str, Mapping[str, Any]] = {}
        times = dict.fromkeys(connected.hosts, 0)
        series: Counter[tuple[str, str, str]] = Counter()
        latest: dict[tuple[str, str, str], Sample] = {}
        failed = ""
        try:
            facts = connected.collector.inventory()
            every_s = max(float(facts[host].get("scrape_interval_s") or 0) for host in connected.hosts)
            until_s = time.monotonic() + _PATIENCE_S + 2.5 * every_s
            connected.collector.read()  # what went before: connecting, and all other hosts
            while time.monotonic() < until_s and not all(count > 1 for count in times.values()):
                time.sleep(_BETWEEN_S)
                for sample in connected.collector.read():
                    name = (sample.host, sample.metric, sample.instance)
                    latest[name] = sample
                    if not sample.metric.startswith("collector.") and sample.interval_s > 0:
                        series[name] += 1  # once in each reading
                        times[sample.host] = max(times[sample.host], series[name])
        except CollectorError as error:
            failed = str(error)
        except Exception as error:  # noqa: BLE001 - a driver's own error is that host's, and no other's
            failed = f"{type(error).__name__}: {error}"
        by_host = {host: [each for each in latest.values() if each.host == host] for host in connected.hosts}
        return cls(connected, times, by_host, failed, facts)

    def proofs(self, host: str, *, required: bool) -> Iterator[Proof]:
        """All that two readings and the inventory say of one host."""
        kind = self.connected.kind
        samples = [each for each in self.latest[host] if not each.metric.startswith("collector.")]
        broken: Outcome = "failed" if required else "not measured"
        if self.failed:
            yield Proof(host, kind, "read twice", "failed", self.failed)
            return
        facts = self.facts[host]
        if self.times[host] < 2:
            found = f"fewer than two readings came within {_PATIENCE_S:.0f} s"
            yield Proof(host, kind, "read twice", "failed", found, "look at the host's load and its link")
            return
        measured = sum(each.value is not None for each in samples)
        found = f"{measured} values of {len({each.metric for each in samples})} metrics"
        yield Proof(host, kind, "read twice", "ok", found)
        yield from _units(host, kind, samples, facts, broken)
        yield from _counters(host, kind, samples, facts, broken)
        yield from _rights(host, kind, facts)
        yield _clock(host, kind, self.latest[host], facts)


def _units(
    host: str, kind: str, samples: Sequence[Sample], facts: Mapping[str, Any], broken: Outcome
) -> Iterator[Proof]:
    wrong = implausible(samples, facts)
    if not wrong:
        yield Proof(host, kind, "units", "ok", "shares, latencies and rates are within what machines can do")
    remedy = "compare with the host's own tools; it is not to be trusted until both agree"
    for sentence in wrong:
        yield Proof(host, kind, "units", broken, sentence, remedy)


def _counters(
    host: str, kind: str, samples: Sequence[Sample], facts: Mapping[str, Any], broken: Outcome
) -> Iterator[Proof]:
    up, rates = moved(samples)
    if rates and not up:
        found = f"none of {rates} rates and shares was above 0: the counters stand still"
        yield Proof(host, kind, "counters", broken, found, "start the host's counters anew, or its exporter")
    elif rates:
        yield Proof(host, kind, "counters", "ok", f"{up} of {rates} rates and shares moved")
    for metric in absent(samples, facts):
        remedy = "look whether the host, or its exporter, shows it"
        yield Proof(host, kind, metric, broken, "the reading does not have it", remedy)
    if lacking := unread(samples):
        found = f"had no value in this reading: {', '.join(lacking)}"
        yield Proof(host, kind, "counters", "not measured", found, "check again; then see the rights")
    for each in facts.get("not_measured", ()):
        name = f"{each['metric']} {each['instance']}".strip()
        yield Proof(host, kind, name, "not measured", each["why"], each["remedy"])


def _rights(host: str, kind: str, facts: Mapping[str, Any]) -> Iterator[Proof]:
    """Whom a server took us for, and what that one may see."""
    server = facts.get("database")
    if not server:
        return
    said = [f"{key} {server[key]}" for key in ("role", "sees") if server.get(key)]
    found = "; ".join(said) or "the server does not say whom it took us for"
    if "settings" in server and server["settings"] is None:
        remedy = "grant the monitoring role what collectors/README.md lists"
        yield Proof(host, kind, "rights", "not measured", f"{found}; settings may not be read", remedy)
    else:
        yield Proof(host, kind, "rights", "ok", found)


def _clock(host: str, kind: str, samples: Sequence[Sample], facts: Mapping[str, Any]) -> Proof:
    if "clock" not in facts:
        return Proof(host, kind, "clock", "ok", "stamped by this machine's own clock")
    latest = {each.metric: each.value for each in samples if each.metric.startswith("collector.clock")}
    offset_s = latest.get("collector.clock_offset_s", facts["clock"]["offset_s"])
    error_s = latest.get("collector.clock_error_s", facts["clock"]["error_s"])
    if offset_s is None or error_s is None:
        return Proof(host, kind, "clock", "not measured", "it has not told its time", "check again")
    found = (
        f"{seconds(abs(offset_s))} {'ahead' if offset_s > 0 else 'behind'}, give or take {seconds(error_s)}"
    )
    if abs(offset_s) > WARN_OFFSET_S:
        remedy = "set it by NTP; samples are corrected, but its logs and files do not fit the run's times"
        return Proof(host, kind, "clock", "warning", found, remedy)
    return Proof(host, kind, "clock", "ok", found)


def _writes(farm: Farm, connected: Connected, watch: Watch) -> Iterator[Proof]:
    """A write of known size for each role where one is allowed."""
    tried = set()
    for role, folder in _allowed(farm, watch).items():
        if farm.environment == "production":
            remedy = "leave `write_test:` out, or prove it on a copy of the farm"
            found = "the farm is production: nothing is written there"
            yield Proof(watch.host, connected.kind, f"write {role}", "not measured", found, remedy)
        elif folder not in tried:
            tried.add(folder)
            seen = preflight_writes.prove(connected.collector, connected.kind, watch, role, folder)
            yield Proof(watch.host, connected.kind, f"write {role}", seen.outcome, seen.why, seen.remedy)


def _allowed(farm: Farm, watch: Watch) -> dict[str, str]:
    """By role, the folder that may be written to: farm.yaml's word, or ours by origin."""
    if watch.options.get("verify"):
        return {role: place for role, place in watch.disks.items() if Path(place).is_dir()}
    tier = farm.tiers.get(watch.tier)
    host = tier.hosts.get(watch.host) if tier else None
    disks = host.disks if host else {}
    return {role: disk.write_test for role, disk in disks.items() if disk.write_test and role in watch.disks}

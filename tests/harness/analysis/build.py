"""Build a synthetic StoredRun with a known bottleneck: samples and operations with autocorrelated noise.

    build = Build().host("sql1", "sql").cpu("sql1", busy=0.4)
    run = build.open("orders", "sql-mix", 200).operations("orders", "log_append", 200, 0.004).run()

A level is a number, or an array with one value per second of the whole run (warm-up included). The noise is a
first-order autoregression (φ = 0.8), because successive seconds of real counters are correlated.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from harness.analysis.disks import Seconds
from hdrh.histogram import HdrHistogram

from pinchpoint.store.read import StoredRun
from pinchpoint.store.schema import GIVEN_UP, OPERATIONS_SCHEMA, SAMPLES_SCHEMA, SEND, SENT, UNFINISHED

Floats = npt.NDArray[np.float64]

START_S = 1_767_225_600  # 2026-01-01T00:00:00Z
PHI = 0.8
MACHINE = "machine-a"


def utc(time_s: float) -> str:
    return datetime.fromtimestamp(time_s, UTC).isoformat().replace("+00:00", "Z")


class Build:
    """Collect the parts of a run. Every method returns the builder; ``run()`` builds the tables."""

    def __init__(
        self, measure_s: int = 60, warm_up_s: int = 10, seed: int = 1, state: str = "finished"
    ) -> None:
        self.seconds = warm_up_s + measure_s
        self.random = np.random.default_rng(seed)
        self.samples: list[tuple[Any, ...]] = []
        self.rows: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []
        ends = [START_S, START_S + warm_up_s, START_S + self.seconds]
        self.manifest: dict[str, Any] = {
            "schema": "pinchpoint.run/1",
            "state": state,
            "name": "synthetic",
            "seed": seed,
            "started": utc(ends[0]),
            "ended": utc(ends[2]),
            "plan": {"name": "synthetic", "seed": seed, "scenarios": {}, "objectives": []},
            "farm": {"name": "synthetic", "environment": "test", "endpoints": {}, "tiers": {}},
            "phases": [
                {"name": "warm_up", "from": utc(ends[0]), "to": utc(ends[1])},
                {"name": "measure", "from": utc(ends[1]), "to": utc(ends[2])},
            ],
            "versions": {},
            "hosts": {},
            "generators": [{"worker": "generator1", "cores": [1]}],
            "collectors": [],
            "content": {},
            "warnings": [],
        }

    def noisy(self, level: float | Floats, noise: float) -> Floats:
        """Return the level with relative autocorrelated noise, one value per second, never negative."""
        base = np.broadcast_to(np.asarray(level, dtype=float), (self.seconds,))
        shocks = self.random.normal(0, np.sqrt(1 - PHI**2), self.seconds)
        wave = np.empty(self.seconds)
        last = self.random.normal()
        for index, shock in enumerate(shocks):
            last = PHI * last + shock
            wave[index] = last
        return np.asarray(np.maximum(0.0, base * (1 + noise * wave)))

    # ---- the farm -------------------------------------------------------------------------------

    def host(
        self,
        name: str,
        tier: str,
        machine: str = MACHINE,
        cores: tuple[int, ...] = (0,),
        disks: dict[str, str] | None = None,
        limits: dict[str, dict[str, float]] | None = None,
    ) -> Self:
        """Add a host; ``disks``: role to device, ``limits``: role to declared limits (absent: withheld)."""
        self.manifest["hosts"][name] = {
            "tier": tier,
            "machine_id": machine,
            "hostname": machine,
            "cores": 2,
            "usable_cores": [0, 1],
            "tier_cores": list(cores),
            "roles": {
                role: {"given": device, "device": device, "data_io": "kernel", "why": None}
                for role, device in (disks or {}).items()
            },
            "not_measured": [],
        }
        entries = {
            role: {
                "device": device,
                "limits": (limits or {}).get(role),
                "resolved_limits": (limits or {}).get(role),
            }
            for role, device in (disks or {}).items()
        }
        tiers = self.manifest["farm"]["tiers"].setdefault(tier, {"hosts": {}})
        tiers["hosts"][name] = {"machine": None, "disks": entries}
        return self

    # ---- samples --------------------------------------------------------------------------------

    def metric(
        self,
        host: str,
        metric: str,
        level: float | Floats | None,
        instance: str = "",
        noise: float = 0.05,
        weight: Floats | None = None,
    ) -> Self:
        """Add one sample per second; a ``level`` of None writes nulls ("not measured")."""
        values: list[float | None] = [None] * self.seconds
        if level is not None:
            values = [float(v) for v in self.noisy(level, noise)]
            if metric.endswith("_ratio"):
                values = [min(1.0, v) for v in values if v is not None]
        for second, value in enumerate(values):
            stamp = int((START_S + second + 1) * 1e9) + int(self.random.integers(0, 3_000_000))
            share = None if weight is None else float(weight[second])
            self.samples.append((stamp, 1.0, host, metric, instance, value, share))
        return self

    def cpu(
        self,
        host: str,
        busy: float | Floats,
        tier_share: float | Floats | None = None,
        cores: tuple[int, ...] = (0,),
        pressure: float | Floats | None = 0.05,
        noise: float = 0.02,
    ) -> Self:
        """Add utilisation of the machine's cores, CPU pressure, and the CPU share of the host's tier."""
        for core in cores:
            self.metric(host, "cpu.busy_ratio", busy, str(core), noise)
        self.metric(host, "cpu.busy_ratio", busy, "", noise)
        self.metric(host, "cpu.steal_ratio", 0.0)
        if pressure is not None:
            self.metric(host, "pressure.cpu_ratio", pressure, noise=0.05)
        if tier_share is not None:
            tier = self.manifest["hosts"][host]["tier"]
            self.metric(host, "cpu.busy_ratio", tier_share, f"tier:{tier}", 0.05)
        return self

    def disk(
        self,
        host: str,
        device: str,
        writes: float | Floats,
        latency_s: float | Floats,
        noise: float = 0.05,
        reads: float = 0.0,
        busy: float = 0.3,
        pressure: float = 0.1,
        size_bytes: float = 8192,
        outstanding_noise: float = 0.3,
        flush_latency_s: float | None = None,
    ) -> Self:
        """Add one device: outstanding I/O varies independently, and latency follows from Little's law."""
        written = self.noisy(writes, noise)
        read = self.noisy(reads, noise)
        outstanding = self.noisy(np.maximum(latency_s * (written + read), 1e-9), outstanding_noise)
        total = written + read
        latency = np.divide(outstanding, total, out=np.zeros_like(total), where=total > 0)
        for metric, level, weight in (
            ("disk.writes_per_s", written, None),
            ("disk.reads_per_s", read, None),
            ("disk.write_bytes_per_s", written * size_bytes, None),
            ("disk.read_bytes_per_s", read * size_bytes, None),
            ("disk.write_latency_s", latency if written.any() else None, written),
            ("disk.read_latency_s", latency if read.any() else None, read),
            ("disk.outstanding", outstanding, None),
        ):
            self.metric(host, metric, level, device, 0.0, weight)
        self.metric(host, "disk.busy_ratio", busy, device, 0.003)
        if flush_latency_s is not None:
            self.metric(host, "disk.flush_latency_s", flush_latency_s, device, 0.1, written)
            self.metric(host, "disk.flushes_per_s", written, device, 0.0)
        return self.metric(host, "pressure.io_ratio", pressure, noise=0.1)

    def device(self, host: str, device: str, found: Seconds, pressure: float = 0.1) -> Self:
        """Add one device with the readings of an I/O simulation, without further noise."""
        done = found.reads + found.writes
        latency = np.nan_to_num(found.latency_s)
        for metric, level, weight in (
            ("disk.writes_per_s", found.writes, None),
            ("disk.reads_per_s", found.reads, None),
            ("disk.write_bytes_per_s", found.bytes * found.writes / np.maximum(done, 1), None),
            ("disk.read_bytes_per_s", found.bytes * found.reads / np.maximum(done, 1), None),
            ("disk.write_latency_s", latency if found.writes.any() else None, found.writes),
            ("disk.read_latency_s", latency if found.reads.any() else None, found.reads),
            # The kernel counts I/O time in whole milliseconds.
            ("disk.outstanding", np.round(found.time_s, 3), None),
            ("disk.busy_ratio", found.busy, None),
        ):
            self.metric(host, metric, level, device, 0.0, weight)
        return self.metric(host, "pressure.io_ratio", pressure, noise=0.05)

    def served(self, scenario: str, operation: str, found: Seconds) -> Self:
        """Add the operations that an I/O simulation completed."""
        return self.operations(scenario, operation, found.operations, found.service_s, noise=0.0)

    def sessions(self, host: str, active: float, **waiting: float) -> Self:
        """Add the database's session counts; ``waiting``: sessions by wait event, ``__`` for the colon."""
        self.metric(host, "db.sessions_active", active, noise=0.02)
        for name, count in waiting.items():
            self.metric(host, "db.sessions_waiting", count, name.replace("__", ":"), noise=0.02)
        locks = sum(count for name, count in waiting.items() if name.startswith("Lock__"))
        return self.metric(host, "db.lock_waiters", locks, noise=0.02)

    def generator(
        self,
        cpu: float | Floats = 0.3,
        send_lag_s: float = 0.0005,
        host: str = "generator1",
        loop_lag_s: float = 0.001,
        **rates: tuple[float, float],
    ) -> Self:
        """Add a load worker's samples; ``rates``: scenario to (scheduled, started) per second."""
        self.metric(host, "generator.cpu_ratio", cpu, noise=0.03)
        self.metric(host, "generator.loop_lag_s", loop_lag_s, noise=0.3)
        self.metric(host, "generator.recorder_ok", 1.0, noise=0.0)
        for scenario, (scheduled, started) in rates.items():
            self.metric(host, "generator.scheduled_per_s", scheduled, scenario, 0.0)
            self.metric(host, "generator.started_per_s", started, scenario, 0.0)
            self.metric(host, "generator.send_lag_s", send_lag_s, scenario, 0.2, np.full(self.seconds, 100.0))
            for second in range(self.seconds):
                row = {"time_s": START_S + second, "interval_s": 1.0, "worker": host, "scenario": scenario}
                lag = {"operation": SEND, "outcome": SENT, "count": 100, "bytes": 0, "response": None}
                text = self._histogram(100, send_lag_s)
                self.rows.append({**row, **lag, "service": text, "dropped": 0})
        return self

    # ---- the load -------------------------------------------------------------------------------

    def closed(self, scenario: str, use: str, users: int, think_s: float = 0.0) -> Self:
        return self._scenario(scenario, use, {"model": "closed", "users": users, "think_s": think_s})

    def open(self, scenario: str, use: str, rate_per_s: float) -> Self:
        return self._scenario(
            scenario, use, {"model": "open", "rate_per_s": rate_per_s, "arrivals": "poisson"}
        )

    def soak(self, scenario: str, use: str, rate_per_s: float) -> Self:
        return self._scenario(scenario, use, {"model": "soak", "rate_per_s": rate_per_s})

    def burst(
        self, scenario: str, base: float, peak: float, every_s: float, for_s: float, **more: float
    ) -> Self:
        load = {"model": "burst", "base_per_s": base, "peak_per_s": peak, "every_s": every_s, "for_s": for_s}
        load |= more
        return self._scenario(scenario, "nosql-burst", load)

    def steps(self, scenario: str, use: str, levels: Floats, each_s: int, unit: str = "per_s") -> Self:
        """Add a load in steps over the measure phase, recorded as the controller records levels."""
        begin, first = self.seconds - len(levels) * each_s, {unit: float(levels[0])}
        self.manifest["steps"] = [
            {
                "scenario": scenario,
                "level": float(level),
                "unit": unit,
                "from": utc(START_S + begin + number * each_s),
                "to": utc(START_S + begin + (number + 1) * each_s),
            }
            for number, level in enumerate(levels)
        ]
        load = {"model": "steps", "start": first, "step": first, "each_s": each_s, "until": "saturation"}
        return self._scenario(scenario, use, load)

    def ramp(self, scenario: str, use: str, to: float, over_s: float) -> Self:
        ends = {"start": {"per_s": 0.0}, "to": {"per_s": to}}
        return self._scenario(scenario, use, {"model": "ramp", **ends, "over_s": over_s})

    def objective(self, **objective: Any) -> Self:
        self.manifest["plan"]["objectives"].append(objective)
        return self

    def _scenario(self, name: str, use: str, load: dict[str, Any]) -> Self:
        self.manifest["plan"]["scenarios"][name] = {"use": use, "load": load, "params": {}}
        return self

    def operations(
        self,
        scenario: str,
        operation: str,
        per_s: float | Floats,
        latency_s: float | Floats,
        outcome: str = "ok",
        noise: float = 0.05,
        dropped: float | Floats = 0.0,
        seconds: range | None = None,
    ) -> Self:
        """Add operations of one outcome in every second; an open load also gets response times."""
        planned = self.manifest["plan"]["scenarios"][scenario]["load"]
        load = "closed" if "users" in {**planned, **planned.get("start", {})} else planned["model"]
        counts = np.round(self.noisy(per_s, noise)).astype(int)
        latencies = np.broadcast_to(np.asarray(latency_s, dtype=float), (self.seconds,))
        lost = np.broadcast_to(np.asarray(dropped, dtype=float), (self.seconds,))
        for second in seconds or range(self.seconds):
            text = self._histogram(int(counts[second]), float(latencies[second]))
            row = {
                "time_s": START_S + second,
                "interval_s": 1.0,
                "worker": "generator1",
                "scenario": scenario,
                "operation": operation,
                "bytes": 0,
            }
            if counts[second]:
                response = None if load == "closed" else text
                done = {
                    "outcome": outcome,
                    "count": int(counts[second]),
                    "service": text,
                    "response": response,
                }
                self.rows.append({**row, **done, "dropped": 0})
            if lost[second]:
                gone = {"outcome": "dropped", "count": 0, "service": None, "response": None}
                self.rows.append({**row, **gone, "dropped": int(lost[second])})
        return self

    def given_up(self, scenario: str, count: int, second: float) -> Self:
        """Add operations that started in that second and were unfinished 5 s after the load's end."""
        end = self.seconds + 5
        times = HdrHistogram(1, 3_600_000_000, 3)
        times.record_value(int((end + 0.5 - second) * 1e6), count)
        row = {"time_s": START_S + end, "interval_s": 1.0, "worker": "generator1", "scenario": scenario}
        row |= {"operation": UNFINISHED, "outcome": GIVEN_UP, "count": count, "bytes": 0, "dropped": 0}
        self.rows.append({**row, "service": str(times.encode().decode()), "response": None})
        return self

    def _histogram(self, count: int, mean_s: float) -> str | None:
        """Return an encoded histogram of ``count`` lognormal latencies with that mean; None for 0."""
        if count == 0:
            return None
        sigma = 0.3
        histogram = HdrHistogram(1, 3_600_000_000, 3)
        points = min(count, 25)
        draws = self.random.lognormal(np.log(mean_s) - sigma**2 / 2, sigma, points)
        for index, value in enumerate(draws):
            share = count // points + (1 if index < count % points else 0)
            histogram.record_value(max(1, int(value * 1e6)), share)
        return str(histogram.encode().decode())

    def event(self, event: str, second: float = 0, **fields: Any) -> Self:
        self.events.append({"time": utc(START_S + second), "event": event, **fields})
        return self

    # ---- the result -----------------------------------------------------------------------------

    def run(self) -> StoredRun:
        columns: list[Any] = list(zip(*self.samples, strict=True)) or [[] for _ in SAMPLES_SCHEMA]
        samples = pa.table(
            [pa.array(c, f.type) for c, f in zip(columns, SAMPLES_SCHEMA, strict=True)], schema=SAMPLES_SCHEMA
        )
        operations = pa.Table.from_pylist(self.rows, schema=OPERATIONS_SCHEMA)
        return StoredRun(Path("synthetic"), self.manifest, operations, samples, self.events)


def shared_farm(build: Build, disks: dict[str, dict[str, str]] | None = None) -> Build:
    """Add four tiers on one machine, all pinned to core 0, as an embedded farm runs them."""
    for tier in ("web", "search", "sql", "nosql"):
        build.host(f"{tier}1", tier, disks=(disks or {}).get(tier))
    return build


def crawl_bound_by_search(seed: int = 1, measure_s: int = 60) -> Build:
    """Build a closed crawl on a shared core that is saturated, with most of the CPU used by search."""
    build = shared_farm(Build(measure_s, seed=seed), {"sql": {"log": "vda", "data": "vda"}})
    for host, share in (("web1", 0.14), ("search1", 0.66), ("sql1", 0.12), ("nosql1", 0.02)):
        build.cpu(host, 0.975, share, pressure=0.9)
    build.disk("sql1", "vda", 90, 0.001, busy=0.15, pressure=0.12)
    build.closed("crawl", "full-crawl", 8).operations("crawl", "document:sharepoint", 80, 0.1)
    build.operations("crawl", "document:sharepoint/fetch", 80, 0.02)
    build.metric("generator1", "generator.users", 8.0, "crawl", 0.0)
    return build.generator()

"""Shows the progress of a run: a live table on a terminal, plain lines elsewhere (stderr)."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from pinchpoint.base import units
from pinchpoint.base.redact import masked
from pinchpoint.data.machines import machine_name, machines
from pinchpoint_collectors.record import Sample

_PLAIN_EVERY_S = 5.0

_LINE = 120
"""Approximate length of a line in a file or a pipe."""
_NOTHING = {"ok": 0, "failed": 0, "dropped": 0, "p95_s": None}
_WHOLE = ""
"""Instance name of the figure for the whole machine."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine's figures to show: its CPU, the CPU of its tiers, and each of its disks once.

    Attributes:
        name: name of the machine; with a single host, the name of the host.
        hosts: host -> tier of the host.
        tiers: host -> instance of the tier's own processes; "" if unknown.
        disks: (host, device) -> roles on the disk as (tier, role).
    """

    name: str
    hosts: Mapping[str, str]
    tiers: Mapping[str, str]
    disks: Mapping[tuple[str, str], Sequence[tuple[str, str]]]


def machines_of(hosts: Mapping[str, Mapping[str, Any]]) -> list[Machine]:
    """Return the machines of a manifest's hosts. Hosts that share a machine become one."""
    result = []
    for names in machines(hosts).values():
        roles: dict[str, tuple[str, list[tuple[str, str]]]] = {}
        for host in names:
            for role, place in hosts[host].get("roles", {}).items():
                if place["device"]:
                    roles.setdefault(place["device"], (host, []))[1].append((hosts[host]["tier"], role))
        tiers = {
            host: f"tier:{hosts[host]['tier']}" if hosts[host].get("tier_cores") else "" for host in names
        }
        disks = {(host, device): of for device, (host, of) in roles.items()}
        of_tiers = {host: str(hosts[host]["tier"]) for host in names}
        result.append(Machine(machine_name(hosts, names), of_tiers, tiers, disks))
    return result


class Board:
    """The latest figures of a run. Many threads write them, and the progress display reads them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._scenarios: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
        self._hosts: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
        self._done: dict[str, int] = defaultdict(int)

    def second(self, worker: str, progress: dict[str, dict[str, Any]]) -> None:
        """Receive the last second of a load generator. A missing scenario had no operation in it."""
        with self._lock:
            for workers in self._scenarios.values():
                if worker in workers:
                    workers[worker] = _NOTHING
            for scenario, figures in progress.items():
                self._scenarios[scenario][worker] = figures
                self._done[scenario] += figures["ok"]

    def samples(self, samples: Iterable[Sample]) -> None:
        """Receive one reading of a collector."""
        with self._lock:
            for sample in samples:
                if sample.value is not None:
                    self._hosts[sample.host, sample.metric][sample.instance] = sample.value

    def scenarios(self) -> dict[str, dict[str, Any]]:
        """Return scenario -> ok and failed per second, dropped, and the highest p95 of the workers."""
        with self._lock:
            result = {}
            for scenario, workers in self._scenarios.items():
                figures = list(workers.values())
                p95s = [figure["p95_s"] for figure in figures if figure["p95_s"] is not None]
                sums = {key: sum(figure[key] for figure in figures) for key in ("ok", "failed", "dropped")}
                result[scenario] = {**sums, "p95_s": max(p95s, default=None)}
            return result

    def done(self, scenario: str) -> int:
        """Return the number of successful operations of a scenario since the load began."""
        with self._lock:
            return self._done[scenario]

    def newest(self, host: str, metric: str, instance: str) -> float | None:
        """Return the latest value of a figure."""
        with self._lock:
            return self._hosts.get((host, metric), {}).get(instance)


class ProgressDisplay:
    """Shows phases, remaining time and the figures of the board until it is closed.

    Args:
        board: current figures.
    """

    def __init__(self, board: Board) -> None:
        self._board = board
        self._console = Console(stderr=True, highlight=False)
        self._live: Live | None = None
        self._last_plain = 0.0
        self._machines: Sequence[Machine] = ()
        self._work: Mapping[str, int] = {}
        self._begun = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.end_live()

    def say(self, sentence: str) -> None:
        """Print one line of progress."""
        self._console.print(Text(masked(sentence)), soft_wrap=True)

    def watch(self, machines: Sequence[Machine], work: Mapping[str, int]) -> None:
        """Start to show the board.

        Args:
            machines: machines to show.
            work: scenario -> number of its documents, if known.
        """
        self._machines, self._work, self._begun = machines, work, time.monotonic()
        if self._console.is_terminal:
            # the last table stays on the screen
            self._live = Live(console=self._console, refresh_per_second=4)
            self._live.start()

    def end_live(self) -> None:
        """Stop to show the board. A second call does nothing."""
        if self._live:
            self._live.stop()
            self._live = None

    def tick(self, phase: str, left_s: float) -> None:
        """Show the latest figures. The call is frequent and cheap.

        Args:
            phase: current phase.
            left_s: largest remaining time of the phase in seconds.
        """
        if self._live:
            self._live.update(self._table(phase, left_s))
        elif time.monotonic() - self._last_plain >= _PLAIN_EVERY_S:
            self._last_plain = time.monotonic()
            self._console.print(self._line(phase, left_s), soft_wrap=True)

    def _heading(self, phase: str, left_s: float) -> str:
        """Return the phase, its progress and the remaining time."""
        far = [self._far(scenario, total) for scenario, total in self._work.items()]
        if phase.startswith("measuring") and any(far):
            return f"measuring: {', '.join(filter(None, far))}"
        return f"{phase}: {units.seconds(max(0, round(left_s)))} left"

    def _far(self, scenario: str, total: int) -> str:
        """Return ``1,240 of 4,000 documents, about 1 min left``.

        Before the first document and after the last, the text is "".
        """
        done = self._board.done(scenario)
        if not 0 < done < total:
            return ""
        left_s = (total - done) * (time.monotonic() - self._begun) / done
        about = f"{left_s:.0f} s" if left_s < 59.5 else f"{left_s / 60:.0f} min"
        return f"{done:,} of {total:,} documents, about {about} left"

    def _line(self, phase: str, left_s: float) -> Text:
        """Return one line with the figures that fit, the loads first."""
        parts = [self._heading(phase, left_s)]
        parts += [
            f"{name} {' '.join(filter(None, _figures(figures)))}"
            for name, figures in self._board.scenarios().items()
        ]
        parts += [f"{name.strip()} {cpu}" for name, cpu, *_ in self._rows() if cpu != "-"]
        line = parts[0]
        for part in parts[1:]:
            if len(line) + len(part) + len(" | ") <= _LINE:
                line += f" | {part}"
        return Text(line)

    def _rows(self) -> Iterator[tuple[str, str, str, str]]:
        """Yield name, CPU, write latency and writes of each machine, of its tiers and of its disks."""
        for machine in self._machines:
            hosts = list(machine.tiers)
            whole = next((v for h in hosts if (v := self._cpu(h, _WHOLE)) is not None), None)
            yield f"{machine.name} CPU", _shown(whole, units.percent), "-", "-"
            for host, instance in machine.tiers.items():
                if instance:
                    yield f"  {host} CPU", _shown(self._cpu(host, instance), units.percent), "-", "-"
            for (host, device), roles in machine.disks.items():
                slow, rate = (
                    self._board.newest(host, f"disk.{name}", device)
                    for name in ("write_latency_s", "writes_per_s")
                )
                yield (
                    f"  disk {device} ({', '.join(' '.join(role) for role in roles)})",
                    "-",
                    _shown(slow, units.seconds),
                    _shown(rate, units.per_second),
                )

    def _cpu(self, host: str, instance: str) -> float | None:
        return self._board.newest(host, "cpu.busy_ratio", instance)

    def _table(self, phase: str, left_s: float) -> Group:
        load = Table("scenario", "per second", "p95", "", box=None, pad_edge=False)
        for name, figures in self._board.scenarios().items():
            rate, p95, failed, dropped = _figures(figures)
            load.add_row(name, rate, p95.removeprefix("p95 "), f"{failed} {dropped}".strip())
        farm = Table("farm", "CPU", "write", "writes", box=None, pad_edge=False)
        for column in farm.columns:
            column.no_wrap, column.overflow = True, "ellipsis"
        for row in self._rows():
            farm.add_row(*row)
        heading = Text(self._heading(phase, left_s), style="bold", no_wrap=True, overflow="ellipsis")
        return Group(heading, load, Text(), farm)


def _figures(figures: dict[str, Any]) -> tuple[str, str, str, str]:
    """Return rate, p95, failed and dropped of one scenario. Failed and dropped are "" if they are 0."""
    p95 = "" if figures["p95_s"] is None else f"p95 {units.seconds(figures['p95_s'])}"
    failed = f"{figures['failed']} failed" if figures["failed"] else ""
    dropped = f"{figures['dropped']} dropped" if figures["dropped"] else ""
    return f"{figures['ok']}/s", p95, failed, dropped


def _shown(value: float | None, show: Callable[[float], str]) -> str:
    return "-" if value is None else show(value)

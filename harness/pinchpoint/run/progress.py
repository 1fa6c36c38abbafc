"""What a person sees while a run goes on: a live table on a terminal, plain lines elsewhere (stderr)."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from pinchpoint.base import units
from pinchpoint.base.redact import masked
from pinchpoint_collectors.record import Sample

_PLAIN_EVERY_S = 5.0

_NOTHING = {"ok": 0, "failed": 0, "dropped": 0, "p95_s": None}
_SHOWN = (
    # metric, column; the worst instance of a host is shown
    ("cpu.busy_ratio", "CPU"),
    ("disk.write_latency_s", "write latency"),
    ("disk.writes_per_s", "writes"),
)


class Board:
    """The newest figures of a run; written by many threads, read by the progress display."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._scenarios: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
        self._hosts: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)

    def second(self, worker: str, progress: dict[str, dict[str, Any]]) -> None:
        """Take one generator's last second: a scenario of its own that is not in it did nothing."""
        with self._lock:
            for workers in self._scenarios.values():
                if worker in workers:
                    workers[worker] = _NOTHING
            for scenario, figures in progress.items():
                self._scenarios[scenario][worker] = figures

    def samples(self, samples: Iterable[Sample]) -> None:
        """Take one reading of a collector."""
        with self._lock:
            for sample in samples:
                if sample.value is not None:
                    self._hosts[sample.host, sample.metric][sample.instance] = sample.value

    def scenarios(self) -> dict[str, dict[str, Any]]:
        """Per scenario, over all workers: ok and failed per second, dropped, the worst worker's p95."""
        with self._lock:
            found = {}
            for scenario, workers in self._scenarios.items():
                figures = list(workers.values())
                p95s = [figure["p95_s"] for figure in figures if figure["p95_s"] is not None]
                sums = {key: sum(figure[key] for figure in figures) for key in ("ok", "failed", "dropped")}
                found[scenario] = {**sums, "p95_s": max(p95s, default=None)}
            return found

    def hosts(self, hosts: dict[str, set[str]]) -> dict[str, dict[str, float | None]]:
        """Per host the key figures, given its instances of interest (devices, ``tier:NAME``)."""
        with self._lock:
            return {
                host: {
                    column: max(
                        (v for i, v in self._hosts.get((host, metric), {}).items() if i in instances),
                        default=None,
                    )
                    for metric, column in _SHOWN
                }
                for host, instances in hosts.items()
            }


class ProgressDisplay:
    """Shows phases, time left and the board's figures until closed.

    Args:
        board: where the figures are.
    """

    def __init__(self, board: Board) -> None:
        self._board = board
        self._console = Console(stderr=True, highlight=False)
        self._live: Live | None = None
        self._last_plain = 0.0
        self._hosts: dict[str, set[str]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.end_live()

    def say(self, sentence: str) -> None:
        """One line for the person who waits."""
        self._console.print(Text(masked(sentence)), soft_wrap=True)

    def watch(self, hosts: dict[str, set[str]]) -> None:
        """Start to show the board; ``hosts`` maps each host to its instances of interest."""
        self._hosts = hosts
        if self._console.is_terminal:
            self._live = Live(console=self._console, refresh_per_second=4, transient=True)
            self._live.start()

    def end_live(self) -> None:
        """Stop showing the board. Safe to call twice."""
        if self._live:
            self._live.stop()
            self._live = None

    def tick(self, phase: str, left_s: float) -> None:
        """Show the newest figures; called often, does little.

        Args:
            phase: what is going on.
            left_s: how long it goes on, at most.
        """
        if self._live:
            self._live.update(self._table(phase, left_s))
        elif time.monotonic() - self._last_plain >= _PLAIN_EVERY_S:
            self._last_plain = time.monotonic()
            self._console.print(self._line(phase, left_s), soft_wrap=True)

    def _line(self, phase: str, left_s: float) -> Text:
        parts = [_heading(phase, left_s)]
        for name, figures in self._board.scenarios().items():
            parts.append(f"{name} " + " ".join(filter(None, _figures(figures))))
        for host, columns in self._board.hosts(self._hosts).items():
            shown = [
                f"{column} {_cell(column, value)}" for column, value in columns.items() if value is not None
            ]
            parts.append(f"{host} " + " ".join(shown))
        return Text(" | ".join(parts))

    def _table(self, phase: str, left_s: float) -> Group:
        load = Table("scenario", "per second", "p95", "failed", "dropped", box=None, pad_edge=False)
        for name, figures in self._board.scenarios().items():
            rate, p95, failed, dropped = _figures(figures)
            load.add_row(name, rate, p95, failed, dropped)
        farm = Table("host", *(column for _, column in _SHOWN), box=None, pad_edge=False)
        for host, columns in self._board.hosts(self._hosts).items():
            farm.add_row(host, *(_cell(column, value) for column, value in columns.items()))
        return Group(Text(_heading(phase, left_s), style="bold"), load, Text(), farm)


def _heading(phase: str, left_s: float) -> str:
    return f"{phase}: {units.seconds(max(0, round(left_s)))} left"


def _figures(figures: dict[str, Any]) -> tuple[str, str, str, str]:
    """(rate, p95, failed, dropped) of one scenario; failures and drops only where there are some."""
    p95 = "" if figures["p95_s"] is None else f"p95 {units.seconds(figures['p95_s'])}"
    failed = f"{figures['failed']} failed" if figures["failed"] else ""
    dropped = f"{figures['dropped']} dropped" if figures["dropped"] else ""
    return f"{figures['ok']}/s", p95, failed, dropped


def _cell(column: str, value: float | None) -> str:
    if value is None:
        return "-"
    match column:
        case "CPU":
            return units.percent(value)
        case "write latency":
            return units.seconds(value)
        case _:
            return units.per_second(value)

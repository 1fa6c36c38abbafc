"""The assignment of a generator process; a separate module, so that passing it on imports no scenario."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Assignment:
    """One generator process's part of a run; travels as JSON, ``${ENV}`` unexpanded.

    Attributes:
        name: the worker's name (``generator1``).
        worker: its number from 0, which no other has in this run.
        cores: the cores it runs on; empty: wherever the system puts it.
        beat_s: how far into each second it writes down what the last one measured.
        journal: the run's journal folder; empty if what is measured is sent (another machine).
        seed: the plan's seed.
        endpoints: as in farm.yaml.
        scenarios: plan name -> ``use``, ``params``, ``load`` (base units), ``repeat_s``.
        slots: plan name -> the slots of its load that are done here.
        ranks: plan name -> (which of the workers that do that scenario this is, how many they are at first).
        clock_offset_ns: the controller's UTC clock minus this machine's.
        web_ui_port: where Locust's own page sets the number of users, on this machine; None: the plan does.
    """

    name: str
    worker: int
    cores: list[int]
    beat_s: float
    journal: str
    seed: int
    endpoints: dict[str, dict[str, str]]
    scenarios: dict[str, dict[str, Any]]
    slots: dict[str, list[int]]
    ranks: dict[str, tuple[int, int]]
    clock_offset_ns: int = 0
    web_ui_port: int | None = None

    def to_json(self) -> dict[str, Any]:
        """The assignment as a JSON-ready dictionary."""
        return asdict(self)

"""Defines the assignment of a generator process, in a module that imports no scenario."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Assignment:
    """One generator process's part of a run; sent as JSON with ``${ENV}`` unexpanded.

    Attributes:
        name: name of the worker (``generator1``).
        worker: number of the worker from 0, unique in the run.
        cores: numbers of the cores to run on; empty: the system chooses.
        beat_s: seconds after the start of each second at which the last second's measurements are recorded.
        journal: path of the run's journal folder; "" if measurements are sent (another machine).
        seed: the plan's seed.
        endpoints: name -> options, as in farm.yaml.
        scenarios: plan name of the scenario -> ``use``, ``params``, ``load`` (base units), ``repeat_s``.
        slots: plan name of the scenario -> numbers of the load's slots that this worker owns.
        ranks: plan name of the scenario -> (number of this worker among the scenario's workers, number of
            these workers at first).
        clock_offset_ns: the controller's UTC clock minus this machine's, nanoseconds.
        web_ui_port: port on this machine of Locust's page, which sets the number of users; None: the plan
            sets it.
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

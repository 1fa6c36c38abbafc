"""Assigns a run's work to load generators: processes on this machine, and workers on other machines."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pinchpoint.loadgen.assignment import Assignment
from pinchpoint.loadgen.permits import TOKEN_VARIABLE, folder_of, named_paths, named_variables

DEFAULT_PORT = 5557
"""Port for workers of other machines if none is given."""


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """The load generators that were requested for a run.

    Attributes:
        workers: number of processes on this machine that share every scenario; None: one process per
            scenario.
        remote: number of workers of other machines to wait for.
        listen: (address, port) to listen on for workers of other machines; None: no such workers.
        token: the secret that such workers share with this run; "" without such workers.
        web_ui_port: port of Locust's page, which sets the number of users; None: the plan sets it.
        token_made: whether the token was made for this run and must be shown to the user who starts a worker.
    """

    workers: int | None = None
    remote: int = 0
    listen: tuple[str, int] | None = None
    token: str = field(default="", repr=False)
    token_made: bool = False
    web_ui_port: int | None = None


ONE_EACH = WorkerOptions()
"""One process on this machine for each scenario, no workers on other machines."""


@dataclass(frozen=True, slots=True)
class Assignments:
    """The work of every worker; slots are assigned when all workers have joined.

    Attributes:
        here: one assignment per process of this machine.
        elsewhere: assignment of a worker on another machine, without name, number, slots and ranks.
    """

    here: tuple[Assignment, ...]
    elsewhere: Assignment


def assign(
    crew: WorkerOptions,
    scenarios: Mapping[str, Mapping[str, Any]],
    endpoints: Mapping[str, Mapping[str, str]],
    cores: tuple[int, ...],
    seed: int,
) -> Assignments:
    """The assignments of a plan's scenarios to the load generators.

    Args:
        crew: the requested load generators.
        scenarios: the scenarios in their JSON form (``scenarios.planned_scenarios``).
        endpoints: the farm's endpoints, with ``${ENV}`` unexpanded.
        cores: cores for generators of this machine; empty: the system chooses.
        seed: the seed of the plan.
    """
    every = {name: dict(given) for name, given in scenarios.items()}
    elsewhere = Assignment(
        name="",
        worker=0,
        cores=[],
        beat_s=0.2,
        journal="",
        seed=seed,
        endpoints={name: dict(given) for name, given in endpoints.items()},
        scenarios=every,
        slots={},
        ranks={},
    )
    # Without a given number each scenario has its own process: the client work of one scenario must not delay
    # another's operations.
    parts = (
        [{name: given} for name, given in every.items()] if crew.workers is None else [every] * crew.workers
    )
    here = tuple(
        replace(
            elsewhere,
            name=f"generator{number + 1}",
            worker=number,
            cores=[cores[number % len(cores)]] if cores else [],
            beat_s=0.2 + 0.6 * number / len(parts),
            scenarios=part,
            web_ui_port=crew.web_ui_port,
        )
        for number, part in enumerate(parts)
    )
    return Assignments(here, elsewhere)


def worker_commands(crew: WorkerOptions, elsewhere: Assignment) -> list[str]:
    """The commands to type on each other machine to start its worker. Raises InputError."""
    assert crew.listen is not None  # noqa: S101 -- workers are only announced where they may come
    host, port = crew.listen
    paths = sorted({str(folder_of(path)) for _, path in named_paths(elsewhere)})
    names = sorted({name for _, name in named_variables(elsewhere.endpoints)})
    options = [
        *(f"--allow-env {name}" for name in names),
        *(f"--allow-path {shlex.quote(path)}" for path in paths),
    ]
    token = crew.token if crew.token_made else "THE-TOKEN-THIS-RUN-WAS-GIVEN"
    return [
        f"export {TOKEN_VARIABLE}={token}",
        " ".join([f"pinchpoint worker --master {'ADDRESS' if host == '*' else host}:{port}", *options]),
    ]

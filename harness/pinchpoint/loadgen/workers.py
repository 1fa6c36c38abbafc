"""The load generators of a run: processes here, and machines elsewhere."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pinchpoint.loadgen.assignment import Assignment
from pinchpoint.loadgen.permits import TOKEN_VARIABLE, folder_of, named_paths, named_variables

DEFAULT_PORT = 5557
"""Where workers of other machines are expected, where no port is given."""


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """The load generators that were requested for a run.

    Attributes:
        workers: how many processes here share every scenario; None: one process for each scenario.
        remote: this many workers of other machines are waited for.
        listen: (address, port) for them; None: none may come.
        token: the secret that they share with this run; empty if none may come.
        web_ui_port: where Locust's own page sets the number of users; None: the plan does.
        token_made: whether the token was made here and must be shown to the person who starts a worker.
    """

    workers: int | None = None
    remote: int = 0
    listen: tuple[str, int] | None = None
    token: str = field(default="", repr=False)
    token_made: bool = False
    web_ui_port: int | None = None


ONE_EACH = WorkerOptions()
"""One process here for each scenario, none elsewhere."""


@dataclass(frozen=True, slots=True)
class Assignments:
    """The work of every worker; slots are assigned when all workers have joined.

    Attributes:
        here: one per process of this machine.
        elsewhere: what a worker of another machine does, except its name, number, slots and ranks.
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
    """Assign the scenarios of a plan.

    Args:
        crew: who there is.
        scenarios: as they travel (``load.planned_scenarios``).
        endpoints: the farm's, ``${ENV}`` unexpanded.
        cores: where generators of this machine run; empty: wherever the system puts them.
        seed: the plan's.
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
    # One each where no number is given: the client work of one scenario must not delay another's operations.
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

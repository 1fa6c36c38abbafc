"""Contract between a workload driver and the load engine.

Every process of a run creates the *scenario* once. Exactly one process calls ``prepare`` and ``finish``. A
*session* is one connection of a scenario: one user of a closed load, or one slot of an open load. The load
engine decides when a session performs an operation. The session chooses the operation and measures its time.
Drivers block in the ordinary way (sockets, ``time.sleep``), and the load engine makes blocking cooperative.
Drivers that wait inside C code declare this (``Blocking``).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict

OK = "ok"
"""Outcome of a successful operation. Any other outcome is the name of a failure."""

PAUSE = "/pause"
"""Stage in which a session waits between two operations, such as for the pauses of a captured load."""


class Params(BaseModel):
    """Base class of the parameters of a scenario. Unknown fields are errors, and values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    def paths(self) -> tuple[str, ...]:
        """Return the local files and folders that the parameters name."""
        return ()


class FileParams(Params):
    """Base class of parameters that name files of the user.

    The files are read when needed, so each machine that generates load needs them at the same path.
    """

    @classmethod
    @abstractmethod
    def placed(cls, given: Mapping[str, Any], directory: Path) -> dict[str, Any]:
        """Return a plan's parameters with paths made absolute from the folder of the plan.

        A value that is not a path is not changed; validation reports it.
        """

    @abstractmethod
    def paths(self) -> tuple[str, ...]:
        pass

    @abstractmethod
    def read_files(self) -> None:
        """Read every file. Raises ``ScenarioError``: ``FILE:LINE: what was found; what is allowed``."""


DISK = "disk:"
"""Prefix of endpoint names that are disks (``disk:sql.log``): their ``url`` is a folder on the disk, their
option ``host`` the machine's name. For a disk of another machine the keys of ``ssh.OPTIONS`` are its address;
its ``url`` may be empty, and the option ``device`` then names it."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One entry in ``endpoints`` of farm.yaml, with ``${ENV}`` replaced.

    Attributes:
        name: name of the endpoint: ``sql``, ``nosql``, ``sharepoint``, ``web``, ``search``, ``files``.
        url: address; for ``files`` an absolute path.
        options: other keys of the entry (``auth``, ``user``, ``password``, ``token``, ``kind``, ...).
        public: names of options whose values may be shown. All other values are secrets.
    """

    name: str
    url: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    public: frozenset[str] = frozenset()


class Record(Protocol):
    """Receives one finished operation."""

    def __call__(self, operation: str, outcome: str, start_ns: int, end_ns: int, size_bytes: int = 0) -> None:
        """Count one operation and record its time.

        Args:
            operation: name of the operation. A name with a ``/`` is a *stage* of the operation before the
                slash (``document:intranet/fetch``): its time is recorded, but it does not count as
                throughput.
            outcome: ``"ok"`` or the name of the failure.
            start_ns: ``time.perf_counter_ns()`` at the actual begin; 0: unknown, so the operation is counted
                but its time is not recorded.
            end_ns: ``time.perf_counter_ns()`` at the end.
            size_bytes: payload of the operation in bytes.
        """
        ...


class Session(Protocol):
    """One connection of a scenario."""

    def perform(self, record: Record) -> bool:
        """Do one operation and record it. Returns False when no work is left (at the end of a crawl).

        A failure of the farm is an outcome and never an exception. After a failure the session must be usable
        again, so it reconnects by itself. An exception is an internal error and makes the run invalid.
        """
        ...

    def close(self) -> None:
        """Close connections. Safe to call twice."""
        ...


@dataclass(frozen=True, slots=True)
class ScenarioContext:
    """The inputs of a scenario.

    Attributes:
        name: name of the scenario in the plan (``orders``), which is part of the names of its data.
        endpoints: name -> endpoint of the farm.
        params: parameters of the scenario, validated by its ``params_model``.
        seed: seed of the plan.
        worker: number of this process among the workers, from 0.
        workers: number of workers at the start. Workers that join later have higher numbers.
        repeat_s: work with an end (a crawl) is started again if it ends within this many seconds of its first
            start; 0: never; None: always.
        event: writes a line to events.jsonl of the run: ``event("crawl_ended", sources=[...])``.
        resume: whether ``prepare`` continues an interrupted crawl instead of starting a new one.
        take_over: whether this run becomes the owner of the scenario's data in a store, whose owner has died.
        reset_index: names of the farm's own indexes to reset, typed by the user; empty: none.
    """

    name: str
    endpoints: Mapping[str, Endpoint]
    params: Params
    seed: int
    worker: int
    workers: int
    repeat_s: float | None
    event: Callable[..., None]
    resume: bool = False
    take_over: bool = False
    reset_index: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Target:
    """A place that a scenario reads or writes.

    Attributes:
        place: the server or folder, without secrets: ``endpoint sql (db1:5432)``.
        inside: part of the place: a schema, a prefix of keys, an index, a site.
        use: ``written`` or ``read``.
    """

    place: str
    inside: str
    use: Literal["written", "read"] = "written"


@dataclass(frozen=True, slots=True)
class Filled:
    """Data that ``prepare`` creates.

    Attributes:
        what: description, such as ``table data``.
        rows: number of rows; None: unknown.
        size_bytes: payload of the rows in bytes, or size of a table with a known number of pages; None:
            unknown.
        note: further information.
    """

    what: str
    rows: int | None
    size_bytes: int | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Sent:
    """One kind of operation of the load.

    Attributes:
        operation: name of the operation.
        what: description of the statement, request or job.
        share: share of all operations, 0 to 1; None: unknown.
        rows: number of rows that one operation writes; None: unknown.
        size_bytes: payload in bytes that one operation writes; None: unknown.
    """

    operation: str
    what: str
    share: float | None
    rows: float | None
    size_bytes: float | None


@dataclass(frozen=True, slots=True)
class Intent:
    """What a scenario would do to a farm.

    Attributes:
        targets: all places that it reads or writes.
        prepared: data created before the load.
        sent: all kinds of operations of the load.
        removed: sentence on what is removed afterwards and what stays.
        at_most: total number of operations at any load, for a capture or a suite; None: unlimited.
        notes: further sentences for the user.
    """

    targets: tuple[Target, ...]
    prepared: tuple[Filled, ...]
    sent: tuple[Sent, ...]
    removed: str
    at_most: int | None = None
    notes: tuple[str, ...] = ()


class Scenario(Protocol):
    """A workload driver, named by ``use:`` in plan.yaml."""

    use: ClassVar[str]
    """Name in plan.yaml, such as ``full-crawl``."""
    needs: ClassVar[frozenset[str]]
    """Names of the endpoints that the scenario needs."""
    writes: ClassVar[bool]
    """Whether the scenario writes to the farm.

    Such a scenario is refused with ``environment: production``.
    """
    ends: ClassVar[bool]
    """Whether the scenario ends by itself. A plan with ``until: done`` needs such a scenario."""
    params_model: ClassVar[type[Params]]

    def __init__(self, context: ScenarioContext) -> None: ...

    def check(self) -> Mapping[str, Any]:
        """Connect to every endpoint that the scenario uses, without changing anything.

        Returns facts for the manifest (server versions, settings). Raises ``EndpointUnreachable`` with one
        sentence: the endpoint, what was tried, the answer, the remedy. Never shows a password.
        """
        ...

    def intent(self) -> Intent:
        """Return what the scenario would do, for ``run --dry-run``. Writes nothing and reads little.

        Raises the same errors as ``check`` if the needed information is not readable.
        """
        ...

    def prepare(self, progress: Callable[[str], None]) -> None:
        """Create the data for the run; called once, in one process, before any session is opened.

        ``progress`` receives short sentences for the user.
        """
        ...

    def session(self, number: int) -> Session:
        """Open a session. ``number`` is unique over all workers.

        The session depends only on this number and on the seed.
        """
        ...

    def finish(self, *, keep_data: bool) -> None:
        """Remove what ``prepare`` created, and nothing else, unless ``keep_data``.

        It is also called after failures.
        """
        ...


@runtime_checkable
class Resumable(Protocol):
    """Further methods of a scenario whose interrupted work can be continued."""

    @property
    def resumable(self) -> bool:
        """Return whether the work stays on the farm and can be continued (``ScenarioContext.resume``)."""
        ...


@runtime_checkable
class Verified(Protocol):
    """Further methods of a scenario that can verify afterwards that its writes exist."""

    @property
    def verify_within_s(self) -> float:
        """Return the time limit of ``verify`` in seconds."""
        ...

    def verify(self) -> None:
        """Check the writes and report the result by ``ScenarioContext.event``.

        It is called once in every process that opened sessions, after the load, when the sessions are closed.
        The farm may have crashed and restarted meanwhile.
        """
        ...


@runtime_checkable
class Blocking(Protocol):
    """Further methods of a scenario whose driver may wait inside C code, such as an ODBC driver."""

    @property
    def blocks(self) -> bool:
        """Return whether the driver waits inside C code.

        If so, each session opens, performs and closes in a thread.

        The load engine gives each session one thread. A session measures times in that thread, so that the
        switch between threads is not part of an operation.
        """
        ...

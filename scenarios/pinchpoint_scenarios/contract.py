"""The contract between a workload driver and the load engine.

A *scenario* is created once in every process that takes part; exactly one process calls ``prepare`` and
``finish``. A *session* is one connection of it: one user of a closed load, one slot of an open one. The load
engine decides when a session performs; the session decides what it performs and takes the time. Drivers block
in the ordinary way (sockets, ``time.sleep``): the load engine makes blocking cooperative. Drivers that wait
inside C code declare this (``Blocking``).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict

OK = "ok"
"""The outcome of a successful operation; any other outcome is the name of its failure."""

PAUSE = "/pause"
"""The stage in which a session waits by itself between two operations, as a replay does as captured."""


class Params(BaseModel):
    """Base of every scenario's parameters: unknown fields are errors, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    def paths(self) -> tuple[str, ...]:
        """The local files and folders that these parameters name."""
        return ()


class FileParams(Params):
    """Base of parameters that name the user's files.

    The files are read when needed, so each machine that generates load needs them at the same place.
    """

    @classmethod
    @abstractmethod
    def placed(cls, given: Mapping[str, Any], directory: Path) -> dict[str, Any]:
        """A plan's parameters, with paths made absolute from the plan's folder.

        A value that is not a path is left as it is; validation reports it.
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
    """One entry of farm.yaml's ``endpoints``, with ``${ENV}`` expanded.

    Attributes:
        name: ``sql``, ``nosql``, ``sharepoint``, ``web``, ``search``, ``files``.
        url: its address; for ``files`` an absolute path.
        options: the other keys of the entry (``auth``, ``user``, ``password``, ``token``, ``kind``, ...).
        public: options whose values may be shown; all other values are secrets.
    """

    name: str
    url: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    public: frozenset[str] = frozenset()


class Record(Protocol):
    """Receives one finished operation."""

    def __call__(self, operation: str, outcome: str, start_ns: int, end_ns: int, size_bytes: int = 0) -> None:
        """Count and time one operation.

        Args:
            operation: its name. A name with a ``/`` is a *stage* of the operation before the slash
                (``document:intranet/fetch``): it is timed, but does not count as throughput.
            outcome: ``"ok"`` or the name of the failure.
            start_ns: ``time.perf_counter_ns()`` at its actual begin; 0 if unknown: the operation is counted,
                and not timed.
            end_ns: the same at its end.
            size_bytes: payload moved.
        """
        ...


class Session(Protocol):
    """One connection of a scenario."""

    def perform(self, record: Record) -> bool:
        """Do one operation and record it; False when no work is left (at the end of a crawl).

        A failure of the farm is an outcome, never an exception; after one the session must be usable again
        (it reconnects by itself). An exception is an internal error and makes the run invalid.
        """
        ...

    def close(self) -> None:
        """Close connections. Safe to call twice."""
        ...


@dataclass(frozen=True, slots=True)
class ScenarioContext:
    """The inputs of a scenario.

    Attributes:
        name: its name in the plan (``orders``), which is part of the names of its data.
        endpoints: the farm's endpoints by name.
        params: its parameters, validated by its ``params_model``.
        seed: the plan's seed.
        worker: this process's number among the workers, from 0.
        workers: number of workers at the start; later ones have higher numbers.
        repeat_s: work with an end (a crawl) that ends within this many seconds of its first start is started
            again; 0: only once; None: always again.
        event: writes one line to the run's events.jsonl: ``event("crawl_ended", sources=[...])``.
        resume: whether ``prepare`` continues a killed crawl instead of starting anew.
        take_over: the owner of this scenario's data in a store is dead: this run becomes the owner.
        reset_index: names, typed by the user, of the farm's own indexes to reset; empty: none.
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
        inside: its part: a schema, a prefix of keys, an index, a site.
        use: ``written`` or ``read``.
    """

    place: str
    inside: str
    use: Literal["written", "read"] = "written"


@dataclass(frozen=True, slots=True)
class Filled:
    """Something that ``prepare`` makes.

    Attributes:
        what: ``table data``.
        rows: number of its rows; None: unknown.
        size_bytes: their payload, or the size of a table with a known number of pages; None: unknown.
        note: further information.
    """

    what: str
    rows: int | None
    size_bytes: int | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Sent:
    """One kind of operation.

    Attributes:
        operation: its name.
        what: the statement, request or job, in words.
        share: its share of all operations, 0 to 1; None: unknown.
        rows: number of rows that one operation writes; None: unknown.
        size_bytes: payload that one operation writes; None: unknown.
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
        targets: every place.
        prepared: the data created before the load.
        sent: every kind of operation of the load.
        removed: what is removed afterwards, and what stays; one sentence.
        at_most: the total number of operations at any load (of a capture, a suite); None: unlimited.
        notes: further sentences for the user.
    """

    targets: tuple[Target, ...]
    prepared: tuple[Filled, ...]
    sent: tuple[Sent, ...]
    removed: str
    at_most: int | None = None
    notes: tuple[str, ...] = ()


class Scenario(Protocol):
    """A workload driver, as named by ``use:`` in plan.yaml."""

    use: ClassVar[str]
    """The name in plan.yaml: ``full-crawl``."""
    needs: ClassVar[frozenset[str]]
    """The endpoints that the scenario needs."""
    writes: ClassVar[bool]
    """Whether the scenario writes to the farm: such scenarios refuse ``environment: production``."""
    ends: ClassVar[bool]
    """Whether the scenario ends by itself: a plan with ``until: done`` needs such a scenario."""
    params_model: ClassVar[type[Params]]

    def __init__(self, context: ScenarioContext) -> None: ...

    def check(self) -> Mapping[str, Any]:
        """Connect to every endpoint that the scenario will use, without changing anything.

        Returns facts for the manifest (server versions, settings). Raises ``EndpointUnreachable`` with one
        sentence: the endpoint, what was tried, the answer, the remedy. Never shows a password.
        """
        ...

    def intent(self) -> Intent:
        """What the scenario would do, for ``run --dry-run``: writes nothing, and reads as little as possible.

        Raises the same errors as ``check`` if the needed information is not readable.
        """
        ...

    def prepare(self, progress: Callable[[str], None]) -> None:
        """Create the data for the run; called once, in one process, before any session is opened.

        ``progress`` receives short sentences for the user.
        """
        ...

    def session(self, number: int) -> Session:
        """Open session ``number`` (unique over all workers); deterministic for the seed and this number."""
        ...

    def finish(self, *, keep_data: bool) -> None:
        """Remove what ``prepare`` created, and only that, unless ``keep_data``.

        Also called after failures.
        """
        ...


@runtime_checkable
class Resumable(Protocol):
    """Additional methods of a scenario whose interrupted work can be continued."""

    @property
    def resumable(self) -> bool:
        """Whether the work stays on the farm to be continued (``ScenarioContext.resume``)."""
        ...


@runtime_checkable
class Verified(Protocol):
    """Additional methods of a scenario that can verify afterwards that its writes exist."""

    @property
    def verify_within_s(self) -> float:
        """The time limit of ``verify``."""
        ...

    def verify(self) -> None:
        """Look, and report the result by ``ScenarioContext.event``.

        Called once in every process that opened sessions, after the load, when they are closed; the farm may
        have crashed and restarted meanwhile.
        """
        ...


@runtime_checkable
class Blocking(Protocol):
    """Additional methods of a scenario whose driver may wait inside C code, such as ODBC drivers."""

    @property
    def blocks(self) -> bool:
        """Whether the driver does: then each session is opened, performs and closes in a thread.

        The load engine gives each session one thread. Sessions take the time in that thread, so the switch
        between threads is not part of an operation.
        """
        ...

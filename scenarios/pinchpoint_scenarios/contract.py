"""The contract between a workload driver and whatever drives it.

A *scenario* is made once in every process that takes part; exactly one process calls ``prepare`` and
``finish``. A *session* is one connection's worth of it: one user of a closed load, one slot of an open one.
Whoever drives decides when a session performs; the session decides what it performs and takes the clock.
Drivers block the ordinary way (sockets, ``time.sleep``): the load engine makes blocking cooperative;
those that wait inside C code say so (``Blocking``).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict

OK = "ok"
"""The outcome of an operation that did what it should; any other outcome is the name of its failure."""

PAUSE = "/pause"
"""The stage in which a session waits by itself between two operations, as a replay does as captured."""


class Params(BaseModel):
    """Base of every scenario's parameters: unknown fields are errors, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    def paths(self) -> tuple[str, ...]:
        """The files and folders of the machine that makes the load that these parameters name."""
        return ()


class FileParams(Params):
    """Base of parameters that name files of the user's.

    The files are read when needed, so they must be in the same place on every machine that generates load.
    """

    @classmethod
    @abstractmethod
    def placed(cls, given: Mapping[str, Any], directory: Path) -> dict[str, Any]:
        """Parameters as they stand in a plan, with the paths in them made absolute from the plan's folder on.

        What is no path where one belongs is left as it is, for validation to find.
        """

    @abstractmethod
    def paths(self) -> tuple[str, ...]:
        pass

    @abstractmethod
    def read_files(self) -> None:
        """Read every file. Raises ``ScenarioError``: ``FILE:LINE: what was found; what is allowed``."""


DISK = "disk:"
"""What the names of endpoints begin with that are disks (``disk:sql.log``): their ``url`` is a folder on the
disk, their option ``host`` the machine's name. Of a disk of another machine the keys of ``ssh.OPTIONS`` say
how it is reached; its ``url`` may be empty, and the option ``device`` then names it."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One entry of farm.yaml's ``endpoints``, with its ``${ENV}`` already expanded.

    Attributes:
        name: ``sql``, ``nosql``, ``sharepoint``, ``web``, ``search``, ``files``.
        url: where it is; for ``files`` an absolute path.
        options: the other keys of the entry (``auth``, ``user``, ``password``, ``token``, ``kind``, ...).
        public: options whose values may be shown; all other values are secrets.
    """

    name: str
    url: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    public: frozenset[str] = frozenset()


class Record(Protocol):
    """Takes one finished operation."""

    def __call__(self, operation: str, outcome: str, start_ns: int, end_ns: int, size_bytes: int = 0) -> None:
        """Count and time one operation.

        Args:
            operation: its name. A name with a ``/`` is a *stage* of the operation before the slash
                (``document:intranet/fetch``): timed, but not counted as throughput.
            outcome: ``"ok"`` or the name of the failure.
            start_ns: ``time.perf_counter_ns()`` when it actually began; 0 if that is not known: the
                operation is counted, and not timed.
            end_ns: likewise, when it ended.
            size_bytes: payload moved.
        """
        ...


class Session(Protocol):
    """One connection's worth of a scenario."""

    def perform(self, record: Record) -> bool:
        """Do one operation and record it; False when there is nothing left to do (a crawl at its end).

        A failure of the farm is an outcome, never an exception; after one the session must be usable again
        (it reconnects by itself). An exception here is an internal error and makes the run invalid.
        """
        ...

    def close(self) -> None:
        """Close connections. Safe to call twice."""
        ...


@dataclass(frozen=True, slots=True)
class ScenarioContext:
    """What a scenario is made with.

    Attributes:
        name: its name in the plan (``orders``); data it makes carries it.
        endpoints: the farm's endpoints by name.
        params: its parameters, validated by its ``params_model``.
        seed: the plan's seed.
        worker: this process's number among those that take part, from 0.
        workers: how many take part from the begin; later ones have higher numbers.
        repeat_s: work that ends (a crawl) within this many seconds of its first start is started again;
            0: it is done once; None: over and over.
        event: writes one line to the run's events.jsonl: ``event("crawl_ended", sources=[...])``.
        resume: what ``prepare`` finds of work that was killed is gone on with, not made anew (a crawl).
        take_over: the owner of this scenario's data in a store is dead: this run becomes the owner.
        reset_index: the names that were typed for indexes of the farm's own to be reset; empty: none is.
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
    """One place that a scenario reads or writes.

    Attributes:
        place: the server or folder, without secrets: ``endpoint sql (db1:5432)``.
        inside: what of it: a schema, the beginning of keys, an index, a site.
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
        rows: how many it gets; None: not known.
        size_bytes: their payload, or for a table of known pages its size; None: not known.
        note: what else there is to say.
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
        share: its share of all operations, 0 to 1; None: not known.
        rows: how many rows one of them writes; None: not known.
        size_bytes: the payload one of them writes; None: not known.
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
        prepared: what is made before the load.
        sent: every kind of operation of the load.
        removed: what is removed afterwards, and what stays; a sentence.
        at_most: how many operations there are at all, whatever the load (of a capture, a suite); None: no
            such number.
        notes: whatever else a person must know, as sentences.
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
    """Endpoints without which it cannot run."""
    writes: ClassVar[bool]
    """Whether it writes to the farm: such scenarios refuse ``environment: production``."""
    ends: ClassVar[bool]
    """Whether it comes to an end by itself: a plan that measures ``until: done`` needs one that does."""
    params_model: ClassVar[type[Params]]

    def __init__(self, context: ScenarioContext) -> None: ...

    def check(self) -> Mapping[str, Any]:
        """Reach every endpoint it will use, without changing anything.

        Returns facts for the manifest (server versions, settings). Raises ``EndpointUnreachable`` with one
        clear sentence: which endpoint, what was tried, what came back, the remedy. Never shows a password.
        """
        ...

    def intent(self) -> Intent:
        """What it would do, for ``run --dry-run``: writes nothing, and reads only what it must know.

        Raises as ``check`` where what it must know cannot be read.
        """
        ...

    def prepare(self, progress: Callable[[str], None]) -> None:
        """Make the data the run needs; called once, in one process, before any session is opened.

        ``progress`` takes a short sentence for the user.
        """
        ...

    def session(self, number: int) -> Session:
        """Open session ``number`` (unique over all workers); deterministic from the seed and that number."""
        ...

    def finish(self, *, keep_data: bool) -> None:
        """Remove what ``prepare`` made, and only that, unless ``keep_data``. Also after a failed run."""
        ...


@runtime_checkable
class Resumable(Protocol):
    """What a scenario offers beside ``Scenario`` where work that was cut off may be gone on with."""

    @property
    def resumable(self) -> bool:
        """Whether it stays on the farm to be gone on with (``ScenarioContext.resume``)."""
        ...


@runtime_checkable
class Verified(Protocol):
    """What a scenario offers beside ``Scenario`` where what it did can be seen to be there afterwards."""

    @property
    def verify_within_s(self) -> float:
        """How long ``verify`` may take."""
        ...

    def verify(self) -> None:
        """Look, and report the result by ``ScenarioContext.event``.

        Called once in every process that opened sessions, when the load has ended and they are closed; the
        farm may have crashed and come back meanwhile.
        """
        ...


@runtime_checkable
class Blocking(Protocol):
    """What a scenario offers beside ``Scenario`` where its driver may wait inside C code, as ODBC's do."""

    @property
    def blocks(self) -> bool:
        """Whether it does: then each session is opened, performs and is closed in threads, one at a time.

        Whoever drives gives one thread for each session. Sessions take the clock themselves, there,
        so what it takes to get into a thread and out of it is no part of an operation.
        """
        ...

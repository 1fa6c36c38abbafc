"""Defines and checks the messages between a controller and load workers on other machines.

A message is JSON: ``{"number": N, "message": {...}}``. Numbers only grow, so that no message is accepted
twice. Both sides check every message before use. An invalid message raises ``BadMessage`` and ends its sender
alone.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Collection, Mapping
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from pinchpoint.loadgen.assignment import Assignment
from pinchpoint.loadgen.slots import SLOTS
from pinchpoint.store import histogram
from pinchpoint.store.schema import OPERATIONS_SCHEMA

LARGEST_BYTES = 16 * 2**20
"""Enough for a second of 800 operations, each with two histograms of 8 KB."""

EVENTS = frozenset(
    {
        "crawl_ended",
        "crawl_joined",
        "crawl_latency_not_measured",
        "crawl_not_stopped_at_once",
        "crawl_started",
        "crawl_state",
        "crawl_statistics_not_read",
        "crawler_link_back",
        "crawler_link_given_up",
        "crawler_link_lost",
        "logged",
        "probe_failed",
        "probed",
        "replayed",
        "statement_failed",
        "task_failed",
        "too_many_names",
        "writes_read_back",
    }
)
"""The events that a load worker may send. All other events come from the controller, so that a worker cannot
forge a phase or a guard."""

_SLACK_S = 60  # for a clock that was set during the run, or a delayed message
_END_OF_TIME_S = 2**62  # ``before_s`` of the last second
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # control characters, which a terminal would obey
_EVENT_BYTES = 64 * 1024


class BadMessage(Exception):  # noqa: N818 -- what the message is
    """A message that this side does not accept; the text says why."""


def _printable(text: str) -> str:
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


Text = Annotated[str, Field(max_length=8192), AfterValidator(_printable)]
Name = Annotated[str, Field(max_length=1000), AfterValidator(_printable)]
Count = Annotated[int, Field(ge=0, le=10**9)]
Utc = Annotated[int, Field(ge=0, le=2**63 - 1)]  # nanoseconds
Seconds = Annotated[float, Field(ge=0, le=86_400)]
Figure = Annotated[float, Field(ge=0, le=1e15)]
Encoded = Annotated[str, Field(max_length=512 * 1024)]
Slots = Annotated[list[Annotated[int, Field(ge=0, lt=SLOTS)]], Field(max_length=SLOTS)]
Bins = Annotated[list[Annotated[int, Field(ge=0, le=10_000)]], Field(max_length=10_000)]
Counts = Annotated[list[Count], Field(max_length=10_000)]

_OneSecond = Annotated[float, Field(ge=1, le=1)]
_Row = tuple[
    Annotated[int, Field(ge=0, le=2**40)],  # time_s
    _OneSecond,  # interval_s
    Name,  # worker
    Name,  # scenario
    Name,  # operation
    Name,  # outcome
    Count,
    Annotated[int, Field(ge=0, le=2**53)],  # bytes
    Encoded | None,  # service
    Encoded | None,  # response
    Count,  # dropped
]
_Sample = tuple[Utc, _OneSecond, Name, Name, Name, Figure | None, Figure | None]


class _Checked(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False, defer_build=True)


class WorkerHello(_Checked):
    """A worker's facts about itself, sent before the worker joins."""

    type: Literal["hello"]
    host: Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[A-Za-z0-9_.-]+$")]
    cores: Annotated[list[Annotated[int, Field(ge=0, le=65_535)]], Field(min_length=1, max_length=65_536)]
    version: Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9_.+-]+$")]


class Waiting(_Checked):
    """Sent by a worker that is connected and has no work yet."""

    type: Literal["waiting"]


class Pong(_Checked):
    """The worker's answer to a ping."""

    type: Literal["pong"]
    sent_ns: Utc
    utc_ns: Utc


class Ready(_Checked):
    """Sent when every session of the worker is open."""

    type: Literal["ready"]


class WorkerStopped(_Checked):
    """Sent when the load has ended and all measurements have been sent."""

    type: Literal["stopped"]


class ScenarioProgress(_Checked):
    """One scenario's figures of a second; see ``recorder.Seconds.progress``."""

    ok: Count
    failed: Count
    skipped: Count
    dropped: Count
    p95_s: Seconds | None
    times: tuple[Bins, Counts]
    before_s: Annotated[int, Field(ge=0, le=_END_OF_TIME_S)]

    @model_validator(mode="after")
    def _adds_up(self) -> ScenarioProgress:
        bins, counts = self.times
        if len(bins) != len(counts) or sum(counts) > self.ok:
            raise ValueError("times: more operations than were ok, or bins without a count")
        return self


class Second(_Checked):
    """The measurements of a second: rows of the operations table, samples, progress."""

    type: Literal["second"]
    rows: Annotated[list[_Row], Field(max_length=20_000)]
    samples: Annotated[list[_Sample], Field(max_length=20_000)]
    progress: Annotated[dict[Name, ScenarioProgress], Field(max_length=1000)]


class ScenarioEvent(_Checked):
    """An event of a scenario, with fields of its own."""

    model_config = ConfigDict(extra="allow")

    __pydantic_extra__: dict[str, JsonValue]

    type: Literal["event"]
    event: Name
    scenario: Name

    @model_validator(mode="after")
    def _of_a_worker(self) -> ScenarioEvent:
        if self.event not in EVENTS:
            raise ValueError("no event of a load worker")
        if {"worker", "time"} & set(self.__pydantic_extra__):
            raise ValueError("worker and time are the controller's to say")
        if len(json.dumps(self.__pydantic_extra__)) > _EVENT_BYTES:
            raise ValueError(f"more than {_EVENT_BYTES} bytes")
        return self


class Working(_Checked):
    """Whether a scenario has work left in this worker."""

    type: Literal["working"]
    scenario: Name
    working: bool


class Busy(_Checked):
    """The time that the worker may need to check the load's results after the load."""

    type: Literal["busy"]
    for_s: Seconds


class WorkerFailed(_Checked):
    """Sent when the worker must end, with the reason."""

    type: Literal["failed"]
    kind: Literal["environment", "recorder"]
    why: Text


FromWorker = Annotated[
    WorkerHello
    | Waiting
    | Pong
    | Ready
    | Second
    | ScenarioEvent
    | Working
    | Busy
    | WorkerStopped
    | WorkerFailed,
    Field(discriminator="type"),
]


class WorkerRefused(_Checked):
    """The controller ignores this worker from now on."""

    refused: Text


class Ping(_Checked):
    """The controller's request for the worker's time."""

    ping: Utc


class Tick(_Checked):
    """Sent every second to show that the controller is alive."""

    tick: Literal[True]


class Late(_Checked):
    """Sent to a worker that joined after the load was shared out, and so gets no work."""

    late: Literal[True]


class WorkMessage(_Checked):
    """The worker's assignment."""

    model_config = ConfigDict(strict=False)  # JSON has no tuples

    assignment: Assignment

    @model_validator(mode="after")
    def _fits(self) -> WorkMessage:
        work = self.assignment
        if work.journal or work.cores or work.web_ui_port:
            raise ValueError("assignment: a journal, cores, a page: for workers of the controller's machine")
        if len(work.scenarios) > 1000 or not set(work.slots) == set(work.ranks) == set(work.scenarios):
            raise ValueError("assignment: shares of scenarios that are not in it")
        for given in work.scenarios.values():
            if set(given) != {"use", "params", "load", "repeat_s"} or not isinstance(given["use"], str):
                raise ValueError("assignment: a scenario is use, params, load and repeat_s")
        return self


class Begin(_Checked):
    """The time at which the load of some scenarios begins."""

    begin: Annotated[list[Name], Field(max_length=1000)]
    at_ns: Utc


class HoldSteps(_Checked):
    """Scenario -> seconds since the load began at which its steps climb no further."""

    hold: dict[Name, Annotated[float, Field(ge=0, le=1e9)]]


class LoadShare(_Checked):
    """The slots of a scenario's load that a worker owns."""

    slots: Slots
    from_ns: Utc
    since_ns: Utc | None


class Own(_Checked):
    """The shares of the load that the worker owns from now on."""

    own: Annotated[dict[Name, LoadShare], Field(max_length=1000)]


class Stop(_Checked):
    """The controller's command to end the load."""

    stop: Literal[True]


FromController = WorkerRefused | Ping | Tick | Late | WorkMessage | Begin | HoldSteps | Own | Stop

_T = TypeVar("_T")


class _Numbered(_Checked, Generic[_T]):
    number: Annotated[int, Field(ge=0, le=2**63 - 1)]
    message: _T


_FROM_WORKER: TypeAdapter[_Numbered[Any]] = TypeAdapter(_Numbered[FromWorker])
_FROM_CONTROLLER: TypeAdapter[_Numbered[Any]] = TypeAdapter(_Numbered[FromController])


class Sender:
    """Numbers messages. The first number is the time, so that a restarted sender does not reuse numbers."""

    def __init__(self) -> None:
        self._number = time.time_ns()

    def encoded(self, message: Mapping[str, Any]) -> bytes:
        """The message with its number, as JSON."""
        self._number += 1
        return json.dumps({"number": self._number, "message": message}, default=str).encode()


class Receiver:
    """Checks the messages of one sender."""

    def __init__(self, adapter: TypeAdapter[_Numbered[Any]]) -> None:
        self._adapter = adapter
        self._number = -1

    @classmethod
    def of_worker(cls) -> Receiver:
        """The receiver for messages of workers."""
        return cls(_FROM_WORKER)

    @classmethod
    def of_controller(cls) -> Receiver:
        """The receiver for messages of the controller."""
        return cls(_FROM_CONTROLLER)

    def taken(self, data: bytes) -> Any:
        """The checked message in ``data``. Raises ``BadMessage``."""
        if len(data) > LARGEST_BYTES:
            raise BadMessage(f"a message of {len(data):,} bytes; allowed: {LARGEST_BYTES:,}")
        try:
            result = self._adapter.validate_json(data)
        except ValidationError as error:
            raise BadMessage(_first(error)) from error
        if result.number <= self._number:
            raise BadMessage("a message that was sent before")
        self._number = result.number
        return result.message


def _first(error: ValidationError) -> str:
    """The first error in words, without the invalid value, which may be secret or long."""
    one = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = ".".join(str(part) for part in one["loc"][:6] if part != "message")
    return _printable(f"{where[:200]}: {one['msg'][:200]}" if where else one["msg"][:200])


def check_second(
    second: Second, worker: str, scenarios: Collection[str], joined_s: float, now_s: float
) -> None:
    """Raise ``BadMessage`` unless the second is of this worker, its scenarios and this time, and adds up."""
    earliest, latest = joined_s - _SLACK_S, now_s + _SLACK_S
    names = [field.name for field in OPERATIONS_SCHEMA]
    for row in (dict(zip(names, values, strict=True)) for values in second.rows):
        if row["worker"] != worker or row["scenario"] not in scenarios:
            raise BadMessage("rows: operations of another worker, or of a scenario that is not its own")
        if not earliest <= row["time_s"] <= latest:
            raise BadMessage("rows: operations of another time than the run's")
        for name in ("service", "response"):
            _check_histogram(name, row[name], row["count"])
    for time_ns, _, host, metric, instance, _, _ in second.samples:
        if host != worker or not metric.startswith("generator.") or instance not in {"", *scenarios}:
            raise BadMessage("samples: of another host than the worker, or no metric of a load worker")
        if not earliest <= time_ns / 1e9 <= latest:
            raise BadMessage("samples: of another time than the run's")
    if not set(second.progress) <= set(scenarios):
        raise BadMessage("progress: of a scenario that is not its own")


def _check_histogram(name: str, text: str | None, most: int) -> None:
    if text is None:
        return
    try:
        values = histogram.checked_count(text)
    except ValueError as error:
        raise BadMessage(f"rows: {name}: {error}") from error
    if values > most:
        raise BadMessage(f"rows: {name}: more times than operations")

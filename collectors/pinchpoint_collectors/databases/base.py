"""Base of the collectors for database servers: the kind, its connection, and its readings.

``NAME.py`` contains the parts for one server: statements, tables of counters, kind and collector.
``NAME_driver.py`` contains its ``Connection``. ``ServerKind`` imports it when it connects, because the client
library is an extra.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit

from pinchpoint_collectors.databases.session_sampler import (
    SessionSample,
    SessionSampler,
    activity,
    connections,
    mean_connections,
)
from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import Collector, NotMeasured, Sample, Watch
from pinchpoint_collectors.value import Value

CONNECT_S = 3
APPLICATION = "pinchpoint-collector"
"""Name under which servers list the collector's connections."""

Row = Mapping[str, Any]
Link = TypeVar("Link")
Question = TypeVar("Question")
Answer = TypeVar("Answer")


REMEDIES = {
    "refused": "start the server, or correct host and port in farm.yaml",
    "name or service": "correct the host name in farm.yaml",
    "name resolution": "correct the host name in farm.yaml",
    "nothing came back": "check the server, the address and the firewalls between",
}
"""Words of a server's message (in lower case) -> remedy, for every kind of server."""


class RefusedError(CollectorError):
    """The user lacks the right for a statement, or the server does not know it. Other statements may work."""


# ---- the connection -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DatabaseTarget:
    """The server of a connection, and the user.

    Attributes:
        where: name of the server in messages, without secrets.
        url: URL of the endpoint.
        address: host and port that replace those of the URL; None: not given.
        user: user that replaces that of the URL; None: not given.
        password: password that replaces that of the URL; None: not given.
    """

    where: str
    url: str = field(repr=False)
    address: str | None = None
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    @property
    def own_url(self) -> str:
        """Return the URL of the endpoint. ``address``, if given, replaces its host."""
        if self.address is None:
            return self.url
        parts = urlsplit(self.url)
        login, at, _ = parts.netloc.rpartition("@")
        return parts._replace(netloc=f"{login}{at}{self.address}").geturl()

    @property
    def login(self) -> tuple[str, str]:
        """Return user and password; empty if none is given."""
        named, _, secret = urlsplit(self.url).netloc.rpartition("@")[0].partition(":")
        return self.user or unquote(named), self.password or unquote(secret)


class ServerConnection(ABC, Generic[Link, Question, Answer]):
    """A connection to one server, for any number of threads. It is opened with the first question.

    Each wait for the server is short, because a hung server keeps its connections open and does not answer.

    Attributes:
        failures: errors of the client library for a failed question.
        remedies: words of a message -> remedy for this kind, as in ``REMEDIES``; the first match counts.
        answer_s: longest wait for an answer in seconds.
        user: user of the collector on the server; None if unknown or none.
        session: number of the collector's session; None if unknown.
    """

    failures: ClassVar[tuple[type[Exception], ...]]
    remedies: ClassVar[Mapping[str, str]]
    answer_s: float = 3.0
    user: str | None = None
    session: int | None = None

    def __init__(self, target: DatabaseTarget) -> None:
        self.target = target
        self._link: Link | None = None
        self._lock = threading.Lock()

    def ask(self, question: Question) -> Answer:
        """Return the answer to a question. A connection is opened if there is none.

        Raises:
            RefusedError: the user lacks the right, or the server does not know the statement (if the library
                reports this).
            CollectorError: any other failure.
        """
        with self._lock:
            return self._ask(question)

    def ask_if_connected(self, question: Question) -> Answer | None:
        """Return the answer to a question; None if the connection is not open (see ``ask``)."""
        with self._lock:
            return None if self._link is None else self._ask(question)

    def close(self) -> None:
        """Close the connection. A second call does nothing."""
        with self._lock:
            self._drop()

    def error(
        self, said: str | Exception, remedy: str | None = None, *, refused: bool = False
    ) -> CollectorError:
        """Return an error that names the server, with the given remedy or one that fits the message."""
        line = str(said).strip().partition("\n")[0] or type(said).__name__
        known = (*self.remedies.items(), *REMEDIES.items())
        remedy = remedy or next((what for words, what in known if words in line.lower()), None)
        text = f"{self.target.where}: {line}" + (f"; {remedy}" if remedy else "")
        return RefusedError(text) if refused else CollectorError(text)

    @property
    def no_answer(self) -> str:
        """Return the message for a server that did not answer in time."""
        return f"nothing came back within {self.answer_s:.0f} s"

    def _ask(self, question: Question) -> Answer:
        try:
            link = self._connect() if self._link is None else self._link
            return self._run(link, question)
        except self.failures as error:
            if self._link is not None and self._is_lost(self._link, error):
                self._drop()
            raise self._explain(error) from error

    def _connect(self) -> Link:
        self._link = link = self._open()
        try:
            self._greet(link)
        except BaseException:
            self._drop()
            raise
        return link

    def _drop(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            self._close(link)

    @abstractmethod
    def _open(self) -> Link:
        """Open a new connection. Raises one of ``failures``, or ``CollectorError``."""

    def _greet(self, link: Link) -> None:
        """Send the first statements of a new connection."""

    @abstractmethod
    def _run(self, link: Link, question: Question) -> Answer:
        """Return the answer to one question. Raises one of ``failures``."""

    @abstractmethod
    def _close(self, link: Link) -> None:
        """Close a connection in any state."""

    def _is_lost(self, link: Link, error: Exception) -> bool:  # noqa: ARG002 -- some libraries reconnect
        """Return whether the connection is lost after an error."""
        return False

    @abstractmethod
    def _explain(self, error: Exception) -> CollectorError:
        """Return the error of the library as a message for the user."""


# ---- the collector ------------------------------------------------------------------------------------


class ReadingQuestion(NamedTuple):
    """A question that is asked at each reading, and the parser of its answer."""

    question: Any
    parse: Callable[[Any], Any] = lambda answer: answer


class ServerReading:
    """The parsed answers of one reading by name.

    Each answer has its own time, because a saturated server delays answers.

    The time of the reading is the time of the first answer.
    """

    def __init__(self, ask: Callable[[Any], Any], questions: Mapping[str, ReadingQuestion]) -> None:
        self.time_ns = 0
        self._answers: dict[str, Any] = {}
        self._came_ns: dict[str, int] = {}
        for name, (question, parse) in questions.items():
            answer = ask(question)
            self._came_ns[name] = time.monotonic_ns()
            self.time_ns = self.time_ns or time.time_ns()
            self._answers[name] = parse(answer)

    def __getitem__(self, name: str) -> Any:
        return self._answers[name]

    def seconds_since(self, before: ServerReading, name: str | None = None) -> float:
        """Return the seconds since the same answer of the last reading; by default of the first answer."""
        name = name or next(iter(self._came_ns))
        return (self._came_ns[name] - before._came_ns[name]) / 1e9


class ServerCollector(ABC):
    """Reads the counters of one server at each reading.

    Args:
        watches: hosts of the farm on this server.
        server: connection to the server.
        where: name of the server in messages, without secrets.

    Attributes:
        KIND: name of the kind.
    """

    KIND: ClassVar[str]
    _about: Mapping[str, Any]

    def __init__(self, watches: Sequence[Watch], server: ServerConnection[Any, Any, Any], where: str) -> None:
        self._hosts = {watch.host: watch.tier for watch in watches}
        self._server = server
        self._where = where
        self._before: ServerReading | None = None
        self._begin()

    def read(self) -> Sequence[Sample]:
        """Return current values, and the growth of counters since the last reading."""
        now = self._reading()
        before, self._before = self._before, now
        interval_s = now.seconds_since(before) if before else 0.0
        if before is not None and not self._is_same_server(before, now):
            before = None
            self._on_another_server(now)
        values = self._values(before, now, interval_s)
        return [Sample(now.time_ns, interval_s, host, *value) for host in self._hosts for value in values]

    def inventory(self) -> Mapping[str, Mapping[str, Any]]:
        """Return facts about the server under ``database`` (docs/metrics.md, "Inventory")."""
        database, missing = self._facts()
        listed = [asdict(each) for each in missing]
        return {
            host: {"tier": tier, "database": database, "not_measured": listed}
            for host, tier in self._hosts.items()
        }

    def close(self) -> None:
        """Close the connection."""
        self._server.close()

    def _reading(self) -> ServerReading:
        return ServerReading(self._server.ask, self._questions())

    def _values(self, before: ServerReading | None, now: ServerReading, interval_s: float) -> list[Value]:
        return [*self._levels(now), *self._growth(before, now, interval_s)]

    # The methods below differ between servers.

    @abstractmethod
    def _begin(self) -> None:
        """Identify the server (``_about``). Raises ``CollectorError`` if it cannot be watched."""

    @abstractmethod
    def _questions(self) -> Mapping[str, ReadingQuestion]:
        """Return the questions of each reading in order."""

    @abstractmethod
    def _is_same_server(self, before: ServerReading, now: ServerReading) -> bool:
        """Return whether the server has run since the last reading.

        A restart or replacement resets counters.
        """

    def _on_another_server(self, now: ServerReading) -> None:  # noqa: B027 -- most remember nothing else of one
        """Process the first reading of a server that was restarted or replaced."""

    def _levels(self, now: ServerReading) -> Iterable[Value]:  # noqa: ARG002 -- one server's are all its sessions'
        """Return current values, except those of sessions."""
        return ()

    @abstractmethod
    def _growth(self, before: ServerReading | None, now: ServerReading, interval_s: float) -> Iterable[Value]:
        """Return the growth since the last reading; None without an earlier reading of this server."""

    @abstractmethod
    def _facts(self) -> tuple[Mapping[str, Any], Iterable[NotMeasured]]:
        """Return the inventory's ``database``, and the metrics that this server does not have."""


class SamplingCollector(ServerCollector):
    """Also samples sessions between readings, for servers that do not count the waits of sessions.

    Attributes:
        SESSIONS: statement that lists sessions.
    """

    SESSIONS: ClassVar[str]

    def __init__(self, watches: Sequence[Watch], server: ServerConnection[Any, Any, Any], where: str) -> None:
        super().__init__(watches, server, where)
        self._waits: dict[str, None] = {}  # a dict as an ordered set
        self._blockers: dict[str, None] = {}
        self._sessions: Sequence[SessionSample] = ()
        self._sampler = SessionSampler(f"{self.KIND}-sessions", self._sample, self._sample_if_connected)

    def close(self) -> None:
        """Stop sampling and close the connection."""
        self._sampler.stop()
        super().close()

    def _reading(self) -> ServerReading:
        now = super()._reading()
        self._sessions = self._sampler.take()
        return now

    def _values(self, before: ServerReading | None, now: ServerReading, interval_s: float) -> list[Value]:
        cost = ("collector.cpu_s", f"{self.KIND}/looks")
        values = self._server_values(before, now, interval_s)
        return [*values, Value(*cost, self._sampler.cpu_s())]

    def _server_values(
        self, before: ServerReading | None, now: ServerReading, interval_s: float
    ) -> list[Value]:
        sessions = self._sessions
        self._waits.update(dict.fromkeys(name for each in sessions for name in each.waiting))
        count = mean_connections(sessions)
        count = self._connections(now) if count is None else count
        return [
            *activity(sessions, self._waits),
            *self._levels(now),
            *connections(count, self._about["connections_limit"]),
            *self._blocked_by(sessions[-1]),
            *self._growth(before, now, interval_s),
        ]

    def _blocked_by(self, last: SessionSample) -> Iterator[Value]:
        """Return blocking sessions. A session that no longer blocks is sent as 0."""
        result = self._find_blockers(last)
        self._blockers.update(dict.fromkeys(result))
        for name in self._blockers:
            yield Value("db.sessions_blocked_by", name, result.get(name, 0.0))

    def _sample(self) -> SessionSample:
        return self._session_sample(self._server.ask(self.SESSIONS))

    def _sample_if_connected(self) -> SessionSample | None:
        rows = self._server.ask_if_connected(self.SESSIONS)
        return None if rows is None else self._session_sample(rows)

    @abstractmethod
    def _session_sample(self, rows: Any) -> SessionSample:
        """Return one sample from the answer to ``SESSIONS``."""

    def _connections(self, now: ServerReading) -> float | None:  # noqa: ARG002
        """Return the number of sessions, if the answer to ``SESSIONS`` lacks it; None if unknown."""
        return None

    def _find_blockers(self, last: SessionSample) -> Mapping[str, float]:  # noqa: ARG002 -- of most not known
        """Return ``USER:ACTIVITY`` -> number of sessions that wait for its lock.

        Asked while sessions wait.
        """
        return {}


# ---- the kind -----------------------------------------------------------------------------------------


class ServerKind:
    """A collector kind of farm.yaml that reads one server.

    Its options are ``endpoint`` (an endpoint of the farm; by default that of the tier), ``user`` and
    ``password`` (of a monitoring user, in place of the endpoint's), and ``address`` (the server of the
    endpoint that runs on the watched host, because each reports only its own figures). The harness converts
    the endpoint to ``Watch.options["url"]``, with ``${ENV}`` replaced.

    Attributes:
        product: name of the server product.
        schemes: URL schemes of this product; the first one is the example in messages.
        package: package of the client library. The extra has the name of the kind.
        collector: class that watches one server.
        connection: class in ``NAME_driver`` that connects. It is imported with the client library.
        counts_files: whether the server counts the I/O of its files, so that it can replace a disk whose
            machine is not watched.
    """

    name: str
    product: str
    schemes: tuple[str, ...]
    package: str
    collector: type[ServerCollector]
    connection: str
    counts_files = False

    options = frozenset({"endpoint", "user", "password", "address"})
    public = frozenset({"endpoint", "user", "address"})

    def machine(self, watch: Watch) -> str:
        """Return the address of the server. Hosts on the same server share one connection."""
        return self._address(watch) or watch.host

    def connect(self, watches: Sequence[Watch]) -> Collector:
        """Connect and identify the server. Raises ``CollectorError`` with the remedy."""
        first = watches[0]
        where = f"host {first.host!r}, collector {self.name!r}"
        address = self._address(first)
        self._check_is_one(where, address or "", first.options)
        if address is None:
            raise CollectorError(
                f"{where}: no {self.product} to ask; say `endpoint: NAME` with an endpoint of this farm "
                f"whose url begins with {' or '.join(f'{scheme}://' for scheme in self.schemes)}"
            )
        try:
            return self._connect(watches, f"{where} ({address})")
        except ImportError as error:
            raise CollectorError(
                f"{where}: it needs {self.package}, which is not installed here ({error}); "
                f"run: pip install 'pinchpoint-collectors[{self.name}]'"
            ) from error

    def _connect(self, watches: Sequence[Watch], where: str) -> Collector:
        driver = import_module(f"{__package__}.{self.name}_driver")
        given = watches[0].options
        address = given.get("address")
        target = DatabaseTarget(
            where,
            str(given["url"]),
            None if address is None else str(address),
            given.get("user"),
            given.get("password"),
        )
        connection: ServerConnection[Any, Any, Any] = getattr(driver, self.connection)(target)
        try:
            return self.collector(watches, connection, where)
        except BaseException:
            connection.close()
            raise

    def _check_is_one(self, where: str, address: str, options: Mapping[str, Any]) -> None:
        """Raises ``CollectorError`` for an endpoint of several servers without an ``address``."""
        if "address" not in self.options:
            return
        looked_up = urlsplit(str(options.get("url", ""))).scheme.endswith("+srv")
        if "," in address or (looked_up and "address" not in options):
            raise CollectorError(
                f"{where}: the endpoint names several nodes ({address}) and each reports itself only; "
                "say which one this host is, as in "
                f"`address: {'HOST:PORT' if looked_up else address.partition(',')[0]}`"
            )

    def _address(self, watch: Watch) -> str | None:
        """Return host and port without user and password; None if the URL is not one of the product."""
        parts = urlsplit(str(watch.options.get("url", "")))
        if parts.scheme not in self.schemes:
            return None
        named = parts.netloc.rpartition("@")[2] or None
        given = watch.options.get("address")
        return str(given) if given and named else named

"""Accesses MongoDB by the library of its driver."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from pymongo import InsertOne, MongoClient, ReadPreference, ReplaceOne, errors
from pymongo.collection import Collection
from pymongo.read_concern import ReadConcern
from pymongo.uri_parser import parse_uri
from pymongo.write_concern import WriteConcern

from pinchpoint_collectors.common.backoff import Backoff

from ...addresses import place, unreachable, without_secrets
from ...contract import OK, Endpoint
from ...errors import EndpointUnreachable, ScenarioError
from ..hold import Hold
from ..params import NosqlBurstParams
from ..records import Fields, Row
from .contract import MARKER, Store, StoreConnection, refuse_partitions

CONNECT_TIMEOUT_S = 5.0
MARK = "owner"
"""Id of the document that marks the collection. The ids of records are numbers."""
HOLDER = "holder"
"""Id of the document that names the run with the collection."""
_LOAD_STEP = 1_000
_DATABASE = "pinchpoint"

_BY_CODE = {
    11: "user_not_found",
    13: "permission",
    18: "authentication",
    50: "timeout",
    64: "write_concern_timeout",
    79: "write_concern",
    89: "timeout",
    91: "shutting_down",
    100: "write_concern",
    10107: "not_primary",
    11000: "duplicate",
    13435: "not_primary",
}
"""Error code of the server -> name of the failure."""


_BY_CLASS: tuple[tuple[type[errors.PyMongoError], str], ...] = (
    (errors.WTimeoutError, "write_concern_timeout"),
    (errors.NetworkTimeout, "timeout"),
    (errors.ExecutionTimeout, "timeout"),
    (errors.NotPrimaryError, "not_primary"),
    (errors.ServerSelectionTimeoutError, "unreachable"),
    (errors.ConnectionFailure, "connection_lost"),
)


def outcome_of(error: errors.PyMongoError) -> str:
    """Return the name of a failure; ``error_<code>`` or ``error_<class>`` for an unknown one."""
    for kind, outcome in _BY_CLASS:
        if isinstance(error, kind):
            return outcome
    if isinstance(error, errors.BulkWriteError):
        details = error.details or {}
        failed = [*details.get("writeErrors", ()), *details.get("writeConcernErrors", ())]
        return _named(failed[0].get("code") if failed else error.code, error)
    return _named(error.code if isinstance(error, errors.OperationFailure) else None, error)


def _named(code: Any, error: Exception) -> str:
    if code is None:
        return f"error_{type(error).__name__.lower()}"
    return _BY_CODE.get(code) or f"error_{code}"


def open_store(endpoint: Endpoint, name: str, params: NosqlBurstParams) -> Store:
    """Return the store of an endpoint without connecting to it."""
    return Mongo(endpoint, name, params)


class Mongo:
    """One server, replica set or sharded cluster. Each scenario has a collection of its own.

    A record is a document. Its number is ``_id``, its fields are binary, and ``expires`` is the end of its
    time to live.
    """

    def __init__(self, endpoint: Endpoint, name: str, params: NosqlBurstParams) -> None:
        self._endpoint = endpoint
        self._params = params
        self._name = f"pinchpoint_{name}"
        self._lock = threading.Lock()
        self._client: MongoClient[dict[str, Any]] | None = None
        self._users = 0
        self.what = f"the collection {self._name}"
        self._hold = Hold(endpoint, self.what)

    def check(self) -> Mapping[str, Any]:
        """Return version and durability of an acknowledged write."""
        refuse_partitions(self._endpoint, self._params)
        with self._opened() as client:
            info = client.server_info()
            journals, members = _journals(client), _members(client)
        asked = self._params.mongodb
        settings = {
            "write_concern": str(asked.write_concern),
            "journal": str(asked.journal).lower(),
            "storage_journal": {True: "yes", False: "no", None: "not known"}[journals],
            "members": "not known" if members is None else str(members),
        }
        warnings = [f"{place(self._endpoint)}: {why}" for why in self._weaker(journals, members)]
        return {"server": "mongodb", "version": info["version"], "settings": settings, "warnings": warnings}

    def claim(self, progress: Callable[[str], None], *, take_over: bool = False) -> None:
        """Create the collection anew and reserve it for this run.

        Raises ``ScenarioError`` if another collection has the same name, or if another run has the
        collection.
        """
        with self._opened() as client:
            collection = self._collection(client)
            # The mark is read last, because a run that begins meanwhile writes it first.
            if collection.find_one({"_id": {"$ne": HOLDER}}) is not None and not _ours(collection):
                raise ScenarioError(
                    f"{place(self._endpoint)}: Pinchpoint did not make the collection {self._name} of the "
                    f"database {collection.database.name}; rename it, or give the scenario another name in "
                    "the plan"
                )
            entry = _HoldDocument(collection)
            self._hold.take(entry, over=take_over)
            if _ours(collection):
                collection.drop()
                progress("dropped the collection of an earlier run")
                # The reservation was dropped with the collection. A run that entered meanwhile keeps its
                # reservation.
                self._hold.take(entry)
            collection.insert_one({"_id": MARK, "text": MARKER})
            if self._params.ttl_s is not None:
                collection.create_index("expires", expireAfterSeconds=0)

    def load(self, rows: Iterable[Row], progress: Callable[[int], None]) -> None:
        """Write many records, a thousand at a time. Raises ``ScenarioError`` if one is refused."""
        remaining, loaded = iter(rows), 0
        with self._opened() as client:
            collection = self._collection(client)
            while batch := list(islice(remaining, _LOAD_STEP)):
                documents = [InsertOne(document(item, fields, self._params.ttl_s)) for item, fields in batch]
                collection.bulk_write(documents, ordered=False)
                loaded += len(batch)
                progress(loaded)

    def connect(self, session: int) -> StoreConnection:
        """Return a session's connection.

        It shares the pool of the process, because the library has no single connections.
        """
        del session
        return MongoConnection(self)

    def remove(self) -> None:
        """Drop the collection with its reservation. A collection without the mark is not dropped."""
        with self._opened() as client:
            collection = self._collection(client)
            entry = _HoldDocument(collection)
            if _ours(collection) and self._hold.have(entry):
                collection.drop()
                self._hold.dropped()
            self._hold.release(entry)

    def release(self) -> None:
        if self._hold.held:
            with self._opened() as client:
                self._hold.release(_HoldDocument(self._collection(client)))

    @property
    def params(self) -> NosqlBurstParams:
        """Return the parameters of the scenario."""
        return self._params

    def acquire(self) -> Collection[dict[str, Any]]:
        """Return the collection, from the client that all connections of this process share."""
        with self._lock:
            if self._client is None:
                self._client = self._made()
            self._users += 1
            return self._collection(self._client)

    def release_client(self) -> None:
        """One connection no longer needs the shared client."""
        with self._lock:
            self._users -= 1
            if self._users == 0 and self._client is not None:
                self._client.close()
                self._client = None

    def _made(self) -> MongoClient[dict[str, Any]]:
        options = self._endpoint.options
        given = {"username": options.get("user"), "password": options.get("password")}
        login: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
        timeout_ms = round(self._params.timeout_s * 1000)
        return MongoClient(
            self._endpoint.url,
            connectTimeoutMS=round(CONNECT_TIMEOUT_S * 1000),
            serverSelectionTimeoutMS=round(min(CONNECT_TIMEOUT_S, self._params.timeout_s) * 1000),
            socketTimeoutMS=timeout_ms,
            maxPoolSize=None,  # one for every session with an operation in flight
            retryWrites=False,  # a failure is an outcome: nothing tries again behind our back
            retryReads=False,
            **login,
        )

    def _collection(self, client: MongoClient[dict[str, Any]]) -> Collection[dict[str, Any]]:
        asked = self._params.mongodb
        database = parse_uri(self._endpoint.url, validate=False)["database"] or _DATABASE
        concern = WriteConcern(w=asked.write_concern, j=asked.journal if asked.write_concern != 0 else None)
        level = "majority" if asked.write_concern == "majority" else "local"
        return client[database].get_collection(
            self._name, write_concern=concern, read_concern=ReadConcern(level)
        )

    @contextmanager
    def _opened(self) -> Iterator[MongoClient[dict[str, Any]]]:
        """Open a client for work outside the load. Its failures become messages."""
        try:
            with self._made() as client:
                yield client
        except errors.PyMongoError as error:
            raise self._explained(error) from error

    def _explained(self, error: errors.PyMongoError) -> EndpointUnreachable:
        outcome = outcome_of(error)
        text = without_secrets(str(error).partition(", Timeout: ")[0], self._endpoint)
        cause, remedy = {
            "authentication": ("the server refused the user or the password", "correct them in farm.yaml"),
            "permission": (f"the user lacks a right: {text}", "grant it, or name another user"),
            "unreachable": (text, "start the server, or correct host and port in farm.yaml"),
            "connection_lost": (text, "start the server, or correct host and port in farm.yaml"),
            "timeout": ("the server did not answer in time", "check the address and the server's load"),
        }.get(outcome, (f"the server said: {text}", "see the server's log"))
        return unreachable(self._endpoint, cause, remedy)

    def _weaker(self, journals: bool | None, members: int | None) -> Iterator[str]:
        """Yield what makes an acknowledged write less than durable."""
        asked = self._params.mongodb
        if asked.write_concern == 0:
            yield "write_concern is 0, so a write is not acknowledged at all"
        elif journals is False:
            yield "the server keeps no journal, so a write is not durable"
        elif not asked.journal:
            yield "journal is off, so a write does not wait for the disk"
        elif journals is None:
            yield "whether the server keeps a journal is not known"
        wanted = asked.write_concern
        if isinstance(wanted, int) and members is not None and 0 < wanted <= members // 2:
            # The other members may elect a primary without the write, which is then rolled back.
            yield (
                f"write_concern is {wanted} of {members} members, so an acknowledged write may be taken back "
                "when another member becomes the primary; majority is safe"
            )


class _HoldDocument:
    """A ``HoldEntry`` in a document beside those of the records."""

    def __init__(self, collection: Collection[dict[str, Any]]) -> None:
        # The answer to this write is needed for any write concern of the plan.
        self._collection = collection.with_options(
            write_concern=WriteConcern(w=collection.write_concern.document.get("w") or 1),
            read_concern=ReadConcern("local"),
            read_preference=ReadPreference.PRIMARY,
        )

    def enter(self, holder: str, *, over: bool) -> str | None:
        if over:
            self._collection.delete_one({"_id": HOLDER})
        while True:  # repeated only if an entry is removed between two commands
            try:
                self._collection.insert_one({"_id": HOLDER, "holder": holder})
            except errors.DuplicateKeyError:
                other = self._collection.find_one({"_id": HOLDER})
            else:
                return None
            if other is not None:
                return None if other["holder"] == holder else str(other["holder"])

    def leave(self, holder: str) -> str | None:
        self._collection.delete_one({"_id": HOLDER, "holder": holder})
        other = self._collection.find_one({"_id": HOLDER})
        return None if other is None else str(other["holder"])


class MongoConnection:
    """One session's access to the collection; the library connects and reconnects."""

    def __init__(self, store: Mongo) -> None:
        self._store = store
        self._collection: Collection[dict[str, Any]] | None = store.acquire()
        self._ttl_s = store.params.ttl_s
        self._backoff = Backoff()

    def wait_until_due(self) -> None:
        self._backoff.wait()

    def write(self, rows: Sequence[Row]) -> str:
        collection = self._opened()
        try:
            made = [document(item, fields, self._ttl_s) for item, fields in rows]
            if len(made) == 1:
                collection.replace_one({"_id": made[0]["_id"]}, made[0], upsert=True)
            else:
                replacements = [ReplaceOne({"_id": one["_id"]}, one, upsert=True) for one in made]
                collection.bulk_write(replacements, ordered=False)
        except errors.PyMongoError as error:
            return self._failed(error)
        self._backoff.succeeded()
        return OK

    def read(self, items: Sequence[int]) -> tuple[str, list[Fields | None]]:
        collection = self._opened()
        try:
            if len(items) == 1:
                one = collection.find_one({"_id": items[0]})
                result = {} if one is None else {items[0]: one}
            else:
                result = {each["_id"]: each for each in collection.find({"_id": {"$in": list(items)}})}
        except errors.PyMongoError as error:
            return self._failed(error), []
        self._backoff.succeeded()
        return OK, [_fields(result.get(item)) for item in items]

    def close(self) -> None:
        if self._collection is not None:
            self._collection = None
            self._store.release_client()

    def _opened(self) -> Collection[dict[str, Any]]:
        if self._collection is None:
            self._collection = self._store.acquire()
        return self._collection

    def _failed(self, error: errors.PyMongoError) -> str:
        outcome = outcome_of(error)
        if outcome in {"unreachable", "connection_lost"}:
            self._backoff.failed()
        return outcome


def document(item: int, fields: Fields, ttl_s: float | None) -> dict[str, Any]:
    """Return a record as a MongoDB document."""
    made: dict[str, Any] = {"_id": item}
    for number, value in enumerate(fields):
        made[f"field{number}"] = value
    if ttl_s is not None:
        made["expires"] = datetime.now(UTC) + timedelta(seconds=ttl_s)
    return made


def _ours(collection: Collection[dict[str, Any]]) -> bool:
    """Return whether the collection has the mark."""
    return collection.find_one({"_id": MARK, "text": MARKER}) is not None


def _fields(value: Mapping[str, Any] | None) -> Fields | None:
    if value is None:
        return None
    count = sum(name.startswith("field") for name in value)
    return [bytes(value[f"field{number}"]) for number in range(count)]


def _journals(client: MongoClient[dict[str, Any]]) -> bool | None:
    """Return whether the server keeps a journal; None if it does not report it (perhaps no right to)."""
    try:
        engine = client.admin.command("serverStatus").get("storageEngine")
    except errors.OperationFailure:
        return None
    if engine is None:
        return None
    return bool(engine.get("persistent", engine.get("name") == "wiredTiger"))


def _members(client: MongoClient[dict[str, Any]]) -> int | None:
    """Return the members of the replica set; None without one, or if a router hides them."""
    result = client.topology_description
    if "ReplicaSet" not in result.topology_type_name:
        return None
    return len(result.server_descriptions())

"""A hold in MongoDB: a document beside those of the records, with the time at which it ends."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from pymongo import ReadPreference
from pymongo.collection import Collection
from pymongo.errors import DuplicateKeyError
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern

from .hold import Other

HOLDER = "holder"
"""The ``_id`` of the document; those of records are numbers."""


class MongoLease:
    """A ``Lease``; see there. The server's clock is what counts, as its own deletion comes once a minute.

    Args:
        acquire: gives the collection, and keeps its client.
        release: gives the client back.
    """

    def __init__(
        self, acquire: Callable[[], Collection[dict[str, Any]]], release: Callable[[], None]
    ) -> None:
        self._acquire = acquire
        self._release = release
        self._collection: Collection[dict[str, Any]] | None = None

    def take(self, holder: str, for_s: int) -> Other | None:
        """See ``Lease``."""
        collection = self._opened()
        now: datetime = collection.database.client.admin.command("isMaster")["localTime"]
        entry = {"_id": HOLDER, "holder": holder, "until": now + timedelta(seconds=for_s)}
        may = {"_id": HOLDER, "$or": [{"holder": holder}, {"until": {"$lte": now}}]}
        while True:  # more than once only where an entry is struck out between two commands
            try:
                collection.replace_one(may, entry, upsert=True)
            except DuplicateKeyError:  # one is there that we may not replace
                other = collection.find_one({"_id": HOLDER})
            else:
                return None
            if other is not None:
                return Other(other["holder"], (other["until"] - now).total_seconds())

    def leave(self, holder: str) -> None:
        """See ``Lease``."""
        self._opened().delete_one({"_id": HOLDER, "holder": holder})

    def close(self) -> None:
        """See ``Lease``."""
        if self._collection is not None:
            self._collection = None
            self._release()

    def _opened(self) -> Collection[dict[str, Any]]:
        if self._collection is None:
            found = self._acquire()
            # Whatever the plan's writes wait for: this one's answer is needed.
            self._collection = found.with_options(
                write_concern=WriteConcern(w=found.write_concern.document.get("w") or 1),
                read_concern=ReadConcern("local"),
                read_preference=ReadPreference.PRIMARY,
            )
        return self._collection

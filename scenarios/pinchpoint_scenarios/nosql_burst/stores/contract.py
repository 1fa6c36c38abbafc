"""Contract of a store. A module in this folder has ``open_store(endpoint, name, params)``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from ...addresses import place
from ...contract import Endpoint
from ...errors import ScenarioError
from ..params import NosqlBurstParams
from ..records import Fields, Row

MARKER = "pinchpoint.owned/1: made by a load test, which may delete all that lies beside this"
"""Mark of objects in a store that Pinchpoint created."""


def refuse_partitions(endpoint: Endpoint, params: NosqlBurstParams) -> None:
    """Raises ``ScenarioError`` if wide partitions are requested in a store without partitions."""
    if params.partition_width > 1:
        raise ScenarioError(
            f"{place(endpoint)}: partition_width is {params.partition_width}, but this store has no "
            "partitions; leave it out, or use cassandra:// or scylla://"
        )


class StoreConnection(Protocol):
    """One session's connection to a store."""

    def write(self, rows: Sequence[Row]) -> str:
        """Write whole records at once. Return ``ok`` if all are acknowledged, else the name of the failure.

        After a failure any of the records may have been written.
        """
        ...

    def read(self, items: Sequence[int]) -> tuple[str, list[Fields | None]]:
        """Read records. Return ``ok`` and the fields of each (None: missing), or the name of the failure."""
        ...

    def wait_until_due(self) -> None:
        """Wait for the end of the pause after a failed attempt to connect. Call it before taking the time."""
        ...

    def close(self) -> None:
        """Close the connection. A second call does nothing."""
        ...


class Store(Protocol):
    """The store of one endpoint, and the data of one scenario in it.

    Attributes:
        what: description of the data: ``the keys that start with 'pinchpoint:burst:'``.
    """

    what: str

    def check(self) -> Mapping[str, Any]:
        """Connect without changing anything. Returns facts for the manifest.

        The facts are ``server``, ``version``, ``settings`` and ``warnings``. A warning is a sentence about
        something that makes an acknowledged write less than durable.

        Raises:
            EndpointUnreachable: the store does not answer, or refuses the login.
            ScenarioError: the store lacks something that the parameters need.
        """
        ...

    def claim(self, progress: Callable[[str], None], *, take_over: bool = False) -> None:
        """Delete the scenario's data, mark them, and keep other runs out until ``remove`` or ``release``.

        Raises ``ScenarioError`` if the data lack the mark, or if another run uses them. ``take_over`` means
        that the other run has ended without releasing them.
        """
        ...

    def load(self, rows: Iterable[Row], progress: Callable[[int], None]) -> None:
        """Write many records as fast as the store accepts them. Progress is reported."""
        ...

    def connect(self, session: int) -> StoreConnection:
        """Return a session's connection. Never fails: the first operation reports an unreachable store."""
        ...

    def remove(self) -> None:
        """Delete the data created since ``claim``, and let other runs in. Without the mark nothing is done.

        Raises ``ScenarioError`` if another run has entered although this one had reserved the data.
        """
        ...

    def release(self) -> None:
        """Let other runs in, which may delete the data. Raises like ``remove``.

        A second call does nothing.
        """
        ...

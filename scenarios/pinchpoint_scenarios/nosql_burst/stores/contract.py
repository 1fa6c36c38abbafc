"""The contract of a store. A module of this folder has ``open_store(endpoint, name, params)``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from ...addresses import place
from ...contract import Endpoint
from ...errors import ScenarioError
from ..params import NosqlBurstParams
from ..records import Fields, Row

MARKER = "pinchpoint.owned/1: made by a load test, which may delete all that lies beside this"
"""The mark of objects in a store that are ours."""


def refuse_partitions(endpoint: Endpoint, params: NosqlBurstParams) -> None:
    """Raise ``ScenarioError`` if wide partitions are requested in a store without partitions."""
    if params.partition_width > 1:
        raise ScenarioError(
            f"{place(endpoint)}: partition_width is {params.partition_width}, but this store has no "
            "partitions; leave it out, or use cassandra:// or scylla://"
        )


class StoreConnection(Protocol):
    """One session's connection to a store."""

    def write(self, rows: Sequence[Row]) -> str:
        """Write whole records at once; ``ok`` when all are acknowledged, else the failure's name.

        After a failure any of them may have been written.
        """
        ...

    def read(self, items: Sequence[int]) -> tuple[str, list[Fields | None]]:
        """Read records: ``ok`` and each one's fields (None: missing), or the failure's name and nothing."""
        ...

    def wait_until_due(self) -> None:
        """Wait out the pause after a failed attempt to connect: to be called before the clock is taken."""
        ...

    def close(self) -> None:
        """Close the connection. Safe to call twice."""
        ...


class Store(Protocol):
    """One endpoint's store, and one scenario's data in it.

    Attributes:
        what: the data, in words: ``the keys that start with 'pinchpoint:burst:'``.
    """

    what: str

    def check(self) -> Mapping[str, Any]:
        """Connect without changing anything; return facts for the manifest.

        The facts are ``server``, ``version``, ``settings``, and ``warnings``: a sentence for everything that
        makes an acknowledged write less than durable.

        Raises:
            EndpointUnreachable: the store does not answer, or refuses the login.
            ScenarioError: the store lacks something that the parameters need.
        """
        ...

    def claim(self, progress: Callable[[str], None], *, take_over: bool = False) -> None:
        """Empty our data, mark them, and keep other runs out until ``remove`` or ``release``.

        Raises ``ScenarioError`` if the data are not ours, or another run is using them; with ``take_over``
        that run has ended without releasing.
        """
        ...

    def load(self, rows: Iterable[Row], progress: Callable[[int], None]) -> None:
        """Write many records as fast as the store accepts them; reports progress."""
        ...

    def connect(self, session: int) -> StoreConnection:
        """A session's connection. Never fails: an unreachable store is the first operation's outcome."""
        ...

    def remove(self) -> None:
        """Delete our data created since ``claim``, and let other runs in; nothing without the mark.

        Raises ``ScenarioError`` if another run has entered although this one had the claim.
        """
        ...

    def release(self) -> None:
        """Let other runs in, which may delete our data; raises like ``remove``. Safe to call twice."""
        ...

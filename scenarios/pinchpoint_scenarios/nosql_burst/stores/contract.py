"""The contract of a store. A file of this folder offers ``open_store(endpoint, name, params)``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from ...addresses import place
from ...contract import Endpoint
from ...errors import ScenarioError
from ..params import NosqlBurstParams
from ..records import Fields, Row

MARKER = "pinchpoint.owned/1: made by a load test, which may delete all that lies beside this"
"""What says that something in a store is ours."""


def refuse_partitions(endpoint: Endpoint, params: NosqlBurstParams) -> None:
    """Raise ``ScenarioError`` where a store without partitions is asked for wide ones."""
    if params.partition_width > 1:
        raise ScenarioError(
            f"{place(endpoint)}: partition_width is {params.partition_width}, but this store has no "
            "partitions; leave it out, or use cassandra:// or scylla://"
        )


class StoreConnection(Protocol):
    """One session's connection to a store."""

    def write(self, rows: Sequence[Row]) -> str:
        """Write records, whole, in one go; ``ok`` when all are acknowledged, else the failure's name.

        After a failure any of them may have been written.
        """
        ...

    def read(self, items: Sequence[int]) -> tuple[str, list[Fields | None]]:
        """Read records: ``ok`` and each one's fields (None: not there), or the failure's name and nothing."""
        ...

    def wait_until_due(self) -> None:
        """Wait out the pause after a failed attempt to connect: to be called before the clock is taken."""
        ...

    def close(self) -> None:
        """Close it. Safe to call twice."""
        ...


class Store(Protocol):
    """One endpoint's store, and in it what one scenario writes.

    Attributes:
        what: what that is, in words: ``the keys that start with 'pinchpoint:burst:'``.
    """

    what: str

    def check(self) -> Mapping[str, Any]:
        """Reach it without changing anything; facts for the manifest.

        They are ``server``, ``version``, ``settings``, and ``warnings``: a sentence for whatever makes an
        acknowledged write less than durable.

        Raises:
            EndpointUnreachable: it does not answer, or refuses us.
            ScenarioError: the parameters ask for what it has not.
        """
        ...

    def claim(self, progress: Callable[[str], None], *, take_over: bool = False) -> None:
        """Empty what is ours, mark it, and keep other runs out of it until ``remove`` or ``release``.

        Raises ``ScenarioError`` where it is somebody else's, or another run is using it; with ``take_over``
        that one has ended without saying so, and no longer does.
        """
        ...

    def load(self, rows: Iterable[Row], progress: Callable[[int], None]) -> None:
        """Write many records as fast as the store takes them; reports how many now and then."""
        ...

    def connect(self, session: int) -> StoreConnection:
        """A session's connection. Never fails: a store that is away is the outcome of the first operation."""
        ...

    def remove(self) -> None:
        """Delete what is ours since ``claim``, and let other runs in; nothing where the mark is missing.

        Raises ``ScenarioError`` where another run has got in although this one had claimed it.
        """
        ...

    def release(self) -> None:
        """Let other runs in, which may delete what is ours; raises as ``remove`` does. Safe to call twice."""
        ...

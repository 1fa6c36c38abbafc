"""The server that sql-mix drives, whatever kind it is and whatever library reaches it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from ..contract import Context, Endpoint
from ..databases.contract import SqlConnection
from ..databases.odbc.address import is_odbc
from ..databases.odbc.drivers import no_manager
from ..errors import ScenarioError
from .dialects.contract import Saying
from .operations import OPERATIONS, State
from .params import SqlMixParams

ALL_TABLES = tuple(sorted({operation.table for operation in OPERATIONS.values() if operation.table}))
"""Every table an operation may need."""


class MixServer(Protocol):
    """One run's schema on its server."""

    @property
    def sayings(self) -> Mapping[str, Saying[Any]]:
        """Operation -> how it is done there, for the connections of ``connection``."""
        ...

    def check(self) -> Mapping[str, Any]:
        """Version, settings, warnings; raises where the schema could not be made. Changes nothing."""
        ...

    @property
    def place(self) -> str:
        """Where it is, without secrets."""
        ...

    def data_rows(self) -> int | None:
        """Rows of the data table that ``prepare`` would make: asks the server for its cache, writes nothing.

        None where that is not known before a farm is up.
        """
        ...

    def prepare(self, progress: Callable[[str], None]) -> None:
        """Make the schema and the tables that the chosen operations need."""
        ...

    def connection(self, state: State) -> SqlConnection:
        """A session's connection, not opened yet; once open, ``state`` knows the pages of the data table."""
        ...

    def finish(self, *, keep_data: bool) -> None:
        """Drop the schema unless it is to be kept; another run may use it from now on."""
        ...


class Schema(Protocol):
    """The schema that a run holds, whatever library reaches it."""

    def drop(self) -> None:
        """Drop our tables and the schema."""
        ...

    def release(self) -> None:
        """Let other runs in."""
        ...


def finish(schema: Schema, *, keep_data: bool) -> None:
    """Drop a schema unless it is to be kept; another run may use it from now on."""
    try:
        if not keep_data:
            schema.drop()
    finally:
        schema.release()


def server_of(context: Context, params: SqlMixParams) -> MixServer:
    """The server of the endpoint ``sql``.

    Where what reaches it is not installed on this machine, whoever uses it is told.

    Raises:
        ScenarioError: the URL or a parameter does not fit it.
    """
    endpoint = context.endpoints["sql"]
    if not is_odbc(endpoint.url):
        from .native import NativeServer  # noqa: PLC0415 - as below: each library only where it is used

        return NativeServer(endpoint, context.name, params)
    return _by_odbc(endpoint, context.name, params)


def _by_odbc(endpoint: Endpoint, name: str, params: SqlMixParams) -> MixServer:
    try:
        from .odbc import OdbcServer  # noqa: PLC0415 - pyodbc needs the system's libodbc, and who has none no ODBC
    except ImportError as error:
        return _Missing(no_manager(endpoint, error))
    return OdbcServer(endpoint, name, params)


class _Missing:
    """A ``MixServer`` that this machine has no library for: it says so when it is used."""

    def __init__(self, why: ScenarioError) -> None:
        self._why = why

    @property
    def sayings(self) -> Mapping[str, Saying[Any]]:
        raise self._why

    def check(self) -> Mapping[str, Any]:
        raise self._why

    @property
    def place(self) -> str:
        raise self._why

    def data_rows(self) -> int | None:
        raise self._why

    def prepare(self, progress: Callable[[str], None]) -> None:  # noqa: ARG002 - the contract's
        raise self._why

    def connection(self, state: State) -> SqlConnection:  # noqa: ARG002 - the contract's
        raise self._why

    def finish(self, *, keep_data: bool) -> None:
        """Nothing was made."""


def enough_to_scan(name: str, params: SqlMixParams, rows: int) -> None:
    """Raise ``ScenarioError`` where a ``range_scan`` could never find its rows."""
    if "range_scan" in params.weights and params.scan_rows > rows:
        raise ScenarioError(
            f"scenario {name!r}: scan_rows is {params.scan_rows}, and the data table "
            f"at scale {params.scale:g} has {rows} rows; choose fewer scan_rows or a larger scale"
        )


def tables_needed(params: SqlMixParams) -> frozenset[str]:
    """The tables of the chosen operations."""
    return frozenset(table for name in params.weights if (table := OPERATIONS[name].table))

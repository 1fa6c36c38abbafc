"""sql-mix: log-bound and data-bound writes in a chosen proportion, with reads, bulk loads, spills, locks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, ClassVar, cast

from ..contract import Context, Params
from ..databases.odbc.address import is_odbc
from .operations import State
from .params import SqlMixParams
from .server import server_of
from .session import SqlMixSession

__all__ = ["SqlMix", "SqlMixParams"]


class SqlMix:
    """Drives the SQL tier with a mix of transactions."""

    use: ClassVar[str] = "sql-mix"
    needs: ClassVar[frozenset[str]] = frozenset({"sql"})
    writes: ClassVar[bool] = True
    ends: ClassVar[bool] = False
    params_model: ClassVar[type[Params]] = SqlMixParams

    def __init__(self, context: Context) -> None:
        self._context = context
        self._params = cast("SqlMixParams", context.params)
        self._blocks = is_odbc(context.endpoints["sql"].url)
        self._server = server_of(context, self._params)

    @property
    def blocks(self) -> bool:
        """Whether sessions wait inside C code: ODBC's do (``contract.Blocking``)."""
        return self._blocks

    def check(self) -> Mapping[str, Any]:
        """Reach the server; the facts are its version and settings."""
        return {"sql": self._server.check()}

    def prepare(self, progress: Callable[[str], None]) -> None:
        """Make the schema and the tables that the chosen operations need."""
        self._server.prepare(progress)

    def session(self, number: int) -> SqlMixSession:
        """Open session ``number``; where the server does not answer now, its first operation says so."""
        params = self._params
        random = Random(f"{self._context.seed}:{number}")  # noqa: S311 - workload, no secret
        state = State(random, number, params)
        connection = self._server.connection(state)
        connection.try_open()
        return SqlMixSession(connection, self._server.sayings, params.weights, state, params.retries)

    def finish(self, *, keep_data: bool) -> None:
        """Drop the schema unless it is to be kept; another run may use it from now on."""
        self._server.finish(keep_data=keep_data)

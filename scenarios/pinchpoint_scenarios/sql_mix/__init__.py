"""sql-mix: log-bound and data-bound writes in a chosen proportion, with reads and a lock to fight for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Annotated, Any, ClassVar, cast

import psycopg
from pydantic import Field, field_validator, model_validator

from ..contract import Context, Params
from ..databases.postgresql import Connection, ReconnectingConnection
from ..databases.schema import OwnedSchema
from ..duration import Seconds
from ..names import unknown
from .dialects import postgresql
from .operations import DATA, OPERATIONS, State
from .presets import DEFAULT, PRESETS
from .session import SqlMixSession

_ALL_TABLES = tuple(sorted({operation.table for operation in OPERATIONS.values()}))


class SqlMixParams(Params):
    """``params`` of sql-mix.

    Attributes:
        preset: a name of ``presets.PRESETS``; without it and ``operations``: ``balanced``.
        operations: operation name -> weight, in place of a preset.
        scale: the data table's size, in multiples of what suits the server's cache.
        timeout_s: after so long the server gives an operation up (outcome ``statement_timeout``).
        hot_rows: among how many rows ``hot_row_update`` chooses.
        hold_s: how long it keeps its row locked (``hold`` in a plan).
    """

    preset: str | None = None
    operations: Mapping[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] | None = None
    scale: Annotated[float, Field(gt=0, le=100)] = 1.0
    timeout_s: Seconds = 30.0
    hot_rows: Annotated[int, Field(ge=1, le=10_000)] = 1
    hold_s: Annotated[Seconds, Field(alias="hold")] = 0.01

    @field_validator("preset")
    @classmethod
    def _known_preset(cls, preset: str | None) -> str | None:
        if preset is not None and preset not in PRESETS:
            raise ValueError(unknown("preset", preset, PRESETS))
        return preset

    @field_validator("operations", mode="before")
    @classmethod
    def _known_operations(cls, operations: Any) -> Any:
        if isinstance(operations, Mapping):
            if not operations:
                raise ValueError(f"no operation is named; allowed: {', '.join(sorted(OPERATIONS))}")
            for name in operations:
                if name not in OPERATIONS:
                    raise ValueError(unknown("operation", str(name), OPERATIONS))
        return operations

    @model_validator(mode="after")
    def _one_of_both(self) -> SqlMixParams:
        if self.preset is not None and self.operations is not None:
            raise ValueError("both preset and operations are given; allowed is one of them: remove the other")
        return self

    @model_validator(mode="after")
    def _held_within_the_timeout(self) -> SqlMixParams:
        if "hot_row_update" in self.weights and self.hold_s >= self.timeout_s:
            raise ValueError(
                f"hold is {self.hold_s:g} s and timeout_s {self.timeout_s:g} s, so that no hot_row_update "
                "could succeed; allowed: a hold shorter than timeout_s"
            )
        return self

    @property
    def weights(self) -> Mapping[str, float]:
        """Operation name -> weight, from wherever it was given."""
        return self.operations or PRESETS[self.preset or DEFAULT]


class SqlMix:
    """Drives the SQL tier with a mix of one-statement transactions."""

    use: ClassVar[str] = "sql-mix"
    needs: ClassVar[frozenset[str]] = frozenset({"sql"})
    writes: ClassVar[bool] = True
    ends: ClassVar[bool] = False
    params_model: ClassVar[type[Params]] = SqlMixParams

    def __init__(self, context: Context) -> None:
        self._context = context
        self._params = cast("SqlMixParams", context.params)
        self._endpoint = context.endpoints["sql"]
        self._schema = OwnedSchema(self._endpoint, context.name, _ALL_TABLES)
        self._tables = frozenset(OPERATIONS[name].table for name in self._params.weights)

    def check(self) -> Mapping[str, Any]:
        """Reach the server; the facts are its version and settings."""
        return {"sql": self._schema.check()}

    def prepare(self, progress: Callable[[str], None]) -> None:
        """Make the schema and the tables that the chosen operations need."""
        connection = self._schema.hold()
        try:
            rows = postgresql.data_rows(connection, self._params.scale)
            postgresql.make_tables(connection, self._tables, rows, self._params.hot_rows, progress)
        except psycopg.Error as error:
            raise self._schema.failed(error) from error

    def session(self, number: int) -> SqlMixSession:
        """Open session ``number``; where the server does not answer now, its first operation says so."""
        state = State(
            Random(f"{self._context.seed}:{number}"),  # noqa: S311 - workload, no secret
            number,
            hot_rows=self._params.hot_rows,
            hold_s=self._params.hold_s,
        )

        def greet(connection: Connection) -> None:
            self._schema.enter(connection)
            if DATA in self._tables and not state.rows:
                state.rows = postgresql.count_rows(connection)

        connection = ReconnectingConnection(
            self._endpoint,
            application=self._schema.name,
            statement_timeout_s=self._params.timeout_s,
            greet=greet,
        )
        connection.try_open()
        return SqlMixSession(connection, self._params.weights, state)

    def finish(self, *, keep_data: bool) -> None:
        """Drop the schema unless it is to be kept; another run may use it from now on."""
        try:
            if not keep_data:
                self._schema.drop()
        finally:
            self._schema.release()

"""PostgreSQL through psycopg's own cursors, the reference for the fast path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, LiteralString

import psycopg

from pinchpoint_scenarios.databases.contract import Result
from pinchpoint_scenarios.databases.native import FastConnection


class ReferenceConnection(FastConnection):
    """A session's connection that runs statements with a cursor."""

    def execute(self, statement: LiteralString, parameters: Sequence[Any] = ()) -> Result:
        if self._connection is None:
            self._open()
        assert self._connection is not None
        cursor = psycopg.RawCursor(self._connection)
        try:
            return cursor.execute(statement, parameters, prepare=True)
        except psycopg.Error as error:
            raise self._failure(error) from error

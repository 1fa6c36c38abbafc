"""The sentences for a database that is not to be written to."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import ScenarioError
from ..lexer import ScriptError

_SHOWN = 3


def not_a_copy(place: str, database: str, tables: Sequence[str], mark: str) -> ScenarioError:
    """Nobody has said that a database may be changed.

    Args:
        place: where it is.
        database: its name.
        tables: some that it holds.
        mark: the statement that says it.
    """
    shown = ", ".join(tables[:_SHOWN]) + (", ..." if len(tables) > _SHOWN else "")
    holds = f"holds {shown}" if tables else "is empty"
    return ScenarioError(
        f"{place}: database {database!r} {holds} and is not marked as a copy that a load test may change; "
        f"nothing was started. If it is one, say so: {mark}"
    )


def another_run(place: str, name: str) -> ScenarioError:
    """Somebody else holds the database by this name."""
    return ScenarioError(
        f"{place}: another run of {name!r} is going on in this database; wait until it has ended, or give "
        "the scenario another name in the plan"
    )


def no_values(name: str, column: str | None) -> ScriptError:
    """A column that values are to come from is empty."""
    return ScriptError(f"values.{name}: column {column!r} holds no value; fill the table, or give a range")

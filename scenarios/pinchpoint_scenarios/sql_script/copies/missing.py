"""A database that this machine, or this scenario, cannot reach: it says so when it is used."""

from __future__ import annotations

from typing import Any

from ...databases.contract import TextConnection
from ...errors import ScenarioError
from ..params import ValuesParams
from ..scope import Value


class MissingCopy:
    """A ``Copy`` that is none.

    Args:
        why: the sentence for a person.
    """

    blocks = False

    def __init__(self, why: ScenarioError) -> None:
        self._why = why

    def check(self) -> dict[str, Any]:
        """Raises."""
        raise self._why

    def hold(self) -> None:
        """Raises."""
        raise self._why

    def run_file(self, file: str, text: str, *, mark: bool) -> None:  # noqa: ARG002 - the contract's
        """Raises."""
        raise self._why

    def column(self, name: str, values: ValuesParams) -> list[Value]:  # noqa: ARG002 - the contract's
        """Raises."""
        raise self._why

    def connection(self, timeout_s: float) -> TextConnection:  # noqa: ARG002 - the contract's
        """Raises."""
        raise self._why

    def encoded(self, value: Value) -> Any:  # noqa: ARG002 - the contract's
        """Raises."""
        raise self._why

    def literal(self, value: Value) -> str:  # noqa: ARG002 - the contract's
        """Raises."""
        raise self._why

    def translated(self, statement: str) -> str:  # noqa: ARG002 - the contract's
        """Raises."""
        raise self._why

    def release(self) -> None:
        """Nothing was held."""

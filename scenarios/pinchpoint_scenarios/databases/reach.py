"""Chooses the library for the server of an endpoint, from its URL and the installed drivers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from ..contract import Endpoint
from ..errors import ScenarioError
from .access import Access
from .contract import Link, SqlConnection, TextConnection
from .odbc.address import SCHEMES, is_odbc, no_manager


class MissingAccess(Access):
    """Represents a server that cannot be reached. Each use raises the reason.

    Args:
        why: the reason as a sentence for the user.
    """

    class _NeverError(Exception):
        """An exception that is never raised, so that ``why`` is not caught."""

    error = _NeverError
    installed = False

    def __init__(self, endpoint: Endpoint, name: str, why: ScenarioError) -> None:
        super().__init__(endpoint, name, SCHEMES.get(endpoint.url.partition("://")[0]))
        self._why = why

    def open(self, *, pinned: bool = True) -> Link:  # noqa: ARG002 - the contract's
        """Raise the reason."""
        raise self._why

    def session(self, timeout_s: float, ready: Callable[[Link], None]) -> SqlConnection:  # noqa: ARG002 - the contract's
        """Raise the reason."""
        raise self._why

    def own_session(self, timeout_s: float) -> TextConnection:  # noqa: ARG002 - the contract's
        """Raise the reason."""
        raise self._why

    def refused(self, error: Any) -> NoReturn:  # noqa: ARG002 - the contract's
        """Raise the reason."""
        raise self._why

    def message(self, error: Any) -> str:
        """Return the message of the error."""
        return str(error)

    def state(self, error: Any) -> str:  # noqa: ARG002 - the contract's
        """Return an empty SQLSTATE."""
        return ""


def access_to(endpoint: Endpoint, name: str, *, own_sql: bool = False) -> Access:
    """Return the access to an endpoint's server. If this machine has no library, each use raises the reason.

    ``own_sql`` means that the access is for texts of the user, which may contain several statements.

    Raises ``ScenarioError`` if the URL contains something that is not allowed.
    """
    if not is_odbc(endpoint.url):
        from .native import NativeAccess  # noqa: PLC0415 - as below: each library only where it is used

        return NativeAccess(endpoint, name)
    try:
        from .odbc.access import OdbcAccess  # noqa: PLC0415 - pyodbc needs the system's libodbc, which not all have
    except ImportError as error:
        return MissingAccess(endpoint, name, no_manager(endpoint, error))
    return OdbcAccess(endpoint, name, own_sql=own_sql)

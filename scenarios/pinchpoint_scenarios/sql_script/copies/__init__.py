"""Whose database is it: a user's own statements run in a marked copy only, or where nothing can be lost."""

from __future__ import annotations

from ...addresses import unreachable
from ...contract import Endpoint
from ...databases.odbc.address import SCHEMES, is_odbc
from ...databases.odbc.drivers import no_manager
from .contract import MARKER, Copy
from .missing import MissingCopy

__all__ = ["MARKER", "Copy", "copy_of"]

_NATIVE = ("postgresql", "postgres")


def copy_of(endpoint: Endpoint, name: str, *, empty_will_do: bool) -> Copy:
    """The database of an endpoint; where this machine cannot reach such a one, whoever uses it is told.

    Args:
        endpoint: it.
        name: what the server shows for our connections, and what a run holds.
        empty_will_do: a database without any table but Pinchpoint's own needs no mark.

    Raises:
        ScenarioError: the URL says something that is not allowed.
    """
    if is_odbc(endpoint.url):
        return _by_odbc(endpoint, name, empty_will_do=empty_will_do)
    scheme = endpoint.url.partition("://")[0]
    if scheme not in _NATIVE:
        return MissingCopy(
            unreachable(
                endpoint,
                f"scripts and captures run on no server of {scheme}://",
                f"give a url of postgresql://, {', '.join(f'{each}://' for each in SCHEMES)} in farm.yaml",
            )
        )
    from .native import NativeCopy  # noqa: PLC0415 - as below: each library only where it is used

    return NativeCopy(endpoint, name, empty_will_do=empty_will_do)


def _by_odbc(endpoint: Endpoint, name: str, *, empty_will_do: bool) -> Copy:
    try:
        from .odbc import OdbcCopy  # noqa: PLC0415 - pyodbc needs the system's libodbc, and who has none no ODBC
    except ImportError as error:
        return MissingCopy(no_manager(endpoint, error))
    return OdbcCopy(endpoint, name, empty_will_do=empty_will_do)

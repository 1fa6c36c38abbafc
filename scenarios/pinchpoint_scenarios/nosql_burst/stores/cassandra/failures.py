"""What can go wrong with a cluster, whoever says so, and what it is called."""

from __future__ import annotations

import cassandra
from cassandra import OperationTimedOut, connection
from cassandra import protocol as messages
from cassandra.cluster import NoHostAvailable

from ....fastpath.cql import CqlError, CqlTimeoutError

_BY_CLASS: tuple[tuple[type[BaseException], str], ...] = (
    (cassandra.WriteTimeout, "write_timeout"),
    (cassandra.ReadTimeout, "read_timeout"),
    (cassandra.WriteFailure, "write_failure"),
    (cassandra.ReadFailure, "read_failure"),
    (cassandra.Unavailable, "unavailable"),
    (cassandra.AuthenticationFailed, "authentication"),
    (messages.BadCredentials, "authentication"),
    (cassandra.Unauthorized, "permission"),
    (messages.OverloadedErrorMessage, "overloaded"),
    (messages.IsBootstrappingErrorMessage, "loading"),
    (messages.ServerError, "server_error"),
    (cassandra.InvalidRequest, "invalid"),
    (messages.SyntaxException, "invalid"),
    (OperationTimedOut, "timeout"),
    (CqlTimeoutError, "timeout"),
    (CqlError, "connection_lost"),
    (connection.ConnectionException, "connection_lost"),
    (OSError, "connection_lost"),
)
FAILURES = (
    *(cassandra.DriverException, messages.ErrorMessage, NoHostAvailable, CqlError),
    *(cassandra.RequestExecutionException, connection.ConnectionException, OSError),
)
"""All there is; anything else is an error of ours."""


def outcome_of(error: BaseException) -> str:
    """The name of a failure; ``error_<class>`` where it has none here."""
    if isinstance(error, messages.ErrorMessage):
        error = error.to_exception()
    if isinstance(error, NoHostAvailable):
        causes = [one for one in error.errors.values() if isinstance(one, BaseException)]
        named = [name for one in causes if (name := outcome_of(one)) not in {"connection_lost", "timeout"}]
        return named[0] if named else "connection_lost"
    for kind, outcome in _BY_CLASS:
        if isinstance(error, kind):
            return outcome
    return f"error_{type(error).__name__.lower()}"


def outcome_of_connecting(error: BaseException) -> str:
    """The same where it was a connection that could not be opened."""
    outcome = outcome_of(error)
    return "unreachable" if outcome in {"connection_lost", "timeout"} else outcome

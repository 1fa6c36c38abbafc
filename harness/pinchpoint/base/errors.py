"""Defines the exit statuses of all commands, and the errors that lead to them.

A message names the input, the place and the remedy; it never shows a secret. Causes are chained
(``raise ... from error``), and the command line prints the message alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum


class ExitStatus(IntEnum):
    """Exit status of a command (docs/container-and-ci.md)."""

    FINE = 0
    OBJECTIVES_MISSED = 1
    BAD_INPUT = 2
    NOT_EVIDENCE = 3
    GUARD = 4
    ENVIRONMENT = 5
    INTERNAL = 70
    INTERRUPTED = 130


_GRAVEST_FIRST = (
    ExitStatus.INTERNAL,
    ExitStatus.BAD_INPUT,
    ExitStatus.INTERRUPTED,
    ExitStatus.GUARD,
    ExitStatus.NOT_EVIDENCE,
    ExitStatus.ENVIRONMENT,
    ExitStatus.OBJECTIVES_MISSED,
    ExitStatus.FINE,
)


def gravest(statuses: Iterable[ExitStatus]) -> ExitStatus:
    """Return the exit status if several apply: the first of 130, 4, 3, 5, 1 that is among them.

    Bad input and internal errors come before all of these, because no run took place. Without a status the
    result is ``FINE``.
    """
    return min(statuses, key=_GRAVEST_FIRST.index, default=ExitStatus.FINE)


class PinchpointError(Exception):
    """An error for the user. Its text is the whole message, and ``exit_status`` is the status of the command.

    Args:
        message: one or more sentences: what was tried, what was found, and the remedy.
    """

    exit_status = ExitStatus.INTERNAL

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return self.message


class InputError(PinchpointError):
    """The user's files or arguments are wrong, and nothing was started.

    Args:
        problems: one sentence per problem; all are printed, one per line.
    """

    exit_status = ExitStatus.BAD_INPUT

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class NotEvidenceError(PinchpointError):
    """The run is not valid evidence, because its load generators or its recorder failed."""

    exit_status = ExitStatus.NOT_EVIDENCE


class GuardError(PinchpointError):
    """A guard stopped the command, because it could have harmed data that do not belong to Pinchpoint."""

    exit_status = ExitStatus.GUARD


class FarmUnavailable(PinchpointError):  # noqa: N818 - a state of the farm, named as such
    """The environment failed: an endpoint, a permission, a port or space is missing."""

    exit_status = ExitStatus.ENVIRONMENT

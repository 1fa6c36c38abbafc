"""Explains why a server refused a connection, from its own message."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

CONNECT_TIMEOUT_S = 5


@dataclass(frozen=True, slots=True)
class Refusal:
    """One reason, for which most client libraries give no code, only a text.

    Attributes:
        pattern: what the text says.
        outcome: the name of the failure, where a session meets it.
        cause: it, in words for a person.
        remedy: what helps.
    """

    pattern: re.Pattern[str]
    outcome: str
    cause: str
    remedy: str


def refusal(pattern: str, outcome: str, cause: str, remedy: str) -> Refusal:
    """A reason that is recognised by a pattern, whatever the case of its letters."""
    return Refusal(re.compile(pattern, re.IGNORECASE), outcome, cause, remedy)


def found_in(refusals: Iterable[Refusal], text: str) -> Refusal | None:
    """The first reason that the text gives; None: none that is known."""
    return next((each for each in refusals if each.pattern.search(text)), None)

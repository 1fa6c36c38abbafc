"""Stores the variables of a script's session, and its repeatable random numbers."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from random import Random


class Chance:
    """Random numbers of a session. Those of the current operation are stored.

    Args:
        random: generator of the session, seeded from the seed of the plan and the number of the session.
    """

    def __init__(self, random: Random) -> None:
        self._draw = random.random
        self._drawn: list[float] = []
        self._at = 0

    def random(self) -> float:
        """Return a number from 0 up to, but not including, 1."""
        at = self._at
        self._at = at + 1
        if at < len(self._drawn):
            return self._drawn[at]
        number = self._draw()
        self._drawn.append(number)
        return number

    def begin(self) -> None:
        """Begin a new operation. Earlier numbers are forgotten."""
        self._drawn.clear()
        self._at = 0

    def again(self) -> None:
        """Begin the same operation again, with the same numbers."""
        self._at = 0


SMALLEST, LARGEST = -(2**63), 2**63 - 1

_INT = re.compile(r"\s*[+-]?\d+")
_TRUE = ("true", "yes", "on")
_FALSE = ("false", "no", "off")


class GeneratedText(str):
    """Text from a generator of values. In SQL it is a literal with quotes.

    Other texts (from a query or ``define``) are inserted into SQL unchanged, as in pgbench.
    """

    __slots__ = ()


Value = int | float | bool | str | None
"""Value of a variable: a bigint, double precision, boolean, unparsed text, or null."""


class EvaluationError(Exception):
    """An expression has no value: the message says why."""


@dataclass(slots=True)
class ScriptScope:
    """The variables and random numbers of a session's scripts.

    Attributes:
        chance: random numbers.
        variables: name -> value. They are kept from one script to the next, as in pgbench.
    """

    chance: Chance
    variables: dict[str, Value] = field(default_factory=dict)

    def value(self, name: str) -> Value:
        """Return the value of a variable in an expression.

        Text with a number or a truth value is converted.
        """
        try:
            result = self.variables[name]
        except KeyError:
            raise EvaluationError(f"the variable :{name} has no value yet; set it before") from None
        return typed(name, result) if isinstance(result, str) else result


def typed(name: str, text: str) -> Value:
    """Return the meaning of a variable's text in an expression, by pgbench's rules."""
    if text.lower() == "null":
        return None
    if _INT.fullmatch(text):
        return checked(int(text))
    if text and text.isalpha():
        for words, value in ((_TRUE, True), (_FALSE, False)):
            if any(word.startswith(text.lower()) for word in words) and text.lower() != "o":
                return value
    try:
        return float(text)
    except ValueError:
        raise EvaluationError(
            f"the variable :{name} holds a text that is neither a number nor a truth value"
        ) from None


def checked(number: int) -> int:
    """Return the number if a bigint can hold it."""
    if SMALLEST <= number <= LARGEST:
        return number
    raise EvaluationError("a whole number beyond 64 bits")


def as_int(value: Value) -> int:
    """Return a number rounded to the nearest whole number, ties to even."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise EvaluationError(f"{spelt(value)} stands where a number is needed")
    if isinstance(value, float) and not math.isfinite(value):
        raise EvaluationError(f"{spelt(value)} is no whole number")
    return checked(round(value))


def as_float(value: Value) -> float:
    """Return a number as a double."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise EvaluationError(f"{spelt(value)} stands where a number is needed")
    return float(value)


def as_bool(value: Value) -> bool:
    """Return a truth value."""
    if isinstance(value, bool):
        return value
    raise EvaluationError(f"{spelt(value)} stands where a truth value is needed")


def is_true(value: Value) -> bool:
    """Return whether a condition is true: a truth value, or a number other than 0. Null is not true."""
    return value is not None and value != 0


def spelt(value: Value) -> str:
    """Return the value in pgbench's form: fifteen digits of a double, true and false."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case float():
            return format(value, ".15g")
        case _:
            return str(value)


def literal(value: Value) -> str:
    """Return the value as text within a statement."""
    if isinstance(value, GeneratedText):
        return "'" + value.replace("'", "''") + "'"
    return spelt(value)


def parameter(value: Value) -> bytes | None:
    """Return the value as a text parameter of a prepared statement."""
    return None if value is None else spelt(value).encode()

"""Values for a script's variables: ranges of numbers, values listed in a column or a CSV file."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, count
from pathlib import Path

from pinchpoint_collectors.common.names import unknown

from .functions import normal, zipfian
from .lexer import ScriptError
from .params import ValuesParams
from .scope import Scope, Text, Value

Draw = Callable[[Scope], Value]
"""Draws a variable's next value."""

_SCATTER = 2_654_435_761
"""A prime above any number of values: multiplying by it, modulo their number, visits each once."""
_WORKERS = 1_000
"""Above any worker's number: of a sequence, each worker has every so many-th."""
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?")


def counter(worker: int) -> Iterator[int]:
    """What a sequence counts with in a worker's process, from its number on: no other worker has any of it.

    All sessions of the process share it: one that is opened again, as users move between workers, goes on.
    """
    return count(worker, _WORKERS)


def drawer(values: ValuesParams, listed: Sequence[Value], session: int, numbers: Iterator[int]) -> Draw:
    """How a variable's values are drawn in one session.

    Args:
        values: what the plan says.
        listed: the values of its column or file; nothing where it is a range of numbers.
        session: the session's number.
        numbers: what the variable counts with, where it is a sequence of numbers (``counter``).
    """
    if values.distribution == "normal":
        return _normal(values)
    if values.distribution == "sequence":
        return _sequence(values, listed, session, numbers)
    low = 0 if listed else values.low or 0
    several = len(listed) or (values.high or 0) - low + 1
    exponent = values.exponent

    def scattered(scope: Scope) -> int:  # hot values lie apart: neighbours would be read in one go
        return zipfian(scope, several, exponent) * _SCATTER % several

    def even(scope: Scope) -> int:
        return int(scope.chance.random() * several)

    pick = scattered if values.distribution == "zipfian" else even
    if listed:
        return lambda scope: listed[pick(scope)]
    return lambda scope: low + pick(scope)


def _normal(values: ValuesParams) -> Draw:
    mean, deviation, decimals = values.mean or 0.0, values.deviation or 0.0, values.decimals

    def draw(scope: Scope) -> Value:
        number = mean + deviation * normal(scope)
        return round(number, decimals) if decimals else round(number)

    return draw


def _sequence(values: ValuesParams, listed: Sequence[Value], session: int, numbers: Iterator[int]) -> Draw:
    if listed:
        places = count(session)
        return lambda _: listed[next(places) % len(listed)]
    low = values.low or 0
    return lambda _: low + next(numbers)


def read_csv(path: Path, field: str | None) -> list[Value]:
    """One column of a CSV file with a header. Raises ``ScriptError``."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            first = file.readline()
            rows = csv.reader(chain([first], file), delimiter=delimiter_of(first))
            header = next(rows, [])
            if field is not None and field not in header:
                raise ScriptError(f"{path}:1: {unknown('field', field, header)}")
            at = header.index(field) if field is not None else 0
            found = [row[at] if len(row) > at else "" for row in rows if row]
    except UnicodeDecodeError as error:
        raise ScriptError(f"{path}: not UTF-8 text; save it as UTF-8") from error
    except csv.Error as error:
        raise ScriptError(f"{path}: no CSV file ({error})") from error
    except OSError as error:
        raise ScriptError(f"{path}: cannot be read ({error.strerror}); check the path") from error
    if not found:
        raise ScriptError(f"{path}: no values; needed: a header and at least one row")
    return as_values(found)


def delimiter_of(header: str) -> str:
    """What stands between the columns of a CSV file: as often as in its header nothing else does."""
    return max(",;\t", key=header.count)


def as_values(texts: Sequence[str]) -> list[Value]:
    """Texts as values: bare where all are numbers, else literals; an empty one is null."""
    numbers = all(_NUMBER.fullmatch(text) for text in texts if text)
    return [None if not text else text if numbers else Text(text) for text in texts]

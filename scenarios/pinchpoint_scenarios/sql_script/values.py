"""Draws values for the variables of a script: from ranges of numbers, a column, or a CSV file."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from pinchpoint_collectors.common.names import unknown

from ..contract import Params
from .functions import ZIPFIAN_EXPONENTS, normal, zipfian
from .lexer import ScriptError
from .scope import GeneratedText, ScriptScope, Value

Draw = Callable[[ScriptScope], Value]
"""Draws the next value of a variable."""

_SCATTER = 2_654_435_761
"""A prime above any number of values. Multiplying by it, modulo their number, visits each value once."""
_WORKERS = 1_000
"""Number above that of any worker. Each worker takes every n-th number of a sequence."""


class ValuesParams(Params):
    """Where the values of one variable come from: a range of numbers, a column of the database, a CSV file.

    Attributes:
        distribution: ``uniform``; ``zipfian``: few values most of the time; ``normal``: around a mean;
            ``sequence``: one after the other, each once in the whole run.
        low, high: the range of whole numbers; ``sequence`` begins at ``low``.
        mean, deviation, decimals: of ``normal``; 0 decimals make whole numbers.
        exponent: of ``zipfian``: the k-th value comes in proportion to 1/k^exponent.
        column: ``table.column`` or ``schema.table.column``; nulls are left out.
        sample: this many of the column's values are used at most, evenly taken from all of them in order.
        csv: a file with a header; an empty cell is null.
        field: which of its columns; the first.
    """

    distribution: Literal["uniform", "zipfian", "normal", "sequence"] = "uniform"
    low: int | None = None
    high: int | None = None
    mean: float | None = None
    deviation: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    decimals: Annotated[int, Field(ge=0, le=15)] = 0
    exponent: Annotated[float, Field(ge=ZIPFIAN_EXPONENTS[0], le=ZIPFIAN_EXPONENTS[1])] = 1.1
    column: str | None = None
    sample: Annotated[int, Field(ge=1, le=1_000_000)] = 10_000
    csv: str | None = None
    field: str | None = None

    @model_validator(mode="after")
    def _one_source(self) -> ValuesParams:
        listed = [name for name in ("column", "csv") if getattr(self, name) is not None]
        if len(listed) > 1:
            raise ValueError("both column and csv are given; allowed is one of them")
        numbers = [n for n in ("low", "high", "mean", "deviation") if getattr(self, n) is not None]
        if listed and (numbers or self.distribution == "normal"):
            given = numbers[0] if numbers else "distribution: normal"
            raise ValueError(
                f"{given} is given with {listed[0]}; allowed with it: uniform, zipfian, sequence"
            )
        if not listed:
            self._whole_range(numbers)
        return self

    @field_validator("column")
    @classmethod
    def _names_a_column(cls, column: str | None) -> str | None:
        if column is not None and (column.count(".") not in (1, 2) or not all(column.split("."))):
            raise ValueError(f"{column!r} is no column; allowed: table.column or schema.table.column")
        return column

    def _whole_range(self, given: list[str]) -> None:
        needed = {"normal": {"mean", "deviation"}, "sequence": {"low"}}.get(
            self.distribution, {"low", "high"}
        )
        if set(given) != needed:
            result = " and ".join(given) or "no range"
            raise ValueError(
                f"{self.distribution} is given {result}; needed: "
                f"{' and '.join(sorted(needed, reverse=True))}, or a column, or a csv"
            )
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"low is {self.low} and high {self.high}; allowed: low no more than high")


_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?")


def counter(worker: int) -> Iterator[int]:
    """Return the counter of a sequence in the process of a worker. No other worker has the same numbers.

    All sessions of the process share it. A session that is opened again, as users move between workers,
    continues.
    """
    return count(worker, _WORKERS)


def drawer(values: ValuesParams, listed: Sequence[Value], session: int, numbers: Iterator[int]) -> Draw:
    """Return a function that draws the values of a variable in one session.

    Args:
        values: definition in the plan.
        listed: values of its column or file; empty for a range of numbers.
        session: number of the session.
        numbers: counter of the variable, if it is a sequence of numbers (``counter``).
    """
    if values.distribution == "normal":
        return _normal(values)
    if values.distribution == "sequence":
        return _sequence(values, listed, session, numbers)
    low = 0 if listed else values.low or 0
    several = len(listed) or (values.high or 0) - low + 1
    exponent = values.exponent

    # hot values are scattered, because neighbours would be read in one I/O
    def scattered(scope: ScriptScope) -> int:
        return zipfian(scope, several, exponent) * _SCATTER % several

    def even(scope: ScriptScope) -> int:
        return int(scope.chance.random() * several)

    pick = scattered if values.distribution == "zipfian" else even
    if listed:
        return lambda scope: listed[pick(scope)]
    return lambda scope: low + pick(scope)


def _normal(values: ValuesParams) -> Draw:
    mean, deviation, decimals = values.mean or 0.0, values.deviation or 0.0, values.decimals

    def draw(scope: ScriptScope) -> Value:
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
    """Return one column of a CSV file with a header. Raises ``ScriptError``."""
    try:
        if path.exists() and not path.is_file():
            raise ScriptError(f"{path}: is no plain file; name a CSV file")
        with path.open(newline="", encoding="utf-8-sig") as file:
            first = file.readline()
            rows = csv.reader(chain([first], file), delimiter=delimiter_of(first))
            header = next(rows, [])
            if field is not None and field not in header:
                raise ScriptError(f"{path}:1: {unknown('field', field, header)}")
            at = header.index(field) if field is not None else 0
            result = [row[at] if len(row) > at else "" for row in rows if row]
    except UnicodeDecodeError as error:
        raise ScriptError(f"{path}: not UTF-8 text; save it as UTF-8") from error
    except csv.Error as error:
        raise ScriptError(f"{path}: no CSV file ({error})") from error
    except OSError as error:
        raise ScriptError(f"{path}: cannot be read ({error.strerror}); check the path") from error
    if not result:
        raise ScriptError(f"{path}: no values; needed: a header and at least one row")
    return as_values(result)


def delimiter_of(header: str) -> str:
    """Return the separator of a CSV file: the candidate that is most frequent in its header."""
    return max(",;\t", key=header.count)


def as_values(texts: Sequence[str]) -> list[Value]:
    """Return texts as values: numbers if all are numbers, else literals. An empty text is null."""
    numbers = all(_NUMBER.fullmatch(text) for text in texts if text)
    return [None if not text else text if numbers else GeneratedText(text) for text in texts]

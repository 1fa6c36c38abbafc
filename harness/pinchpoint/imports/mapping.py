"""Reads the YAML file that describes the columns of a CSV file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Self

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from pinchpoint.base.errors import InputError
from pinchpoint.plan.document import read_document
from pinchpoint.plan.explain import explain
from pinchpoint.plan.problems import BadValue, Problem, quoted
from pinchpoint.plan.record import Seconds, StrictRecord
from pinchpoint_collectors.common.names import nearest_name
from pinchpoint_collectors.imports.mapped_csv import METRICS, is_metric
from pinchpoint_collectors.imports.record import CsvMapping, MappedColumn


def _metric(value: object) -> str:
    if isinstance(value, str) and is_metric(value):
        return value
    allowed = f"allowed: {', '.join(sorted(METRICS))}, or a name that begins with db., search. or web."
    near = nearest_name(value, METRICS) if isinstance(value, str) else None
    raise BadValue(f"unknown metric {quoted(str(value))}", allowed, near)


def _number(value: object) -> object:
    """Convert an integer to a float: YAML reads a factor of ``1`` as an integer."""
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


Number = Annotated[float, BeforeValidator(_number)]


class TimeColumn(StrictRecord):
    """The column that contains the time of a row.

    Attributes:
        column: its name.
        format: format of the time as in strptime, or ``unix`` or ``unix_ms``; None: ISO 8601.
    """

    column: str = Field(description="the column with the time")
    format: str | None = None


class HostColumn(StrictRecord):
    """The column that contains the host of a row."""

    column: str = Field(description="the column with the host's name")


class ValueColumn(StrictRecord):
    """The meaning of one column. ``MappedColumn`` describes the fields."""

    metric: Annotated[str, BeforeValidator(_metric)] = Field(description="a metric of Pinchpoint")
    instance: str = ""
    scale: Number = 1.0
    offset: Number = 0.0
    weight: str | None = None
    host: str | None = None


class MappingFile(StrictRecord):
    """The fields of a mapping file.

    Attributes:
        time: the column with the time.
        columns: column name -> metric of the column.
        host: host of all rows, if there is no ``host_column``.
        host_column: the column that contains the host.
        interval_s: interval that a row covers, in seconds; None: the time since the previous row.
        thousands: the thousands separator; None: detected for each number; an ambiguous number is refused.
    """

    time: TimeColumn = Field(description="the column with the time, as {column: NAME}")
    columns: Mapping[str, ValueColumn] = Field(min_length=1, description="column -> what it is")
    host: str | None = None
    host_column: HostColumn | None = None
    interval_s: Seconds | None = Field(default=None, alias="interval", gt=0)
    delimiter: str = Field(default=",", min_length=1, max_length=1)
    decimal: str = Field(default=".", min_length=1, max_length=1)
    thousands: str | None = Field(default=None, min_length=1, max_length=1)

    @model_validator(mode="after")
    def _one_host(self) -> Self:
        if self.host is not None and self.host_column is not None:
            raise BadValue("host and host_column are given together", "allowed: one of them")
        return self

    @model_validator(mode="after")
    def _two_marks(self) -> Self:
        if self.thousands == self.decimal:
            raise BadValue(
                f"thousands and decimal are both {quoted(self.decimal)}",
                'allowed: two marks, such as thousands: "." and decimal: ","',
            )
        return self


def read_mapping(path: Path) -> CsvMapping:
    """Read a mapping file.

    Raises InputError that lists every problem as ``FILE:LINE: field: found; allowed``.
    """
    document = read_document(path)
    problems: list[Problem] = list(document.problems)
    given: MappingFile | None = None
    if document.readable:
        try:
            given = MappingFile.from_file(document.data, document.location.parent)
        except ValidationError as error:
            problems += explain(error, MappingFile, document.data)
    if given is None or problems:
        raise InputError(*(document.sentence(problem) for problem in problems))
    return CsvMapping(
        time=given.time.column,
        time_format=given.time.format,
        columns={
            name: MappedColumn(**column.model_dump(by_alias=False)) for name, column in given.columns.items()
        },
        host=given.host,
        host_column=given.host_column.column if given.host_column else None,
        interval_s=given.interval_s,
        delimiter=given.delimiter,
        decimal=given.decimal,
        thousands=given.thousands,
    )

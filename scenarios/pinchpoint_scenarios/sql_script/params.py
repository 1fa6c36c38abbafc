"""The parameters of sql-script in a plan."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from ..contract import FileParams, Params
from ..duration import Seconds
from .functions import ZIPFIAN_EXPONENTS

_WEIGHTED = re.compile(r"(.+)@(\d+(?:\.\d+)?)")
Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class ValuesParams(Params):
    """Where the values of one variable come from: a range of numbers, a column of the database, a CSV file.

    Attributes:
        distribution: ``uniform``; ``zipfian``: few values most of the time; ``normal``: around a mean;
            ``sequence``: one after the other, each once in the whole run.
        low, high: the range of whole numbers; ``sequence`` begins at ``low``.
        mean, deviation, decimals: of ``normal``; 0 decimals make whole numbers.
        exponent: of ``zipfian``: the k-th value comes in proportion to 1/k^exponent.
        column: ``table.column`` or ``schema.table.column``; nulls are left out.
        sample: so many of the column's values are used at most, evenly taken from all of them in order.
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
            found = " and ".join(given) or "no range"
            raise ValueError(
                f"{self.distribution} is given {found}; needed: "
                f"{' and '.join(sorted(needed, reverse=True))}, or a column, or a csv"
            )
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"low is {self.low} and high {self.high}; allowed: low no more than high")


class SqlScriptParams(FileParams):
    """``params`` of sql-script.

    Attributes:
        scripts: files and folders (every ``*.sql`` in one), from the plan's folder on; ``FILE@WEIGHT`` as
            pgbench's. An operation has the name of its file, without the ending.
        weights: operation -> weight, in place of what ``@`` says; 0 leaves it out. Where nothing is said: 1.
        values: variable -> where its values come from; drawn anew for each operation that uses it.
        define: variable -> value, as pgbench's ``--define``.
        scale: the variable ``:scale``, as pgbench's ``--scale``.
        protocol: how statements travel, as pgbench's ``--protocol``: ``simple`` puts values into their text,
            ``prepared`` prepares each once and sends values beside it.
        retries: how often a script that met a deadlock or a serialization failure is made again, whole.
        timeout_s: after so long the server gives a statement up (outcome ``statement_timeout``).
        setup, teardown: files of SQL for the server, run once before and after (not with --keep-data).
    """

    scripts: tuple[str, ...] = ()
    weights: Mapping[str, Weight] = Field(default_factory=dict)
    values: Mapping[str, ValuesParams] = Field(default_factory=dict)
    define: Mapping[str, int | float | str] = Field(default_factory=dict)
    scale: Annotated[int, Field(ge=1)] = 1
    protocol: Literal["simple", "prepared"] = "simple"
    retries: Annotated[int, Field(ge=0, le=100)] = 3
    timeout_s: Seconds = 30.0
    setup: str | None = None
    teardown: str | None = None

    @field_validator("scripts", mode="before")
    @classmethod
    def _one_or_several(cls, scripts: Any) -> Any:
        return [scripts] if isinstance(scripts, str) else scripts

    @field_validator("values", "define")
    @classmethod
    def _names(cls, named: Mapping[str, Any]) -> Mapping[str, Any]:
        for name in named:
            if not name.isidentifier():
                raise ValueError(f"{name!r} is no variable's name; allowed: letters, digits and _")
        return named

    @classmethod
    def placed(cls, given: Mapping[str, Any], directory: Path) -> dict[str, Any]:
        """See ``FileParams``."""
        found = dict(given)
        for name in ("setup", "teardown"):
            if isinstance(found.get(name), str):
                found[name] = _absolute(found[name], directory)
        scripts = found.get("scripts")
        if isinstance(scripts, str):
            found["scripts"] = _absolute(scripts, directory)
        elif isinstance(scripts, list | tuple):
            found["scripts"] = [
                _absolute(each, directory) if isinstance(each, str) else each for each in scripts
            ]
        values = found.get("values")
        if isinstance(values, Mapping):
            found["values"] = {name: _csv_placed(each, directory) for name, each in values.items()}
        return found

    def paths(self) -> tuple[str, ...]:
        """See ``Params``."""
        files = (self.setup, self.teardown, *(values.csv for values in self.values.values()))
        scripts = (str(file_and_weight(each)[0]) for each in self.scripts)
        return (*scripts, *(file for file in files if file is not None))

    def read_files(self) -> None:
        """See ``FileParams``."""
        from .files import read_scripts  # noqa: PLC0415 - it reads these parameters

        read_scripts(self)


def file_and_weight(name: str) -> tuple[Path, float]:
    """A file or folder of scripts, and the weight of each script in it: ``FILE@WEIGHT``, or a weight of 1."""
    weighted = _WEIGHTED.fullmatch(name)
    return (Path(weighted[1]), float(weighted[2])) if weighted else (Path(name), 1.0)


def _absolute(path: str, directory: Path) -> str:
    return str(directory / Path(path).expanduser())


def _csv_placed(values: Any, directory: Path) -> Any:
    if isinstance(values, Mapping) and isinstance(values.get("csv"), str):
        return {**values, "csv": _absolute(values["csv"], directory)}
    return values

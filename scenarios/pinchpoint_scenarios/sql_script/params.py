"""Defines the parameters of sql-script in a plan, and checks the user's files that they name."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from pinchpoint_collectors.common.names import unknown

from ..contract import FileParams
from ..units import Seconds
from .lexer import ScriptError
from .script import BUILT_IN, Script, Set, SqlStatement, flat, read, uses
from .use_statements import find_use
from .values import ValuesParams, read_csv

_WEIGHTED = re.compile(r"(.+)@(\d+(?:\.\d+)?)")
SUFFIX = ".sql"
_NAME = re.compile(r"[\w.-]+")
_LARGEST_BYTES = 2**20
Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class SqlScriptParams(FileParams):
    """``params`` of sql-script.

    Attributes:
        scripts: files and folders (every ``*.sql`` in one), relative to the plan's folder; ``FILE@WEIGHT`` as
            in pgbench. An operation has the name of its file, without the extension.
        weights: operation -> weight, which replaces ``@``; 0 omits it. The default is 1.
        values: variable -> source of its values; drawn anew for each operation that uses it.
        define: variable -> value, as pgbench's ``--define``.
        scale: the variable ``:scale``, as pgbench's ``--scale``.
        protocol: pgbench's ``--protocol``: ``simple`` inserts values into the text, ``prepared`` prepares
            each statement once and sends values as parameters.
        retries: number of retries of a whole script after a deadlock or a serialization failure.
        timeout_s: the server's time limit of a statement (outcome ``statement_timeout``). setup, teardown:
            SQL files, run once before and after (not with --keep-data).
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

    @field_validator("scripts", mode="before", json_schema_input_type=str | tuple[str, ...])
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
        result = dict(given)
        for name in ("setup", "teardown"):
            if isinstance(result.get(name), str):
                result[name] = _absolute(result[name], directory)
        scripts = result.get("scripts")
        if isinstance(scripts, str):
            result["scripts"] = _absolute(scripts, directory)
        elif isinstance(scripts, list | tuple):
            result["scripts"] = [
                _absolute(each, directory) if isinstance(each, str) else each for each in scripts
            ]
        values = result.get("values")
        if isinstance(values, Mapping):
            result["values"] = {name: _csv_placed(each, directory) for name, each in values.items()}
        return result

    def paths(self) -> tuple[str, ...]:
        files = (self.setup, self.teardown, *(values.csv for values in self.values.values()))
        scripts = (str(file_and_weight(each)[0]) for each in self.scripts)
        return (*scripts, *(file for file in files if file is not None))

    def read_files(self) -> None:
        read_scripts(self)


def file_and_weight(name: str) -> tuple[Path, float]:
    """Return a file or folder of scripts, and the weight of each script in it: ``FILE@WEIGHT``, default 1."""
    weighted = _WEIGHTED.fullmatch(name)
    return (Path(weighted[1]), float(weighted[2])) if weighted else (Path(name), 1.0)


def _absolute(path: str, directory: Path) -> str:
    return str(directory / Path(path).expanduser())


def _csv_placed(values: Any, directory: Path) -> Any:
    if isinstance(values, Mapping) and isinstance(values.get("csv"), str):
        return {**values, "csv": _absolute(values["csv"], directory)}
    return values


@dataclass(frozen=True, slots=True)
class Chosen:
    """One script and its weight.

    Attributes:
        script: script.
        weight: weight. Its share of all operations is the weight ÷ the sum of weights.
        sha256: SHA-256 of its file.
    """

    script: Script
    weight: float
    sha256: str


def read_scripts(params: SqlScriptParams, kinds: Collection[str] = ()) -> list[Chosen]:
    """Return every script of a plan with a weight. Raises ``ScriptError`` with all problems of the scripts.

    Args:
        params: parameters that name the scripts.
        kinds: kinds of servers that the endpoint may have (``use_statements``); none as long as no farm is
            known.
    """
    result, problems = [], []
    for path, weight in _named(params):
        try:
            text = read_text(path, kinds)
            script = read(path.stem, str(path), text)
            _check_variables(script, params)
        except ScriptError as error:
            problems.append(str(error))
            continue
        digest = hashlib.sha256(text.encode()).hexdigest()
        result.append(Chosen(script, params.weights.get(path.stem, weight), digest))
    problems += _unfit(result, params)
    _read_others(params, kinds)
    if not problems:
        problems += _unknown_variables([each.script for each in result], params)
    if problems:
        raise ScriptError("; ".join(problems))
    return [each for each in result if each.weight > 0]


def read_text(path: Path, kinds: Collection[str]) -> str:
    """Return the text of a file. Raises ``ScriptError``, also if the text leaves the database it runs in."""
    try:
        if path.exists() and not path.is_file():
            raise ScriptError(f"{path}: is no plain file; name a text file with SQL")
        size_bytes = path.stat().st_size
        if size_bytes > _LARGEST_BYTES:
            raise ScriptError(
                f"{path}: {size_bytes:,} bytes; allowed: a script of at most {_LARGEST_BYTES:,}"
            )
        text = path.read_text(encoding="utf-8-sig")  # editors on Windows save it in this way
    except UnicodeDecodeError as error:
        raise ScriptError(f"{path}: not UTF-8 text; save it as UTF-8") from error
    except OSError as error:
        raise ScriptError(f"{path}: cannot be read ({error.strerror}); check the path") from error
    at = find_use(text, kinds)
    if at is not None:
        line = text.count("\n", 0, at) + 1
        raise ScriptError(
            f"{path}:{line}: USE, which leaves the database that is marked as a copy; remove it: the url in "
            "farm.yaml names the database"
        )
    return text


def _named(params: SqlScriptParams) -> Iterator[tuple[Path, float]]:
    for path, weight in map(file_and_weight, params.scripts):
        for each in sorted(path.glob(f"*{SUFFIX}")) if path.is_dir() else (path,):
            yield each, weight


def _unfit(chosens: list[Chosen], params: SqlScriptParams) -> Iterator[str]:
    """Return the problems of the scripts taken together."""
    if not params.scripts:
        yield "no script is named; needed: scripts, a folder of .sql files, or a list of files"
    for path, _ in map(file_and_weight, params.scripts):
        if path.is_dir() and not any(path.glob(f"*{SUFFIX}")):
            yield f"{path}: a folder without a script; needed: files in it whose names end in {SUFFIX}"
    names = [each.script.name for each in chosens]
    for each in chosens:
        if names.count(each.script.name) > 1:
            yield f"{each.script.file}: another script is named {each.script.name}; give it another name"
        if not _NAME.fullmatch(each.script.name):
            yield f"{each.script.file}: its name; allowed: letters, digits, '_', '-' and '.'"
    for name in params.weights:
        if name not in names:
            yield f"weights: {unknown('script', name, names)}"
    if chosens and not any(each.weight > 0 for each in chosens):
        yield "every script has the weight 0; needed: one above 0"


def _read_others(params: SqlScriptParams, kinds: Collection[str]) -> None:
    for path in (params.setup, params.teardown):
        if path is not None:
            read_text(Path(path), kinds)
    for values in params.values.values():
        if values.csv is not None:
            read_csv(Path(values.csv), values.field)


def _check_variables(script: Script, params: SqlScriptParams) -> None:
    """Raises if a prepared statement has a variable within quotes, or is several statements."""
    if params.protocol == "simple":
        return
    named = {*BUILT_IN, *params.define, *params.values}
    for sql in script.statements():
        place = f"{script.file}:{sql.line}"
        if sql.joined > 1:
            raise ScriptError(f"{place}: statements joined by \\; cannot be prepared; use protocol: simple")
        for _, name, quoted in uses(sql):
            if quoted and name in named:
                raise ScriptError(
                    f"{place}: :{name} within quotes cannot be a parameter; use protocol: simple, or take it "
                    "out of the quotes"
                )


def _unknown_variables(scripts: list[Script], params: SqlScriptParams) -> Iterator[str]:
    """Return variables without a value; none if columns of a query become variables."""
    commands = [(script, command) for script in scripts for command in flat(script.commands)]
    if any(isinstance(command, SqlStatement) and command.prefix is not None for _, command in commands):
        return
    known = {*BUILT_IN, *params.define, *params.values}
    known |= {command.name for _, command in commands if isinstance(command, Set)}
    for script, command in commands:
        for line, name, quoted in uses(command):
            if not quoted and name not in known:
                yield f"{script.file}:{line}: {unknown('variable', name, known)}"

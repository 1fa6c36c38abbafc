"""Checks the permits of a load worker's operator: a token, variables and files.

The token is a secret that the controller and its workers share. The token comes from the environment or from
a file, never from the command line, which every user of a host can read.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from pinchpoint.base.errors import InputError
from pinchpoint.loadgen.assignment import Assignment
from pinchpoint.plan.endpoints import FILE_OPTIONS, expand
from pinchpoint.plan.locustfile import is_locustfile, scenario_class
from pinchpoint.plan.urls import SCHEMES, variables
from pinchpoint_scenarios.contract import DISK
from pinchpoint_scenarios.errors import ScenarioError

TOKEN_VARIABLE = "PINCHPOINT_WORKER_TOKEN"  # noqa: S105 -- the variable's name
_TOKEN = re.compile(r"[!-~]{32,256}")
_MAKE_ONE = "python3 -c 'import secrets; print(secrets.token_urlsafe())'"
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PASSWORDS = ("password", "pwd")  # keys of a URL's query whose values may contain a slash and are no files


def new_token() -> str:
    """A new token that cannot be guessed."""
    return secrets.token_urlsafe()


def given_token(file: Path | None) -> str | None:
    """The operator's token, from a file or from the environment; None if there is none.

    The variable is removed from this process's environment, so that child processes do not inherit it.

    Raises:
        InputError: the token cannot be read, other users may read it, or it is too short to be secret.
    """
    from_environment = os.environ.pop(TOKEN_VARIABLE, None)
    if file is None:
        return None if from_environment is None else _checked(TOKEN_VARIABLE, from_environment)
    try:
        with file.open("rb") as opened:
            mode = os.fstat(opened.fileno()).st_mode
            text = opened.read(4096).decode("ascii", errors="replace")
    except OSError as error:
        raise InputError(f"--token-file: {file} cannot be read: {error.strerror}; check the path") from error
    if mode & (stat.S_IROTH | stat.S_IWOTH) and stat.S_ISREG(mode):
        raise InputError(
            f"--token-file: every user of this machine may read or write {file}; allowed: its owner and "
            f"group alone: chmod 600 {file}"
        )
    return _checked(f"--token-file: {file}", text.strip())


def _checked(where: str, token: str) -> str:
    if not _TOKEN.fullmatch(token):
        raise InputError(
            f"{where}: found {len(token)} characters; a token has 32 to 256 letters, digits and signs "
            f"without white space; make one: {_MAKE_ONE}"
        )
    return token


@dataclass(frozen=True, slots=True)
class Permits:
    """Variables and files of this machine that a run from another machine may use.

    Attributes:
        variables: names of environment variables that may be filled into endpoints.
        folders: absolute paths of folders; files in these folders, at any depth, may be read and written.
    """

    variables: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()

    @classmethod
    def given(cls, variables: tuple[str, ...], folders: tuple[Path, ...]) -> Permits:
        """The permits on the command line. Raises InputError."""
        for name in variables:
            if not _VARIABLE_NAME.fullmatch(name) or name == TOKEN_VARIABLE:
                raise InputError(
                    f"--allow-env: found {name!r}; allowed: the name of one variable, such as PGPASSWORD, "
                    f"and never {TOKEN_VARIABLE}"
                )
        for folder in folders:
            if not folder.is_dir():
                raise InputError(f"--allow-path: {folder} is no folder here; check the path")
        return cls(tuple(dict.fromkeys(variables)), tuple(str(folder.resolve()) for folder in folders))

    def check(self, assignment: Assignment, machine: str) -> None:
        """Raise InputError with every variable and file that the work uses without permission."""
        if problems := [f"worker on {machine}: {why}" for why in self._refusals(assignment)]:
            raise InputError(*dict.fromkeys(problems))

    def _refusals(self, assignment: Assignment) -> Iterator[str]:
        refused = False
        for where, name in named_variables(assignment.endpoints):
            if name not in self.variables:
                refused = True
                yield (
                    f"{where} uses the variable {name}, which this worker may not use; its operator permits "
                    f"it with: pinchpoint worker --allow-env {name}"
                )
        if refused:
            return  # paths are known only after variables are expanded
        for where, path in named_paths(assignment):
            if not self._may_use(path):
                yield (
                    f"{where} uses {path}, which this worker may not use; its operator permits it with: "
                    f"pinchpoint worker --allow-path {folder_of(path)}"
                )

    def _may_use(self, path: str) -> bool:
        return any(Path(path).resolve().is_relative_to(folder) for folder in self.folders)


def folder_of(path: str) -> Path:
    """The folder to permit so that a file or a folder may be used."""
    result = Path(path)
    return result if result.is_dir() else result.parent


def named_variables(endpoints: Mapping[str, Mapping[str, str]]) -> Iterator[tuple[str, str]]:
    """(place, variable) of every ``${VARIABLE}`` in a farm's endpoints."""
    for endpoint, given in endpoints.items():
        for key, text in given.items():
            for name in variables(text):
                yield f"endpoints.{endpoint}.{key}", name


def named_paths(assignment: Assignment) -> Iterator[tuple[str, str]]:
    """(place, path) of every file and folder of this machine that the work uses. Raises InputError."""
    for name, given in assignment.endpoints.items():
        yield from _endpoint_paths(name, given)
    for name, planned in assignment.scenarios.items():
        use = planned["use"]
        if is_locustfile(use):
            yield f"scenarios.{name}.use", use
        try:
            params = scenario_class(use).params_model.model_validate(planned["params"])
        except (ScenarioError, ValueError) as error:
            raise InputError(f"scenarios.{name}: {error}") from error
        for path in params.paths():
            yield f"scenarios.{name}.params", path


def _endpoint_paths(name: str, given: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    where = f"endpoints.{name}"
    if name.startswith(DISK):
        over_ssh = "address" in given  # the folder is on the other machine, ssh's own files are on this one
        for key in ("identity", "config") if over_ssh else ("url",):
            if key in given:
                yield (where if key == "url" else f"{where}.{key}"), given[key]
        return
    if name not in SCHEMES:
        raise InputError(f"{where}: no such endpoint; allowed: {', '.join(SCHEMES)}")
    endpoint = expand(name, given)
    if endpoint.url and "://" not in endpoint.url:
        yield f"{where}.path", endpoint.url
    for key in FILE_OPTIONS:
        if key in endpoint.options:
            yield f"{where}.{key}", endpoint.options[key]
    # Drivers read files that the URL's query names: a key, a password file, a library to load.
    for key, value in parse_qsl(urlsplit(endpoint.url).query):
        if ("/" in value or value.startswith("~")) and key.lower() not in _PASSWORDS:
            yield f"{where}.url, {key}", value

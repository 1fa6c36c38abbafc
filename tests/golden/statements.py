"""The statements that scenarios send, from the server's log: each kind once, in order of first use."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from golden.doors import SQL_SCRIPT, logging_postgres, logging_valkey, nosql_burst, sql_mix, sql_script

OPERATIONS = (
    "log_append",
    "log_batch",
    "data_update",
    "bulk_load",
    "point_read",
    "range_scan",
    "spill",
    "lock_contend",
)
DRIVERS = ("fast", "psycopg")
LOGGED = re.compile(r"LOG:  (?:statement|execute [^:]*|parse [^:]*): (.*)", re.DOTALL)
BEGINS = re.compile(r"^\|", re.MULTILINE)
"""Begin of a log entry, which may have several lines."""
LITERALS = (
    (re.compile(r"'(?:[^']|'')*'"), "'TEXT'"),
    (re.compile(r"(?<![\w$\"])-?\d+(?:\.\d+)?\b"), "NUMBER"),
    (re.compile(r"\s+"), " "),
    (re.compile(r"(\(NUMBER(?:, 'TEXT'|, NUMBER)*\))(?:, \1)+"), r"\1, ..."),
)
WRITTEN = (
    (re.compile(r"(process )\d+ on \S+, since .* UTC #\S+"), r"\1NUMBER on HOST, since TIME #NUMBER"),
    (re.compile(r"(pinchpoint:test:)\d+"), r"\1NUMBER"),
    (re.compile(r"(?s)^(SET \S+:NUMBER) .*"), r"\1 VALUE"),
    (re.compile(r"(?s)( field\d+) .*?(?= field\d+ |$)"), r"\1 VALUE"),
    (re.compile(r"( \S+:NUMBER)(?:\1)+"), r"\1 ..."),
)


def kinds(statements: Iterable[str]) -> list[str]:
    """Return statements without their literals, each once, in order of first use."""
    found: dict[str, None] = {}
    for statement in statements:
        text = statement.strip()
        for literal, instead in LITERALS:
            text = literal.sub(instead, text)
        found[text] = None
    return list(found)


def of_postgres() -> str:
    """Return the statements that sql-mix (each operation and driver) and sql-script send to PostgreSQL."""
    parts = []
    with (
        tempfile.TemporaryDirectory(prefix="pinchpoint-golden-", ignore_cleanup_errors=True) as folder,
        logging_postgres(Path(folder)) as server,
    ):
        for driver in DRIVERS:
            for operation in OPERATIONS:
                begun = server.log.stat().st_size
                sql_mix(server.endpoint, driver, operation)
                parts.append(_part(f"sql-mix, {driver}, {operation}", _logged(server.log, begun)))
        begun = server.log.stat().st_size
        sql_script(server, Path(folder), SQL_SCRIPT)
        parts.append(_part("sql-script", _logged(server.log, begun)))
    return "\n".join(parts)


def of_valkey() -> str:
    """Return the commands that nosql-burst sends to Valkey, with records of one field and of three."""
    parts = []
    for fields in (1, 3):
        with logging_valkey() as (endpoint, commands):
            nosql_burst(endpoint, fields)
        parts.append(_part(f"nosql-burst, fields: {fields}", map(_command, _sent(commands))))
    return "\n".join(parts)


def _sent(commands: Iterable[str]) -> Iterator[str]:
    """Drop commands sent by a timer, because their number and position vary."""
    return (command for command in commands if not command.startswith("PEXPIRE "))


def _command(command: str) -> str:
    """Return a command with its keys, without the written values."""
    for written, instead in WRITTEN:
        command = written.sub(instead, command)
    return command


def _logged(log: Path, begun: int) -> list[str]:
    text = log.read_bytes()[begun:].decode("utf-8", "replace")
    matches = (LOGGED.search(entry) for entry in BEGINS.split(text))
    return [match[1] for match in matches if match]


def _part(name: str, statements: Iterable[str]) -> str:
    return "\n".join([f"== {name}", *kinds(statements), ""])

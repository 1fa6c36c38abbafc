"""What a driver says went wrong, as the name of a failure, or as a sentence for a person.

A driver's error is a SQLSTATE and a text that ends in the server's own number: ``[40001] [vendor]... (1205)
(SQLExecDirectW)``. The number says more than the SQLSTATE (SQL Server and MariaDB call a deadlock 40001,
which is PostgreSQL's serialization failure), so it comes first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import pyodbc

from ...addresses import unreachable, without_secrets
from ...contract import Endpoint
from ...errors import EndpointUnreachable
from ..postgresql import CONNECTION_LOST
from ..postgresql import OUTCOMES as POSTGRESQL_STATES
from ..refusals import found_in
from ..servers.contract import MSSQL, MYSQL, POSTGRESQL
from .refusals import refusals

_NUMBERS = {
    # sys.messages of SQL Server; 4xxxx are Azure SQL's
    MSSQL: {
        1205: "deadlock",
        1222: "lock_timeout",
        **dict.fromkeys((3960, 3961, 3962, 41302, 41305, 41325), "serialization"),
        **dict.fromkeys((1101, 1105, 3257, 9002, 40544), "disk_full"),
        **dict.fromkeys((701, 802, 8645, 8651), "out_of_memory"),
        **dict.fromkeys((10928, 10929, 17809, 40501), "too_many_connections"),
        **dict.fromkeys((229, 230, 262, 297, 300, 916), "permission"),
        **dict.fromkeys((18452, 18456, 18470, 18486, 18488), "authentication"),
        **dict.fromkeys((911, 4060, 4064), "unknown_database"),
        **dict.fromkeys((3906, 3908), "read_only"),
        **dict.fromkeys((596, 6005, 10053, 10054, 40197), CONNECTION_LOST),
        **dict.fromkeys((17142, 40613), "unreachable"),
    },
    # mysqld_error.h and errmsg.h of MariaDB and MySQL
    MYSQL: {
        1213: "deadlock",
        1205: "lock_timeout",
        1020: "serialization",
        **dict.fromkeys((1969, 3024), "statement_timeout"),
        **dict.fromkeys((1021, 1114, 1026), "disk_full"),
        **dict.fromkeys((1037, 1038, 1041), "out_of_memory"),
        **dict.fromkeys((1040, 1203, 1226), "too_many_connections"),
        **dict.fromkeys((1044, 1142, 1143, 1227, 1370), "permission"),
        **dict.fromkeys((1045, 1698), "authentication"),
        1049: "unknown_database",
        **dict.fromkeys((1290, 1792, 1836), "read_only"),
        **dict.fromkeys((1053, 1927, 2006, 2013, 2055, 4031), CONNECTION_LOST),
        **dict.fromkeys((2002, 2003, 2005), "unreachable"),
    },
    POSTGRESQL: {},
}
_STATES: Mapping[str, Mapping[str, str]] = {
    MSSQL: {},
    MYSQL: {},
    POSTGRESQL: POSTGRESQL_STATES,
}
_ODBC_STATES = {
    "08001": "unreachable",
    "08004": "unreachable",
    "HYT01": CONNECTION_LOST,
    "08": CONNECTION_LOST,
    "HYT00": "statement_timeout",
    "HY008": "statement_timeout",  # cancelled, which nobody but the timeout does
    "28": "authentication",
    "IM": "unreachable",
}
"""SQLSTATE, or its class, -> the name of the failure (ODBC reference, appendix A), whatever the server."""
_LOST = re.compile(
    r"server closed the connection|no connection to the server|could not (send|receive) |communication link|"
    r"server has gone away|lost connection|connection was killed|dbprocess is dead|bad connection|"
    r"terminating connection|connection not open|socket (is )?closed",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\((-?\d+)\) \(SQL\w+\)")
_VENDORS = re.compile(r"^(\[[^\]]*\]\s*)+")


@dataclass(frozen=True, slots=True)
class Said:
    """What a driver said.

    Attributes:
        state: the SQLSTATE.
        numbers: the server's own numbers, in order.
        text: the sentence of the first of them, without vendors' names and codes.
    """

    state: str
    numbers: tuple[int, ...]
    text: str


def said(error: pyodbc.Error) -> Said:
    """Take a driver's error apart.

    Raises ``error`` again where no driver saw the statement: that is an error of ours.
    """
    state, whole = (str(error.args[0]), str(error.args[-1])) if error.args else ("", str(error))
    if not whole.startswith("["):
        raise error  # pyodbc's own words: a wrong number of parameters, a closed cursor
    numbers = tuple(int(number) for number in _NUMBER.findall(whole))
    text = _NUMBER.split(_VENDORS.sub("", whole))[0].strip()
    return Said(state, numbers, text.partition("\n")[0].rstrip(" ;."))


def state(error: pyodbc.Error) -> str:
    """The SQLSTATE a driver told; empty where none did."""
    try:
        return said(error).state
    except pyodbc.Error:
        return ""


def told(error: pyodbc.Error) -> str:
    """What the driver said in a sentence, or pyodbc itself: for statements of the user's own."""
    try:
        return said(error).text
    except pyodbc.Error:
        return str(error.args[0])


def outcome_of(error: pyodbc.Error, kind: str, *, connecting: bool = False) -> str:
    """The name of a failure; ``sqlstate_XXXXX`` where it has no name here.

    Raises ``error`` again where it is ours.
    """
    found = said(error)
    known = _NUMBERS[kind]
    by_number = next((known[number] for number in found.numbers if number in known), None)
    if by_number:
        return by_number
    if why := found_in(refusals(kind), str(error.args[-1])) if connecting else None:
        return why.outcome
    states = _STATES[kind]
    by_state = states.get(found.state) or states.get(found.state[:2])
    if by_state and not (connecting and by_state == CONNECTION_LOST):
        return by_state
    if connecting:
        return "unreachable"
    if _LOST.search(found.text):
        return CONNECTION_LOST
    by_odbc = _ODBC_STATES.get(found.state) or _ODBC_STATES.get(found.state[:2])
    return by_odbc or f"sqlstate_{found.state}"


def refused(endpoint: Endpoint, error: pyodbc.Error, kind: str) -> EndpointUnreachable:
    """The sentence for a person whose server, or whose driver, does not let us in."""
    found = said(error)
    text = without_secrets(found.text, endpoint)
    why = found_in(refusals(kind), str(error.args[-1]))
    if why:
        return unreachable(endpoint, f"{why.cause} ({text})", why.remedy)
    return unreachable(endpoint, f"the driver said: {text}", "correct the url in farm.yaml")

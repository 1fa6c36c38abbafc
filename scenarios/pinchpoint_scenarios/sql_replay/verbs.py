"""What a captured statement is counted as."""

from __future__ import annotations

from ..sql_text import first_word
from .rpc import called, handed_over


def verb(text: str) -> str:
    """The operation: a statement's first word in lower case; of a procedure's call, its name too.

    What is only handed over by SQL Server's ``sp_executesql`` is counted as itself.
    """
    inner = handed_over(text)
    if inner is not None:
        return verb(inner)
    procedure = called(text)
    if procedure is not None:
        return f"exec {procedure.lower()}"
    return first_word(text)

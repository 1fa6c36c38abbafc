"""Scenario sql-script: SQL of the user, and unchanged pgbench scripts."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, ClassVar, cast

from ..addresses import place, within
from ..contract import Filled, Intent, Params, ScenarioContext, Sent, Target
from ..databases.contract import FailureReport
from ..errors import ScenarioError
from .lexer import Pieces
from .marked_copy import MarkedCopy
from .params import Chosen, SqlScriptParams, read_scripts, read_text
from .scope import Chance, ScriptScope, Value
from .session import ScriptSession
from .use_statements import server_kinds
from .values import counter, drawer, read_csv

__all__ = ["SqlScript", "SqlScriptParams"]

_SEED_BITS = 63
_ONLY_READS = {"begin", "start", "commit", "end", "rollback", "set", "show"}
"""First words of statements that only read. A SELECT is not among them, because it may call a function that
writes."""


class SqlScript:
    """Runs scripts of the user in the SQL tier."""

    use: ClassVar[str] = "sql-script"
    needs: ClassVar[frozenset[str]] = frozenset({"sql"})
    writes: ClassVar[bool] = True
    ends: ClassVar[bool] = False
    params_model: ClassVar[type[Params]] = SqlScriptParams

    def __init__(self, context: ScenarioContext) -> None:
        self._context = context
        self._params = params = cast("SqlScriptParams", context.params)
        self._kinds = server_kinds(context.endpoints["sql"])
        self._chosen = read_scripts(params, self._kinds)
        self._copy = MarkedCopy(context.endpoints["sql"], f"pinchpoint_{context.name}", empty_will_do=True)
        self._listed: dict[str, Sequence[Value]] = {}
        self._listing = threading.Lock()
        self._counters = {name: counter(context.worker) for name in params.values}
        self._report = FailureReport(context.event)

    @property
    def blocks(self) -> bool:
        """Return whether sessions wait inside C code, as with ODBC (``contract.Blocking``)."""
        return self._copy.blocks

    def check(self) -> Mapping[str, Any]:
        """Connect to the server. Return its version, its settings, and facts about the scripts."""
        scripts = {
            each.script.name: {"file": each.script.file, "weight": each.weight, "sha256": each.sha256}
            for each in self._chosen
        }
        server = self._copy.check()
        warnings = [*server["warnings"], *self._not_there()]
        return {"sql": {**server, "warnings": warnings, "scripts": scripts}}

    def _not_there(self) -> list[str]:
        """Return statements that the server cannot prepare for lack of a table, unless a setup creates it.

        Raises ``ScenarioError`` for statements that the server cannot parse.
        """
        refused = list(self._copy.refusals(_placed(self._chosen)))
        if wrong := [said for said, is_wrong in refused if is_wrong]:
            raise ScenarioError("; ".join(wrong))
        return [] if self._params.setup else [said for said, _ in refused]

    def intent(self) -> Intent:
        """Return the statements of the user by their first words. Contacts no server."""
        params, total = self._params, sum(each.weight for each in self._chosen)
        sent = []
        for each in self._chosen:
            verbs = Counter(statement.word or "?" for statement in each.script.statements())
            listed = ", ".join(f"{word.upper()} {count}" for word, count in verbs.items())
            reads = set(verbs) <= _ONLY_READS
            written = 0 if reads else None
            sent.append(
                Sent(each.script.name, f"{each.script.file}: {listed}", each.weight / total, written, written)
            )
        made = [Filled(f"setup {params.setup}", None, None, "own SQL: not known")] if params.setup else []
        return Intent(
            (
                Target(
                    place(self._context.endpoints["sql"]),
                    within(self._context.endpoints["sql"], "marked as a copy"),
                ),
            ),
            tuple(made),
            tuple(sent),
            f"what the teardown {params.teardown} removes"
            if params.teardown
            else "nothing: there is no teardown",
            notes=("own SQL: how many rows a statement writes is not known",),
        )

    def prepare(self, progress: Callable[[str], None]) -> None:
        """Run the user's setup, if there is one, and check that the values are available."""
        self._copy.hold()
        if self._params.setup is not None:
            progress(f"running {self._params.setup}")
            self._run_file(self._params.setup, mark=True)
        self._list()

    def session(self, number: int) -> ScriptSession:
        """Open a session. If the server does not answer, the first operation reports it."""
        context, params = self._context, self._params
        seed = Random(context.seed).getrandbits(_SEED_BITS)  # noqa: S311 - workload, no secret
        random = Random(f"{context.seed}:{number}")  # noqa: S311 - workload, no secret
        scope = ScriptScope(Chance(random), {"client_id": number, "scale": params.scale})
        scope.variables |= {"random_seed": seed, "default_seed": seed, **params.define}
        with self._listing:
            if not self._listed.keys() >= params.values.keys():
                self._list()
        draws = {
            name: drawer(each, self._listed[name], number, self._counters[name])
            for name, each in params.values.items()
        }
        own = self._copy.connection(params.timeout_s)
        own.try_open()
        return ScriptSession(
            own,
            self._chosen,
            scope,
            draws,
            copy=self._copy,
            prepared=params.protocol == "prepared",
            retries=params.retries,
            report=self._report,
        )

    def finish(self, *, keep_data: bool) -> None:
        """Run the user's teardown, if there is one, unless data are kept."""
        try:
            if self._params.teardown is not None and not keep_data:
                self._copy.hold()
                self._run_file(self._params.teardown, mark=False)
        finally:
            self._copy.release()

    def _run_file(self, file: str, *, mark: bool) -> None:
        self._copy.run_file(file, read_text(Path(file), self._kinds), mark=mark)

    def _list(self) -> None:
        """Read the values from columns and files, once in each process."""
        for name, values in self._params.values.items():
            if values.column is not None:
                self._listed[name] = self._copy.column(name, values)
            elif values.csv is not None:
                self._listed[name] = read_csv(Path(values.csv), values.field)
            else:
                self._listed[name] = ()


def _placed(chosen: Sequence[Chosen]) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the place of each statement and its texts: with a text, and with a number, for each variable.

    Joined statements are left out.
    """
    for each in chosen:
        for sql in each.script.statements():
            if sql.joined == 1:
                texts = [_filled(sql.pieces, value) for value in ("'1'", "1")]
                yield f"{each.script.file}:{sql.line}", list(dict.fromkeys(texts))


def _filled(pieces: Pieces, value: str) -> str:
    return "".join(piece if isinstance(piece, str) else "1" if piece.quoted else value for piece in pieces)

"""One session of sql-script."""

from __future__ import annotations

import time
from bisect import bisect
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate

from ..contract import OK, Record
from ..databases.contract import DatabaseFailure, FailureReport, TextConnection, TextResult
from ..errors import ScenarioError
from ..sql_mix.session import MISSING_ROW, RETRIED, TRIED_AGAIN
from .lexer import Ref
from .marked_copy import MarkedCopy
from .params import Chosen
from .scope import EvaluationError, ScriptScope, as_float, is_true
from .script import Branch, Command, Script, Set, Sleep, SqlStatement
from .values import Draw

TOO_MANY_ROWS = "too_many_rows"
r"""Outcome of a script whose query returned more than one row for ``\gset``."""

_Step = Callable[[Record], None]
"""Runs one command of a script. The argument records operations."""


class ScriptSession:
    """Draws scripts by weight and runs them, each as one operation.

    Args:
        connection: connection of the session.
        chosen: scripts with their weights.
        scope: variables of the session.
        draws: variable -> function that draws its values.
        copy: database, which defines how values are written.
        prepared: whether statements are prepared, or sent as text.
        retries: number of times a script is repeated after a failure of ``TRIED_AGAIN``.
        report: reports every statement that failed.
    """

    def __init__(
        self,
        connection: TextConnection,
        chosen: Sequence[Chosen],
        scope: ScriptScope,
        draws: Mapping[str, Draw],
        *,
        copy: MarkedCopy,
        prepared: bool,
        retries: int,
        report: FailureReport,
    ) -> None:
        self._connection = connection
        self._scope = scope
        self._copy = copy
        self._prepared = prepared
        self._retries = retries
        self._report = report
        self._scripts = [
            (each.script, _drawn(each.script, draws), self._steps(each.script, each.script.commands))
            for each in chosen
        ]
        *self._bounds, self._whole = accumulate(each.weight for each in chosen)

    def perform(self, record: Record) -> bool:
        """Run one script and record it. Returns True, because there is always another script."""
        scope = self._scope
        scope.chance.begin()
        script, draws, steps = self._scripts[bisect(self._bounds, scope.chance.random() * self._whole)]
        self._connection.wait_until_due()
        for name, draw in draws:
            scope.variables[name] = draw(scope)
        scope.chance.begin()  # random values from here on are the same if the script is repeated
        before = dict(scope.variables) if self._retries else {}
        start_ns = time.perf_counter_ns()
        outcome = self._attempt(script, steps, record)
        began_ns = start_ns
        for _ in range(self._retries):
            if outcome not in TRIED_AGAIN:
                break
            now_ns = time.perf_counter_ns()
            record(f"{script.name}/{RETRIED}", outcome, began_ns, now_ns)
            began_ns = now_ns
            scope.variables = dict(before)
            scope.chance.again()
            outcome = self._attempt(script, steps, record)
        record(script.name, outcome, start_ns, time.perf_counter_ns())
        return True

    def close(self) -> None:
        """Close the connection. A second call does nothing."""
        self._connection.close()

    def _attempt(self, script: Script, steps: Sequence[_Step], record: Record) -> str:
        try:
            for step in steps:
                step(record)
            left_open = self._connection.in_transaction
        except DatabaseFailure as failure:
            self._roll_back()
            return failure.outcome
        if left_open:
            self._roll_back()
            raise ScenarioError(f"{script.file}: it ends within a transaction; add COMMIT at its end")
        return OK

    def _roll_back(self) -> None:
        try:
            self._connection.roll_back()
        except DatabaseFailure:
            self._connection.close()  # the server rolls back the transaction of a lost connection

    # ---- what a script's commands do -------------------------------------------------------------

    def _steps(self, script: Script, commands: Sequence[Command]) -> list[_Step]:
        return [self._step(script, command) for command in commands]

    def _step(self, script: Script, command: Command) -> _Step:
        match command:
            case SqlStatement():
                return self._sql(script, command)
            case Set():
                return self._set(script, command)
            case Sleep():
                return self._sleep(script, command)
            case Branch():
                return self._branch(script, command)

    def _sql(self, script: Script, sql: SqlStatement) -> _Step:
        send = self._preparing(sql) if self._prepared else self._sending(sql)
        several = len(list(script.statements())) > 1
        stage = f"{script.name}/{sql.line}:{sql.word}"

        def run(record: Record) -> None:
            start_ns = time.perf_counter_ns()
            try:
                result = send()
                if sql.prefix is not None:
                    self._keep(sql, result)
            except DatabaseFailure as failure:
                if several:
                    record(stage, failure.outcome, start_ns, time.perf_counter_ns())
                self._report(failure, script=script.file, line=sql.line)
                raise
            if several:
                record(stage, OK, start_ns, time.perf_counter_ns())

        return run

    def _sending(self, sql: SqlStatement) -> Callable[[], TextResult]:
        """Return a function that sends the statement with the values in its text, pgbench's default."""
        query, scope, literal = self._connection.query, self._scope, self._copy.literal
        if not any(isinstance(piece, Ref) for piece in sql.pieces):
            text = "".join(map(str, sql.pieces))
            return lambda: query(text)

        def filled(piece: str | Ref) -> str:
            if isinstance(piece, str):
                return piece
            variables = scope.variables
            if piece.name not in variables:
                return f":{piece.name}"  # no variable: the text is not changed, above all within quotes
            value = variables[piece.name]
            return str(value) if piece.quoted and isinstance(value, str) else literal(value)

        return lambda: query("".join(map(filled, sql.pieces)))

    def _preparing(self, sql: SqlStatement) -> Callable[[], TextResult]:
        """Return a function that prepares the statement once and sends the values as parameters."""
        names: list[str] = []
        text = ""
        for piece in sql.pieces:
            if isinstance(piece, str):
                text += piece
            elif piece.quoted:
                text += f":{piece.name}"
            else:
                names.append(piece.name)
                text += f"${len(names)}"
        execute, scope, encoded = self._connection.execute_as_text, self._scope, self._copy.encoded

        def send() -> TextResult:
            variables = scope.variables
            return execute(text, [encoded(variables[name]) for name in names])

        return send

    def _keep(self, sql: SqlStatement, result: TextResult) -> None:
        r"""Set variables to the columns of a row; for ``\aset`` to those of every joined query."""
        for texts in result.every() if sql.many else [result.texts()]:
            rows = texts.rows
            if not sql.many and len(rows) != 1:
                outcome = TOO_MANY_ROWS if rows else MISSING_ROW
                raise DatabaseFailure(outcome, f"\\gset needs one row, and the query gave {len(rows)}")
            if rows:
                names = (f"{sql.prefix}{name}" for name in texts.names)
                self._scope.variables.update(zip(names, rows[-1], strict=True))

    def _set(self, script: Script, command: Set) -> _Step:
        scope, name, expression = self._scope, command.name, command.expression

        def run(_: Record) -> None:
            try:
                scope.variables[name] = expression(scope)
            except EvaluationError as error:
                raise _failed(script, command.line, error) from error

        return run

    def _sleep(self, script: Script, command: Sleep) -> _Step:
        scope, amount, unit_s = self._scope, command.amount, command.unit_s
        stage = f"{script.name}/{command.line}:sleep"

        def run(record: Record) -> None:
            try:
                units = as_float(scope.value(amount.name)) if isinstance(amount, Ref) else amount
            except EvaluationError as error:
                raise _failed(script, command.line, error) from error
            start_ns = time.perf_counter_ns()
            time.sleep(max(0.0, units * unit_s))
            record(stage, OK, start_ns, time.perf_counter_ns())

        return run

    def _branch(self, script: Script, command: Branch) -> _Step:
        scope = self._scope
        arms = [(arm, self._steps(script, arm.commands)) for arm in command.arms]

        def run(record: Record) -> None:
            for arm, steps in arms:
                try:
                    chosen = arm.condition is None or is_true(arm.condition(scope))
                except EvaluationError as error:
                    raise _failed(script, arm.line, error) from error
                if chosen:
                    for step in steps:
                        step(record)
                    return

        return run


def _failed(script: Script, line: int, error: EvaluationError) -> ScenarioError:
    return ScenarioError(f"{script.file}:{line}: {error}")


def _drawn(script: Script, draws: Mapping[str, Draw]) -> list[tuple[str, Draw]]:
    """Return the variables of a script whose values are drawn."""
    used = script.variables()
    return [(name, draw) for name, draw in draws.items() if name in used]

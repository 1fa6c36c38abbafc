"""Parses pgbench's expressions to functions (PostgreSQL manual, pgbench, "Built-In Operators")."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pinchpoint_collectors.common.names import unknown

from .functions import FUNCTIONS, remainder
from .scope import EvaluationError, ScriptScope, Value, as_bool, as_float, as_int, checked, is_true, spelt

Expression = Callable[[ScriptScope], Value]
"""Calculates a value. Raises ``EvaluationError``."""


class ExpressionError(Exception):
    """The text is no expression; the message says what is allowed."""


_TOKEN = re.compile(
    r"""\s*(?:
    (?P<double>(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)
    |(?P<int>\d+)
    |:(?P<variable>\w+)
    |(?P<word>[A-Za-z_]\w*)
    |(?P<operator><>|!=|<=|>=|<<|>>|[-+*/%<>=|&\#~(),])
    |(?P<end>$)
    |(?P<other>.)
    )""",
    re.VERBOSE,
)
_KEYWORDS = frozenset(
    {
        "and",
        "or",
        "not",
        "is",
        "isnull",
        "notnull",
        "null",
        "true",
        "false",
        "case",
        "when",
        "then",
        "else",
        "end",
    }
)
_CONSTANTS: dict[str, Value] = {"null": None, "true": True, "false": False}
_NOT, _TEST, _SIGN = 3, 4, 9
_LEVELS = {
    **dict.fromkeys(("or",), 1),
    **dict.fromkeys(("and",), 2),
    **dict.fromkeys(("is", "isnull", "notnull"), _TEST),
    **dict.fromkeys(("<", "<=", ">", ">=", "=", "<>", "!="), 5),
    **dict.fromkeys(("|", "#", "&", "<<", ">>"), 6),
    **dict.fromkeys(("+", "-"), 7),
    **dict.fromkeys(("*", "/", "%"), 8),
}
"""Precedence of operators. NOT has ``_NOT``, a sign has ``_SIGN``, and ``~`` has that of bit operators."""


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str


def parsed(text: str) -> tuple[Expression, frozenset[str]]:
    """Return the expression and its variables. Raises ``ExpressionError``."""
    reader = _ExpressionReader(_tokens(text))
    result = reader.expression(0)
    if reader.token.kind != "end":
        raise ExpressionError(f"{reader.token.text!r} stands where the expression should have ended")
    return result, frozenset(reader.variables)


def _tokens(text: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(text):
        kind = str(match.lastgroup)
        result = match[kind]
        if kind == "other":
            raise ExpressionError(
                f"{result!r} belongs to no expression; allowed: numbers, :variables, functions"
            )
        if kind == "word" and result.lower() in _KEYWORDS:
            kind, result = "operator", result.lower()
        yield _Token(kind, result)
        if kind == "end":
            return


class _ExpressionReader:
    """Parses an expression by operator precedence, with one token of lookahead."""

    def __init__(self, tokens: Iterator[_Token]) -> None:
        self._tokens = tokens
        self.token = next(tokens)
        self.variables: set[str] = set()

    def expression(self, least: int) -> Expression:
        left = self._operand()
        while (level := self._level()) > least:
            operator = self._take().text
            if level == _TEST:
                left = self._test(operator, left)
            else:
                left = _binary(operator, left, self.expression(level))
        return left

    def _level(self) -> int:
        return _LEVELS.get(self.token.text, 0) if self.token.kind == "operator" else 0

    def _take(self) -> _Token:
        taken, self.token = self.token, next(self._tokens, _Token("end", ""))
        return taken

    def _operand(self) -> Expression:
        token = self._take()
        match token.kind, token.text:
            case "int", digits:
                return _constant(_whole(int(digits)))
            case "double", digits:
                return _constant(float(digits))
            case "variable", name:
                self.variables.add(name)
                return lambda scope: scope.value(name)
            case "word", name:
                return self._function(name)
            case "operator", constant if constant in _CONSTANTS:
                return _constant(_CONSTANTS[constant])
            case "operator", operator:
                return self._prefixed(operator)
        raise ExpressionError("the expression ends where a value is needed")

    def _prefixed(self, operator: str) -> Expression:
        match operator:
            case "(":
                inside = self.expression(0)
                self._expect(")")
                return inside
            case "case":
                return self._case()
            case "not":
                return _null_or(lambda value: not as_bool(value), self.expression(_NOT - 1))
            case "-":
                return self._negative()
            case "+":
                return self.expression(_SIGN)
            case "~":
                return _null_or(lambda value: ~as_int(value), self.expression(_LEVELS["&"]))
        raise ExpressionError(f"{operator!r} stands where a value is needed")

    def _negative(self) -> Expression:
        if self.token == _Token("int", str(2**63)):
            self._take()
            return _constant(-(2**63))
        return _null_or(lambda value: _arithmetic("-", 0, value), self.expression(_SIGN))

    def _test(self, operator: str, left: Expression) -> Expression:
        """Parse ``IS [NOT] NULL|TRUE|FALSE``, ``ISNULL`` or ``NOTNULL``."""
        wanted: Value = None
        negated = operator == "notnull"
        if operator == "is":
            if self.token.text == "not":
                self._take()
                negated = True
            word = self._take().text
            if word not in _CONSTANTS:
                raise ExpressionError(f"IS is followed by {word!r}; allowed: [NOT] NULL, TRUE or FALSE")
            wanted = _CONSTANTS[word]
        return lambda scope: (left(scope) is wanted) is not negated

    def _case(self) -> Expression:
        arms: list[tuple[Expression, Expression]] = []
        otherwise: Expression = _constant(None)
        while self.token.text == "when":
            self._take()
            condition = self.expression(0)
            self._expect("then")
            arms.append((condition, self.expression(0)))
        if not arms:
            raise ExpressionError("CASE without WHEN; allowed: CASE WHEN condition THEN value ... END")
        if self.token.text == "else":
            self._take()
            otherwise = self.expression(0)
        self._expect("end")

        def choose(scope: ScriptScope) -> Value:
            for condition, value in arms:
                if is_true(condition(scope)):
                    return value(scope)
            return otherwise(scope)

        return choose

    def _function(self, name: str) -> Expression:
        function = FUNCTIONS.get(name.lower())
        if function is None:
            raise ExpressionError(unknown("function", name, FUNCTIONS))
        self._expect("(")
        arguments: list[Expression] = []
        while self.token.text != ")":
            if arguments:
                self._expect(",")
            arguments.append(self.expression(0))
        self._take()
        most = function.most
        if len(arguments) < function.least or (most is not None and len(arguments) > most):
            wanted = str(function.least) if most == function.least else f"{function.least} to {most or 'any'}"
            raise ExpressionError(f"{name} is given {len(arguments)} arguments; allowed: {wanted}")
        call = function.call

        def called(scope: ScriptScope) -> Value:
            given = [argument(scope) for argument in arguments]
            return None if None in given else call(scope, given)

        return called

    def _expect(self, text: str) -> None:
        result = self._take()
        if result.kind != "operator" or result.text != text:
            shown = repr(result.text) if result.text else "nothing"
            raise ExpressionError(f"{text!r} is needed, {shown} was found")


def _whole(number: int) -> int | float:
    """Return a whole number; beyond 64 bits a double, as in PostgreSQL."""
    return number if number < 2**63 else float(number)


def _constant(value: Value) -> Expression:
    return lambda _: value


def _null_or(of: Callable[[Value], Value], operand: Expression) -> Expression:
    def computed(scope: ScriptScope) -> Value:
        value = operand(scope)
        return None if value is None else of(value)

    return computed


def _binary(operator: str, left: Expression, right: Expression) -> Expression:
    if operator in ("and", "or"):
        return _logical(left, right, decides=operator == "or")
    compute = _compare if operator in _COMPARISONS else _bitwise if operator in _BITWISE else _arithmetic

    def computed(scope: ScriptScope) -> Value:
        one, other = left(scope), right(scope)
        return None if one is None or other is None else compute(operator, one, other)

    return computed


def _logical(left: Expression, right: Expression, *, decides: bool) -> Expression:
    """Return AND or OR over true, false and unknown. The right side is only evaluated if needed."""

    def computed(scope: ScriptScope) -> Value:
        one = left(scope)
        if one is not None and as_bool(one) is decides:
            return decides
        other = right(scope)
        if other is not None and as_bool(other) is decides:
            return decides
        return None if one is None or other is None else not decides

    return computed


_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
    "=": lambda one, other: one == other,
    "<>": lambda one, other: one != other,
    "!=": lambda one, other: one != other,
}
_BITWISE: dict[str, Callable[[int, int], int]] = {
    "|": lambda one, other: one | other,
    "#": lambda one, other: one ^ other,
    "&": lambda one, other: one & other,
    # Shifts of a bigint use the lowest six bits of the count. Bits outside of the word are lost.
    "<<": lambda one, other: ((one << (other & 63)) + 2**63) % 2**64 - 2**63,
    ">>": lambda one, other: one >> (other & 63),
}


def _compare(operator: str, value: Value, other: Value) -> bool:
    if isinstance(value, bool) and isinstance(other, bool):
        return _COMPARISONS[operator](value, other)
    if isinstance(value, float) or isinstance(other, float):
        return _COMPARISONS[operator](as_float(value), as_float(other))
    return _COMPARISONS[operator](as_int(value), as_int(other))


def _bitwise(operator: str, value: Value, other: Value) -> int:
    return _BITWISE[operator](as_int(value), as_int(other))


def _arithmetic(operator: str, value: Value, other: Value) -> int | float:
    doubles = isinstance(value, float) or isinstance(other, float)
    match operator:
        case "+":
            return as_float(value) + as_float(other) if doubles else checked(as_int(value) + as_int(other))
        case "-":
            return as_float(value) - as_float(other) if doubles else checked(as_int(value) - as_int(other))
        case "*":
            return as_float(value) * as_float(other) if doubles else checked(as_int(value) * as_int(other))
        case "%":
            return remainder(as_int(value), as_int(other))
    if not as_float(other):
        raise EvaluationError(f"{spelt(value)} / {spelt(other)}: division by zero")
    if doubles:
        return as_float(value) / as_float(other)
    whole, divisor = as_int(value), as_int(other)
    quotient = abs(whole) // abs(divisor)  # towards zero, as C divides
    return checked(int(math.copysign(1, whole) * math.copysign(1, divisor)) * quotient)

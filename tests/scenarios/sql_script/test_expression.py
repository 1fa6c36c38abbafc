"""Tests of expressions: their values, and errors of invalid ones."""

from __future__ import annotations

import math
from collections import Counter
from random import Random

import pytest

from pinchpoint_scenarios.sql_script.expression import ExpressionError, parsed
from pinchpoint_scenarios.sql_script.scope import Chance, EvaluationError, ScriptScope, Value

SEED = 5


def worth(text: str, **variables: Value) -> Value:
    """Return an expression's value."""
    expression, _ = parsed(text)
    return expression(ScriptScope(Chance(Random(SEED)), {"default_seed": 1, **variables}))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("-7 / 2", -3),
        ("-7 % 3", -1),
        ("7.0 / 2", 3.5),
        ("2 - 3 - 4", -5),
        ("1 << 3 | 1", 9),
        ("5 # 1 & 4", 4),
        ("~ 5", -6),
        ("-9223372036854775808", -(2**63)),
        ("not 1 = 2 and true", True),
        ("false or null is null", True),
        ("null + 1", None),
        ("null and false", False),
        ("null or false", None),
        ("1 <> 2", True),
        ("1 != 1", False),
        ("2.5 >= 2", True),
        (":x is not null", True),
        (":x isnull", False),
        ("case when :x > 5 then 'a' else 1 end".replace("'a'", "2"), 2),
        ("case when false then 1 end", None),
        ("greatest(1, 3, 2) - least(4, 2)", 1),
        ("greatest(1, 2.5)", 2.5),
        ("int(9.2) + int(2.5) + int(3.5)", 15),
        ("double(5432)", 5432.0),
        ("abs(-17)", 17),
        ("mod(54, 32)", 22),
        ("pow(2.0, 10)", 1024.0),
        ("POWER(2, 10)", 1024.0),
        ("sqrt(2.0) * sqrt(2.0) > 1.9", True),
        ("ln(exp(1)) = 1", True),
        ("pi()", math.pi),
        ("debug(:x)", 7),
        (".5 + 1.", 1.5),
        ("1e3", 1000.0),
    ],
)
def test_an_expression_is_worth_what_the_manual_says(text: str, value: Value) -> None:
    """Integers stay integers, division rounds towards zero, null is neither true nor false."""
    found = worth(text, x=7)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1 +", "ends where a value is needed"),
        ("1 2", "'2' stands where the expression should have ended"),
        ("randon(1, 2)", "nearest: random"),
        ("random(1)", "random is given 1 arguments; allowed: 2"),
        ("permute(1)", "allowed: 2 to 3"),
        ("(1", "')' is needed, nothing was found"),
        ("case 1", "CASE without WHEN"),
        ("1 is 2", "allowed: [NOT] NULL, TRUE or FALSE"),
        ("'text'", "belongs to no expression"),
        ("* 2", "'*' stands where a value is needed"),
    ],
)
def test_what_is_no_expression_is_said(text: str, said: str) -> None:
    """An invalid expression's error has the text found and the allowed ones."""
    with pytest.raises(ExpressionError) as caught:
        parsed(text)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1 / 0", "division by zero"),
        ("1 % 0", "division by zero"),
        ("9223372036854775807 + 1", "beyond 64 bits"),
        (":missing + 1", ":missing has no value yet"),
        (":word + 1", ":word holds a text that is neither"),
        ("true + 1", "true stands where a number is needed"),
        ("1 and true", "1 stands where a truth value is needed"),
        ("random(2, 1)", "the range is empty"),
        ("random_gaussian(1, 10, 1.5)", "allowed: 2 or more"),
        ("random_exponential(1, 10, 0)", "allowed: above 0"),
        ("random_zipfian(1, 10, 1)", "allowed: 1.001 to 1000"),
        ("sqrt(-1)", "no number comes of"),
        ("permute(1, 0)", "allowed: above 0"),
    ],
)
def test_what_has_no_value_is_said(text: str, said: str) -> None:
    """An expression without a value gives an error instead of a number."""
    with pytest.raises(EvaluationError) as caught:
        worth(text, word="blue")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"), [("12", 12), (" -3", -3), ("1.5", 1.5), ("true", True), ("OFF", False), ("null", None)]
)
def test_the_text_of_a_variable_is_taken_as_what_it_spells(text: str, value: Value) -> None:
    """The text of a variable, from a query or --define, becomes the value that it spells."""
    assert worth(":x", x=text) == value


def _drawn(text: str, times: int = 20_000) -> list[int]:
    expression, _ = parsed(text)
    scope = ScriptScope(Chance(Random(SEED)))
    found = []
    for _ in range(times):
        scope.chance.begin()
        value = expression(scope)
        assert isinstance(value, int)
        found.append(value)
    return found


def test_random_numbers_keep_to_their_range_and_shape() -> None:
    """Random numbers are in range and have their distribution: uniform, exponential, gaussian, zipfian."""
    even = Counter(_drawn("random(1, 10)"))
    assert set(even) == set(range(1, 11))
    assert max(even.values()) < 1.2 * min(even.values())
    falling = Counter(_drawn("random_exponential(1, 10, 3)"))
    # share of the first of ten parts: (1 - e^-0.3) / (1 - e^-3)
    assert falling[1] / 20_000 == pytest.approx((1 - math.exp(-0.3)) / (1 - math.exp(-3)), rel=0.05)
    bell = Counter(_drawn("random_gaussian(1, 100, 5)"))
    # "67% of values are drawn from the middle 1 / parameter" (the manual)
    assert sum(bell[each] for each in range(41, 61)) / 20_000 == pytest.approx(0.68, abs=0.02)
    ranks = Counter(_drawn("random_zipfian(1, 1000, 2)"))
    assert ranks[1] / ranks[2] == pytest.approx(4, rel=0.1)
    assert min(ranks) == 1
    assert max(ranks) <= 1000


@pytest.mark.parametrize("size", [1, 2, 7, 64, 1000])
def test_permute_meets_each_number_once(size: int) -> None:
    """The function permute gives each number once, in another order for another seed."""
    for seed in (1, 2):
        assert {worth(f"permute({each}, {size}, {seed})") for each in range(size)} == set(range(size))
    some = [worth(f"permute({each}, 1000, 1)") for each in range(20)]
    assert some != [worth(f"permute({each}, 1000, 2)") for each in range(20)]


def test_what_is_made_again_draws_the_same() -> None:
    """A retried script draws the same numbers."""
    chance = Chance(Random(SEED))
    chance.begin()
    first = [chance.random() for _ in range(3)]
    chance.again()
    assert [chance.random() for _ in range(4)][:3] == first
    chance.begin()
    assert chance.random() not in first

"""Tests of values for variables: ranges, columns, files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pydantic import ValidationError

from pinchpoint_scenarios.contract import Endpoint
from pinchpoint_scenarios.errors import ScenarioError
from pinchpoint_scenarios.sql_script.marked_copy import MarkedCopy
from pinchpoint_scenarios.sql_script.scope import Chance, GeneratedText, ScriptScope, Value, literal
from pinchpoint_scenarios.sql_script.values import ValuesParams, counter, drawer, read_csv


def drawn(
    times: int,
    listed: list[Value] | None = None,
    session: int = 0,
    numbers: Iterator[int] | None = None,
    **given: Any,
) -> list[Value]:
    """Return ``count`` values."""
    scope = ScriptScope(Chance(Random(3)))
    draw = drawer(ValuesParams.model_validate(given), listed or [], session, numbers or counter(0))
    return [draw(scope) for _ in range(times)]


def test_numbers_keep_to_their_range_and_distribution() -> None:
    """Numbers are in range with their distribution, and hot values are not adjacent."""
    even = Counter(drawn(5000, low=5, high=9))
    assert set(even) == {5, 6, 7, 8, 9}
    assert max(even.values()) < 1.3 * min(even.values())
    hot = Counter(drawn(20_000, distribution="zipfian", low=1, high=1000, exponent=1.2)).most_common(3)
    assert hot[0][1] > 1.8 * hot[1][1], "the first comes twice as often as the second"
    assert abs(int(str(hot[0][0])) - int(str(hot[1][0]))) > 10, "neighbours would be read in one go"
    around = [
        float(str(each)) for each in drawn(5000, distribution="normal", mean=50, deviation=5, decimals=2)
    ]
    assert sum(around) / 5000 == pytest.approx(50, abs=0.5)
    assert all(isinstance(each, int) for each in drawn(9, distribution="normal", mean=50, deviation=5))


def test_a_sequence_gives_each_number_once_over_all_sessions() -> None:
    """A sequence gives each number once over all sessions and workers, starting at low."""
    found = [
        each
        for numbers in (counter(0), counter(7))
        for session in (0, 1, 1)
        for each in drawn(50, session=session, numbers=numbers, distribution="sequence", low=10)
    ]
    assert len(set(found)) == 300
    assert min(int(str(each)) for each in found) == 10
    assert drawn(4, ["a", "b", "c"], 1, distribution="sequence", csv="x") == ["b", "c", "a", "b"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "uniform is given no range; needed: low and high, or a column, or a csv"),
        ({"low": 1}, "uniform is given low; needed: low and high"),
        ({"low": 2, "high": 1}, "allowed: low no more than high"),
        ({"distribution": "normal", "low": 1, "high": 2}, "needed: mean and deviation"),
        ({"column": "t.x", "csv": "x"}, "both column and csv"),
        ({"column": "t.x", "low": 1}, "low is given with column"),
        ({"csv": "x", "distribution": "normal"}, "distribution: normal is given with csv"),
        ({"column": "x"}, "'x' is no column; allowed: table.column"),
    ],
)
def test_what_does_not_fit_together_is_said(given: dict[str, Any], said: str) -> None:
    """A value needs exactly one source with all its keys."""
    with pytest.raises(ValidationError) as caught:
        ValuesParams.model_validate(given)
    assert said in str(caught.value)


def test_a_file_gives_numbers_bare_and_texts_as_literals(tmp_path: Path) -> None:
    """A file gives numbers unquoted and texts as literals with escaped quotes; an empty cell is null."""
    file = tmp_path / "people.csv"
    file.write_text('name,zip,age\nO\'Neill,0815,40\n"A, B",123,\n', encoding="utf-8-sig")
    assert [literal(each) for each in read_csv(file, "name")] == ["'O''Neill'", "'A, B'"]
    assert [literal(each) for each in read_csv(file, "zip")] == ["'0815'", "'123'"], "0815 is no number"
    assert [literal(each) for each in read_csv(file, "age")] == ["40", "NULL"]
    assert read_csv(file, None) == read_csv(file, "name")
    with pytest.raises(ScenarioError, match=r"people\.csv:1: unknown field 'nam'; allowed: age, name, zip"):
        read_csv(file, "nam")
    for divider in ";\t":
        file.write_text(f"name{divider}zip\nA, B{divider}0815\n", encoding="utf-8")
        assert [literal(read_csv(file, each)[0]) for each in ("name", "zip")] == ["'A, B'", "'0815'"]
    file.write_text("name\n", encoding="utf-8")
    with pytest.raises(ScenarioError, match="no values; needed: a header and at least one row"):
        read_csv(file, None)


def test_a_column_gives_a_sample_of_all_its_values(bank: Endpoint) -> None:
    """A column gives an even sample of its values, texts as literals; a wrong name gives an error."""
    copy = MarkedCopy(bank, "pinchpoint_test", empty_will_do=False)

    def column(name: str, **given: Any) -> list[Value]:
        return copy.column("x", ValuesParams(column=name, **given))

    assert [int(str(each)) for each in column("account.id")] == list(range(1, 101))
    tenth = [int(str(each)) for each in column("public.account.id", sample=10)]
    assert len(tenth) == 10
    assert tenth[-1] == 100
    assert tenth[0] <= 10
    assert not any(isinstance(each, GeneratedText) for each in column("account.balance"))
    assert literal(column("account.name")[0]) == "'account ''1'"
    with pytest.raises(
        ScenarioError, match=r"values\.x: column 'account\.nothing' cannot be read: .*does not"
    ):
        column("account.nothing")
    with pytest.raises(ScenarioError, match="holds no value"):
        column("moved.amount")

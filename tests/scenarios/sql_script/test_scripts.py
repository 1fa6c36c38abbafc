"""Tests of scripts' parsing: commands, statements, and errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scenarios.sql_script.helpers import written

from pinchpoint_scenarios.errors import ScenarioError
from pinchpoint_scenarios.sql_script.lexer import Ref
from pinchpoint_scenarios.sql_script.params import SqlScriptParams, read_scripts
from pinchpoint_scenarios.sql_script.script import Branch, Set, Sleep, SqlStatement, flat, read


def statements(text: str) -> list[str]:
    """Return a script's statements, with variables as :name or, in quotes, as :"name"."""
    shown = []
    for sql in read("s", "s.sql", text).statements():
        pieces = [
            (f':"{each.name}"' if each.quoted else f":{each.name}") if isinstance(each, Ref) else each
            for each in sql.pieces
        ]
        shown.append("".join(pieces))
    return shown


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SELECT 1; SELECT 2", ["SELECT 1", "SELECT 2"]),
        ("-- a; b\nSELECT 1 -- c\n;", ["SELECT 1"]),
        ("SELECT /* a; /* b; */ c; */ 1;", ["SELECT /* a; /* b; */ c; */ 1"]),
        ("SELECT 'a;b' || $x$;$x$, E'\\';' AS \";\";", ["SELECT 'a;b' || $x$;$x$, E'\\';' AS \";\""]),
        ("SELECT (SELECT 1;);", ["SELECT (SELECT 1;)"]),
        ("SELECT :a::int + :b, x[1:2], ':c';", ["SELECT :a::int + :b, x[1:2], ':\"c\"'"]),
        ("SELECT 1\\; SELECT 2;", ["SELECT 1; SELECT 2"]),
        ("SELECT 1 \\gset\nSELECT 2;", ["SELECT 1", "SELECT 2"]),
        (";;SELECT 1;;", ["SELECT 1"]),
        ("SELECT 1 - 2 / 3;", ["SELECT 1 - 2 / 3"]),
        ("SELECT a[1:n], b[:i], ARRAY[:x, :y];", ['SELECT a[1:"n"], b[:i], ARRAY[:x, :y]']),
        ("SELECT 1); SELECT (2;", ["SELECT 1)", "SELECT (2;"]),
    ],
)
def test_statements_are_cut_as_psql_cuts_them(text: str, found: list[str]) -> None:
    """A statement ends at a semicolon outside quotes, comments and parentheses, or at a command."""
    assert statements(text) == found


def test_every_command_is_read() -> None:
    """Each command is read in order with its line, in nested branches."""
    script = read(
        "s",
        "s.sql",
        "\\set a 1 + \\\n  2\nBEGIN;\n\\if :a > 1\n\\sleep 5 ms\n\\elif :a\nSELECT 1\n\\else\n"
        "\\if true\n\\sleep :a us\n\\endif\n\\endif\nSELECT 1 AS x, 2 AS y\n"
        "\\gset p_\nSELECT 3 \\aset\nEND;\n",
    )
    kinds = [(type(each).__name__, each.line) for each in flat(script.commands)]
    assert kinds == [
        ("Set", 1),
        ("SqlStatement", 3),
        ("Branch", 4),
        ("Sleep", 5),
        ("SqlStatement", 7),
        ("Branch", 9),
        ("Sleep", 10),
        ("SqlStatement", 13),
        ("SqlStatement", 15),
        ("SqlStatement", 16),
    ]
    setting, begin, branch, first, *_ = flat(script.commands)
    assert isinstance(setting, Set)
    assert setting.name == "a"
    assert isinstance(begin, SqlStatement)
    assert begin.word == "begin"
    assert begin.prefix is None
    assert isinstance(branch, Branch)
    assert len(branch.arms) == 3
    assert branch.arms[2].condition is None
    assert isinstance(first, Sleep)
    assert (first.amount, first.unit_s) == (5, 0.001)
    *_, gset, aset, _ = script.statements()
    assert (gset.prefix, gset.many, aset.prefix, aset.many) == ("p_", False, "", True)
    assert script.variables() == {"a"}


@pytest.mark.parametrize(
    ("text", "pause_s"), [("5", 5), ("5ms", 0.005), ("20 MS", 0.02), ("+3 us", 3e-6), ("7S", 7)]
)
def test_a_sleep_is_written_in_any_of_pgbenchs_ways(text: str, pause_s: float) -> None:
    """A sleep's unit is accepted with or without a space, in any case."""
    sleep, _ = read("s", "s.sql", f"\\sleep {text}\nSELECT 1;").commands
    assert isinstance(sleep, Sleep)
    assert isinstance(sleep.amount, float)
    assert sleep.amount * sleep.unit_s == pytest.approx(pause_s)


def test_a_statement_is_called_by_its_first_word() -> None:
    """A statement is named after its first word, behind comments and parentheses."""
    text = (
        "/* app */ -- why\n (SELECT 1);\nselect(2);\nWITH x AS (SELECT 1) SELECT 'COPY t FROM STDIN';\n/**/;"
    )
    words = [sql.word for sql in read("s", "s.sql", text).statements()]
    assert words == ["select", "select", "with", "statement"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\\setshell x date\nSELECT 1;", "s.sql:1: \\setshell is refused: it starts a program"),
        ("SELECT 1;\n\\shell date", "s.sql:2: \\shell is refused"),
        ("\\startpipeline\nSELECT 1;", "s.sql:1: \\startpipeline is refused: statements of a pipeline"),
        ("\\sett x 1\nSELECT 1;", "s.sql:1: unknown command 'sett'; allowed:"),
        ("\\set x\nSELECT 1;", "s.sql:1: \\set x; allowed: \\set NAME EXPRESSION"),
        ("SELECT 1;\n\\set x 1 +", "s.sql:2: 1 +: the expression ends"),
        ("\\sleep 1 min\nSELECT 1;", "s.sql:1: \\sleep 1 min; allowed: \\sleep NUMBER [us|ms|s]"),
        ("\\sleep 1ms ms\nSELECT 1;", "s.sql:1: \\sleep 1ms ms; allowed:"),
        ("\\sleep 0.5\nSELECT 1;", "s.sql:1: \\sleep 0.5; allowed: \\sleep NUMBER [us|ms|s], a whole number"),
        ("\\gset\nSELECT 1;", "s.sql:1: \\gset without a statement"),
        ("\\if true\nSELECT 1;", "s.sql:1: an \\if that never ends; allowed: an \\endif after it"),
        ("SELECT 1;\n\\endif", "s.sql:2: \\endif without an \\if"),
        ("\\if true\n\\else\n\\elif true\n\\endif\nSELECT 1;", "s.sql:3: \\elif after \\else"),
        ("SELECT 1;\nSELECT 'a", "s.sql:2: a quote that never ends; add the closing '"),
        ("SELECT $x$ a", "s.sql:1: a $x$ that never ends"),
        ("/* a", "s.sql:1: a comment that never ends"),
        ("COPY t FROM STDIN;", "s.sql:1: COPY from or to the client"),
        ("/* app */ copy t from stdin(format csv);", "s.sql:1: COPY from or to the client"),
        ("BEGIN\\; COPY (SELECT 1) TO STDOUT;", "s.sql:1: COPY from or to the client"),
        ("-- nothing", "s.sql: no statement; needed: at least one"),
        ("SELECT 1;\n\\ \n", "s.sql:2: a backslash without a command"),
    ],
)
def test_what_cannot_be_used_is_said_with_its_line(text: str, said: str) -> None:
    """An invalid script gives an error with file, line, value and allowed values."""
    with pytest.raises(ScenarioError) as caught:
        read("s", "s.sql", text)
    assert str(caught.value).startswith(said)


def chosen(**params: Any) -> dict[str, float]:
    """Return operation -> weight."""
    found = read_scripts(SqlScriptParams.model_validate(params))
    return {each.script.name: each.weight for each in found}


def test_scripts_come_from_files_and_folders_with_weights(tmp_path: Path) -> None:
    """Scripts come from pgbench's FILE@WEIGHT and from folders, with weights by name; 0 leaves one out."""
    a, b, c = written(tmp_path, a="SELECT 1;", b="SELECT 2;", c="SELECT 3;")
    assert chosen(scripts=str(tmp_path)) == {"a": 1, "b": 1, "c": 1}
    assert chosen(scripts=[f"{a}@3", b]) == {"a": 3, "b": 1}
    assert chosen(scripts=[str(tmp_path)], weights={"b": 0, "c": 2.5}) == {"a": 1, "c": 2.5}
    assert chosen(scripts=[f"{c}@0", a]) == {"a": 1}
    assert chosen(scripts=[f"{tmp_path}@2"]) == {"a": 2, "b": 2, "c": 2}
    (tmp_path / "none").mkdir()
    with pytest.raises(ScenarioError, match=r"none: a folder without a script; needed: files .* in \.sql"):
        chosen(scripts=[str(tmp_path / "none")])
    marked = tmp_path / "marked.sql"
    marked.write_text("SELECT :scale;", encoding="utf-8-sig")
    [found] = read_scripts(SqlScriptParams(scripts=(str(marked),)))
    assert [sql.word for sql in found.script.statements()] == ["select"]


def test_everything_wrong_with_the_files_is_said_at_once(tmp_path: Path) -> None:
    """One error lists the problems of all files."""
    good, bad, worse = written(tmp_path, good="SELECT :x;", bad="\\if", worse="SELECT '")
    (tmp_path / "binary.sql").write_bytes(b"\xff\xfe")
    with pytest.raises(ScenarioError) as caught:
        chosen(scripts=[bad, worse, str(tmp_path / "binary.sql"), str(tmp_path / "gone.sql")])
    said = str(caught.value)
    assert "bad.sql:1:" in said
    assert "worse.sql:1:" in said
    assert "binary.sql: not UTF-8 text" in said
    assert "gone.sql: cannot be read (No such file" in said
    with pytest.raises(ScenarioError, match=r"good\.sql:1: unknown variable 'x'; allowed: .*scale"):
        chosen(scripts=good)
    with pytest.raises(ScenarioError, match="weights: unknown script 'goood'"):
        chosen(scripts=good, define={"x": 1}, weights={"goood": 1})
    with pytest.raises(ScenarioError, match="every script has the weight 0"):
        chosen(scripts=f"{good}@0", define={"x": 1})
    with pytest.raises(ScenarioError, match="another script is named good"):
        chosen(scripts=[good, good], define={"x": 1})
    with pytest.raises(ScenarioError, match="no script is named"):
        chosen()


def test_what_cannot_be_prepared_is_said(tmp_path: Path) -> None:
    """Variables in quotes, or in combined statements, cannot be prepared and give an error."""
    quoted, joined = written(tmp_path, quoted="SELECT ':scale, :other';", joined="SELECT 1\\; SELECT 2;")
    assert chosen(scripts=quoted) == {"quoted": 1}
    with pytest.raises(ScenarioError, match=r"quoted\.sql:1: :scale within quotes cannot be a parameter"):
        chosen(scripts=quoted, protocol="prepared")
    with pytest.raises(ScenarioError, match="cannot be prepared; use protocol: simple"):
        chosen(scripts=joined, protocol="prepared")


def test_paths_begin_in_the_plans_folder() -> None:
    """Each path in the parameters is relative to the plan's folder; invalid values are left to validation."""
    given = {
        "scripts": ["a.sql@3", "/b", 5],
        "setup": "s.sql",
        "values": {"x": {"csv": "x.csv"}, "y": {"column": "t.y"}, "z": 5},
    }
    assert SqlScriptParams.placed(given, Path("/plans")) == {
        "scripts": ["/plans/a.sql@3", "/b", 5],
        "setup": "/plans/s.sql",
        "values": {"x": {"csv": "/plans/x.csv"}, "y": {"column": "t.y"}, "z": 5},
    }
    assert SqlScriptParams.placed({"scripts": "sql"}, Path("/plans")) == {"scripts": "/plans/sql"}

"""The messages about broken files, word for word.

Every folder below ``broken/`` is a case: farm.yaml, plan.yaml or both (a missing file is valid), and the
whole message in ``expected.txt``.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from harness.plan.samples import FARM, PLAN, write

from pinchpoint.base.errors import InputError
from pinchpoint.plan import load, load_farm
from pinchpoint.plan.problems import unknown
from pinchpoint_collectors.common.names import nearest_name

BAD_INDENTATION = (
    ":2: not valid YAML: a ':' where no field can begin; "
    "check the indentation of this line and the one above, or quote the text"
)
OPEN_LIST = (
    ":2: not valid YAML: expected ',' or ']', but got ':'; "
    "while parsing a flow sequence that begins in line 1"
)
CASES = sorted(path.name for path in Path(__file__).with_name("broken").iterdir())
BOMB = "a: &a [1]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n"
    for before, name in zip("abcdef", "bcdefg", strict=True)
)


def message(farm: Path, plan: Path) -> str:
    """Return the message of ``load``."""
    with pytest.raises(InputError) as raised:
        load(farm, plan)
    return str(raised.value)


@pytest.mark.parametrize("case", CASES)
def test_all_that_is_wrong_is_said_at_once(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All errors are listed with file, line, field, value, allowed values and nearest name."""
    folder = Path(__file__).with_name("broken") / case
    given = {path.name: path.read_text() for path in folder.iterdir()}
    write(tmp_path, given.get("farm.yaml", FARM), given.get("plan.yaml", PLAN))
    monkeypatch.chdir(tmp_path)
    said = message(Path("farm.yaml"), Path("plan.yaml"))
    assert said + "\n" == given["expected.txt"]
    assert "hunter2" not in said


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", ": the file is empty; 'pinchpoint init DIR' writes one to start from"),
        (b"# only a comment\n", ": the file is empty; 'pinchpoint init DIR' writes one to start from"),
        (b"- a\n", ":1: the file holds a list; allowed: fields with values, such as 'name: NAME'"),
        (
            b"just text",
            ":1: the file holds a single value; allowed: fields with values, such as 'name: NAME'",
        ),
        (b"name: f\n\tb: 1\n", ":2: not valid YAML: a tab where spaces belong; indent with spaces"),
        (
            b"name: f\n environment: test\n",
            BAD_INDENTATION,
        ),
        (b"a: 1\nname: 'x\n", ":2: not valid YAML: a quote is opened and never closed; close it"),
        (
            b"name: [a\nb: c\n",
            OPEN_LIST,
        ),
        (b"a: 1\nb: {c: 1\n", ":2: not valid YAML: a '{' is opened and never closed; close it with '}'"),
        (b"a: *x\n", ":1: not valid YAML: found undefined alias 'x'"),
        (b"a: &a [*a]\n", ":1: an alias (*) refers to the value it stands in; write the value out"),
        (b"---\na: 1\n---\nb: 1\n", ":3: not valid YAML: a second document begins; keep one per file"),
        (b"name: f\nb: \x00\x01", ":2: not text: it holds the control character 0x00; save it as plain text"),
        (b"name: f\nb: caf\xe9\n", ":2: not UTF-8 text; save the file as UTF-8"),
        ("name: f\n".encode("utf-16"), ":1: not UTF-8 text; save the file as UTF-8"),
        (b"\x89PNG\r\n\x1a\n", ":1: not UTF-8 text; save the file as UTF-8"),
        (b"x: " + b"[" * 3000, ":1: nested too deeply; at most 40 levels"),
        (b"x: " + b"[" * 60 + b"]" * 60, ":1: nested too deeply; at most 40 levels"),
        (BOMB.encode(), ":1: more than 100000 values once its aliases are followed"),
        (b"a: " + b"x" * 2**20, ": larger than 1 MiB; a farm or a plan is a short text file"),
    ],
)
def test_a_file_that_cannot_be_parsed_is_one_sentence(content: bytes, said: str, tmp_path: Path) -> None:
    """A file that cannot be parsed gives one sentence with the error and its place."""
    farm, _ = write(tmp_path, content)
    with pytest.raises(InputError) as raised:
        load_farm(farm)
    assert str(raised.value) == f"{farm}{said}"


def test_a_list_in_place_of_fields_is_one_problem(tmp_path: Path) -> None:
    """A list in place of a mapping is one problem, not one per missing field."""
    top = "name: f\nenvironment: test\nendpoints: {}\n"
    farm, _ = write(tmp_path, f"{top}tiers:\n  sql:\n    hosts:\n    - sql1:\n")
    with pytest.raises(InputError) as raised:
        load_farm(farm)
    assert [one for one in raised.value.problems if "sql1" in one or "hosts" in one] == [
        f"{farm}:6: tiers.sql.hosts: found a list; allowed: fields with values ({{name: value}})"
    ]


def test_a_file_that_is_something_else_fills_no_screen(tmp_path: Path) -> None:
    """A file with very many problems shows the first ones and the number of the others."""
    farm, _ = write(tmp_path, "".join(f"k{number}: 1\n" for number in range(1000)))
    with pytest.raises(InputError) as raised:
        load_farm(farm)
    assert len(raised.value.problems) == 101
    assert raised.value.problems[-1] == f"{farm}: 903 more problems, not shown"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    """A missing file and a folder are reported together."""
    assert message(tmp_path / "no.yaml", tmp_path) == (
        f"{tmp_path / 'no.yaml'}: there is no such file; check the path; "
        "'pinchpoint init DIR' writes a farm.yaml and a plan.yaml\n"
        f"{tmp_path}: this is a folder; name the YAML file in it"
    )


def test_a_pipe_that_nothing_is_written_to(tmp_path: Path) -> None:
    """A pipe is refused, because reading it would never end."""
    os.mkfifo(tmp_path / "farm.yaml")
    with pytest.raises(InputError, match=r"farm\.yaml: is no plain file"):
        load_farm(tmp_path / "farm.yaml")


def test_a_symbolic_link_to_itself(tmp_path: Path) -> None:
    """A symbolic link to itself gives the system's message in a sentence."""
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(InputError, match=r"loop: cannot be read \(Too many levels of symbolic links\)"):
        load_farm(tmp_path / "loop")


def test_a_file_one_has_no_right_to(closed_folder: Path) -> None:
    """For an unreadable file the missing rights are named."""
    with pytest.raises(InputError, match="no right to read this file"):
        load_farm(closed_folder / "farm.yaml")


@pytest.mark.parametrize(
    ("farm", "plan", "words"),
    [
        (PLAN, FARM, r"\Afarm.yaml and plan.yaml are swapped; give farm.yaml --farm plan.yaml\Z"),
        (PLAN, PLAN, r"\Afarm.yaml: is a plan, and a farm is needed here; give farm.yaml\Z"),
        (FARM, FARM, r"\Aplan.yaml: is a farm, and a plan is needed here; give plan.yaml\Z"),
    ],
)
def test_files_of_the_other_kind_are_one_error(
    farm: str, plan: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A swapped farm and plan file give one error, not one per field."""
    write(tmp_path, farm, plan)
    monkeypatch.chdir(tmp_path)
    assert re.search(words, message(Path("farm.yaml"), Path("plan.yaml")))


@pytest.mark.parametrize(
    ("name", "names", "found"),
    [("p33", ["p3", "p30", "p4"], "p30"), ("sq", ["sql", "web"], "sql"), ("x", ["sql"], None)],
)
def test_the_nearest_name_has_the_same_length(name: str, names: list[str], found: str | None) -> None:
    """The nearest name prefers the same length, as a wrong digit is likelier than an extra one."""
    assert nearest_name(name, names) == found


def test_of_many_names_ten_are_listed() -> None:
    """Of many allowed names the ten nearest are listed."""
    assert unknown("disk", "p33", [f"p{number}" for number in range(60)]).allowed.endswith("and 50 more")

"""Every command that README.md and the guides in docs/ show works as it is written there.

Commands are in blocks marked ``sh``. A page's commands run in order, in a folder with the files that they
name. For commands that need a farm only the options are parsed; those of the first hour load a farm in a slow
test.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from support import PINCHPOINT, run_cli

from pinchpoint import cli

ROOT = Path(__file__).resolve().parents[1]
CODE = ("scenarios", "collectors", "infra", "harness", "tests")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
KEPT = ROOT / "tests" / "golden_runs"
NAMED = {
    "runs/monday": KEPT / "real" / "log-cap-240",
    "runs/tuesday": KEPT / "real" / "log-floor-35ms",
    "runs/wednesday": KEPT / "real" / "healthy-mix",
    "runs/production": KEPT / "real" / "nosql-cap-640",
    "nightly": KEPT / "trends" / "a-fall",
    "probes/new-disk": KEPT / "probes" / "database",
    "probes/other-disk": KEPT / "probes" / "database",
    "infra/examples": ROOT / "infra" / "examples",
    "logo.svg": ROOT / "tests" / "harness" / "report" / "logo.svg",
    "diskspd.xml": KEPT / "results" / "diskspd.xml",
    "sql1-monday.csv": KEPT / "imports" / "perfmon.csv",
}
"""File that the pages name -> the recording used in its place."""

ON_A_FARM = frozenset({"demo", "run", "check", "probe", "farm", "worker"})
"""Commands that need servers or a disk; only their options and arguments are parsed."""
ON_SERVERS = frozenset({"--sql", "--discover"})
"""Options with which any command needs servers."""


def _commands(page: Path) -> list[list[str]]:
    blocks = re.findall(r"^```sh\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return [words for line in lines if (words := shlex.split(line, comments=True))]


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a folder with every file that the pages name."""
    for name, kept in NAMED.items():
        place = tmp_path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if kept.is_dir() else shutil.copyfile)(kept, place)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _parse(words: list[str]) -> None:
    """Parse a command's arguments as click does before the command begins; raise click's error."""
    command = cli.command(words[0])
    arguments = words[1:]
    if subcommands := getattr(command, "commands", None):
        command, arguments = subcommands[arguments[0]], arguments[1:]
    command.make_context(words[0], arguments)


@pytest.mark.parametrize("page", [page for page in PAGES if _commands(page)], ids=lambda page: page.stem)
def test_commands_of_a_page_run(page: Path, workplace: Path) -> None:
    """The commands of a page work as written."""
    for words in _commands(page):
        program, *arguments = words
        if program == "make":
            said = subprocess.run(["make", "-n", *arguments], cwd=ROOT, capture_output=True, check=False)
            assert said.returncode == 0, f"{page.name}: {words}: {said.stderr.decode()}"
        elif arguments[0] in ON_A_FARM or ON_SERVERS & set(arguments):
            _parse(arguments)
        else:
            assert Path(program).name == "pinchpoint", f"{page.name}: {words}: not a command of ours"
            ended = run_cli(*arguments)
            assert ended.returncode == 0, f"{page.name}: {words}: {ended.stdout}{ended.stderr}"


READERS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(path for path in PAGES if path.parent.name == "docs"),
    *sorted((ROOT / "docs" / "decisions").glob("*.md")),
    *sorted(path for folder in CODE for path in (ROOT / folder).rglob("README.md")),
]
EXAMPLES = frozenset({"csvfile.py"})
"""Files that a page asks its reader to write."""


@pytest.mark.parametrize("page", READERS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_each_file_of_the_code_that_a_page_names_is_there(page: Path) -> None:
    """Each source file that a page names exists."""
    ours = {
        f"/{path.relative_to(ROOT).as_posix()}" for folder in CODE for path in (ROOT / folder).rglob("*.py")
    }
    named = re.findall(r"`((?!\./)[\w./]+\.py)`", page.read_text(encoding="utf-8"))
    wanted = {name.removeprefix("../") for name in named} - EXAMPLES
    assert {name for name in wanted if not any(path.endswith(f"/{name}") for path in ours)} == set()


@pytest.mark.farm
@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.timeout(900)
def test_the_first_hour(workplace: Path) -> None:
    """The three commands of README.md load a farm on this machine and write a report."""
    ours = [words[1:] for words in _commands(ROOT / "README.md") if words[0].endswith("pinchpoint")]
    for words in ours[:3]:
        ended = subprocess.run(
            [PINCHPOINT, *words], capture_output=True, text=True, check=False, env=os.environ
        )
        assert ended.returncode in {0, 3}, (
            f"{words}: {ended.stdout}{ended.stderr}"
        )  # 3: other tests use the CPU
    assert (workplace / ended.stdout.splitlines()[-1] / "report.html").exists()


@pytest.mark.slow
@pytest.mark.alone
def test_a_probe_of_the_guide(workplace: Path) -> None:
    """The guide's probe of a folder works, with a shorter time than the suite's own."""
    [words, *_] = [
        words[1:] for words in _commands(ROOT / "docs" / "storage-probes.md") if "/srv/data" in words
    ]
    words[words.index("/srv/data")] = str(workplace)
    ended = run_cli(*words, "--time-per-cell", "1s", "--repeat", "1", "--size", "16MiB")
    assert ended.returncode == 0, ended.stderr

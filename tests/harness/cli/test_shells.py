"""`--install-completion` in real shells, and `--man` in the real formatter, with their import cost."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import PINCHPOINT, require

from pinchpoint import cli

ASK = {
    "bash": "source {file}; COMP_WORDS=(pinchpoint {word}); COMP_CWORD={number}; "
    "_pinchpoint_completion pinchpoint; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
    "fish": "complete -C 'pinchpoint {word}'",
    "zsh": "compdef() {{ }}; source {file}; compadd() {{ print -l -- $completions }}; "
    "_describe() {{ print -l -- $completions_with_descriptions }}; "
    "words=(pinchpoint {word}); CURRENT=$(( {number} + 1 )); _pinchpoint_completion",
}
"""Shell command that prints the completions without a terminal, by shell."""


@pytest.mark.parametrize("shell", ASK)
def test_a_shell_completes(shell: str, tmp_path: Path) -> None:
    """After the installation commands and options are completed; a second one changes nothing."""
    program = require(shell, shell)
    environ = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    environ |= {"HOME": str(tmp_path), "SHELL": program, "PATH": f"{PINCHPOINT.parent}:{os.environ['PATH']}"}
    for _ in range(2):
        done = subprocess.run(
            [PINCHPOINT, "--install-completion"], env=environ, capture_output=True, text=True, check=True
        )
    file = Path(done.stdout.splitlines()[0])
    assert file.is_relative_to(tmp_path)
    if shell == "zsh":
        assert (tmp_path / ".zshrc").read_text().count(f"source '{file}'") == 1
    for word, number, wanted in (("ana", 1, "analyse"), ("run --keep", 2, "--keep-data")):
        ask = ASK[shell].format(file=file, word=word, number=number)
        said = subprocess.run([shell, "-c", ask], env=environ, capture_output=True, text=True, check=False)
        assert wanted in said.stdout, (said.stdout, said.stderr)


def test_an_unknown_shell_is_said(tmp_path: Path) -> None:
    """An unknown shell gives exit status 2 and the list of supported shells."""
    done = subprocess.run(
        [PINCHPOINT, "--install-completion"],
        env=os.environ | {"HOME": str(tmp_path), "SHELL": "/bin/csh"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "found the shell 'csh'; allowed: bash, zsh, fish" in done.stderr
    assert not list(tmp_path.iterdir())


def test_the_manual_page_has_every_command() -> None:
    """The manual page has every command, and the formatter reports no problem."""
    groff = require("groff", "groff-base")
    page = subprocess.run([PINCHPOINT, "--man"], capture_output=True, text=True, check=True).stdout
    done = subprocess.run(
        [groff, "-man", "-ww", "-Tutf8", "-P-cbou"], input=page, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    words = " ".join(done.stdout.split())
    assert [name for name in cli.COMMANDS if f"pinchpoint {name}" not in words] == []
    assert "An objective was missed" in words


@pytest.mark.parametrize("given", [["--help"], ["_PINCHPOINT_COMPLETE=bash_complete"]], ids=["help", "Tab"])
def test_few_modules_are_loaded(given: list[str]) -> None:
    """Completion and manual import at most 500 modules."""
    count = "import atexit, sys; atexit.register(lambda: sys.stderr.write(str(len(sys.modules))))"
    start = f"{count}; sys.argv = ['pinchpoint', *{[one for one in given if one.startswith('--')]}]"
    done = subprocess.run(
        [sys.executable, "-c", f"{start}; from pinchpoint.cli import main; main()"],
        env=os.environ
        | {"COMP_WORDS": "pinchpoint ", "COMP_CWORD": "1"}
        | dict(one.split("=") for one in given if "=" in one),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "analyse" in done.stdout
    assert int(done.stderr) <= 500

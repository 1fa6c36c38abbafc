"""``pinchpoint --install-completion``: installs completion of commands, options and files in the shell."""

from __future__ import annotations

import os
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from pinchpoint.base.errors import FarmUnavailable, InputError

SHELLS = ("bash", "zsh", "fish")
_NAME, _VARIABLE = "pinchpoint", "_PINCHPOINT_COMPLETE"


def install(shell: str) -> str:
    """Write the completion script. Return sentences on what was written and on what the user must still do.

    Args:
        shell: one of ``SHELLS``, or "" for the shell in the environment.
    """
    chosen = shell or Path(os.environ.get("SHELL", "")).name
    if chosen not in SHELLS:
        raise InputError(
            f"--install-completion: found the shell {chosen!r}; allowed: {', '.join(SHELLS)}, as in "
            "--install-completion=bash"
        )
    path, made = _place(chosen), get_completion_class(chosen)
    assert made is not None  # noqa: S101 -- click has these three
    try:
        text = made(click.Command(_NAME), {}, _NAME, _VARIABLE).source()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n", encoding="utf-8")
        added = _read_by_zsh(path) if chosen == "zsh" else ""
    except OSError as error:
        raise FarmUnavailable(f"{error.filename}: cannot be written ({error.strerror})") from error
    return f"{path}{added}\nOpen a new shell, and press Tab after `pinchpoint `."


def _place(shell: str) -> Path:
    home = Path.home()
    data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    if shell == "bash":
        return data / "bash-completion" / "completions" / _NAME
    if shell == "zsh":
        return data / "pinchpoint" / "completion.zsh"
    return (
        Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "fish" / "completions" / f"{_NAME}.fish"
    )


def _read_by_zsh(path: Path) -> str:
    """Add one line to .zshrc if it is missing, because zsh searches no folder of the user by itself."""
    startup = Path(os.environ.get("ZDOTDIR") or Path.home()) / ".zshrc"
    line = f"autoload -Uz compinit && compinit && source '{path}'"
    there = startup.read_text(encoding="utf-8") if startup.exists() else ""
    if line not in there.splitlines():
        with startup.open("a", encoding="utf-8") as file:
            file.write(f"{'' if there.endswith(chr(10)) or not there else chr(10)}{line}\n")
    return f"\n{startup}"

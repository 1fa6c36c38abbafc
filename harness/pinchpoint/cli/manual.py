"""``pinchpoint --man``: writes the manual page from the help of every command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.metadata import version

import click

from pinchpoint.base.errors import ExitStatus

_STATUSES = {
    ExitStatus.FINE: "Fine.",
    ExitStatus.OBJECTIVES_MISSED: "An objective was missed or not measured.",
    ExitStatus.BAD_INPUT: "Bad input or usage; nothing was started.",
    ExitStatus.NOT_EVIDENCE: "The run is not valid.",
    ExitStatus.GUARD: "A guard or a limit of the plan stopped it.",
    ExitStatus.ENVIRONMENT: "The environment failed: unreachable, no rights, a port, space.",
    ExitStatus.INTERNAL: "Internal error, a fault of Pinchpoint.",
    ExitStatus.INTERRUPTED: "Interrupted; what was measured is kept and reported.",
}


def manual(commands: Mapping[str, click.Command], about: str) -> str:
    """Return a page for man(1): ``pinchpoint --man | man -l -``.

    Args:
        commands: command name -> command.
        about: description of the program.
    """
    lines = [
        f'.TH PINCHPOINT 1 "" "pinchpoint {version("pinchpoint")}" "User Commands"',
        ".SH NAME",
        f"pinchpoint \\- {_text(about).rstrip('.')}",
        ".SH SYNOPSIS",
        ".B pinchpoint",
        ".I COMMAND",
        "[OPTIONS] [ARGUMENTS]",
        ".SH COMMANDS",
    ]
    for name, command in commands.items():
        lines += _command(f"pinchpoint {name}", command)
        for sub, inner in getattr(command, "commands", {}).items():
            lines += _command(f"pinchpoint {name} {sub}", inner)
    lines.append(".SH EXIT STATUS")
    for status, meaning in _STATUSES.items():
        lines += [".TP", f".B {status.value}", _text(meaning)]
    return "\n".join(lines)


def _command(name: str, command: click.Command) -> Iterator[str]:
    context = click.Context(command, info_name=name)
    yield f".SS {_text(' '.join((name, *command.collect_usage_pieces(context))))}"
    for paragraph in (command.help or "").split("\n\n"):
        yield from (".PP", _text(" ".join(paragraph.split())))
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context) if isinstance(parameter, click.Option) else None
        if record is not None:
            yield from (".TP", f".B {_text(record[0])}", _text(record[1]))


def _text(text: str) -> str:
    """Return text escaped for roff, so that no line is a roff request."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("\b", "")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped

"""Defines arguments and options that several commands share."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, timedelta, timezone, tzinfo
from pathlib import Path
from typing import Any, Protocol, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import click

from pinchpoint.base.errors import InputError

OUT = click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("runs"),
    show_default=True,
    help="The run is written to a folder of its own in this folder.",
)
FARM = click.option(
    "--farm",
    "farm_file",
    type=click.Path(path_type=Path),
    required=True,
    help="The farm's farm.yaml.",
)
TOKEN_FILE = click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    help="A file with the token shared by a controller and its load workers, instead of the variable "
    "PINCHPOINT_WORKER_TOKEN.",
)
PLAN = click.argument("plan_file", metavar="PLAN", type=click.Path(path_type=Path))
REPORTED = click.argument("directory", metavar="RUN|COMPARISON|PROBE|SET", type=click.Path(path_type=Path))
RUN = click.argument("directory", metavar="RUN", type=click.Path(path_type=Path))


class _Result(Protocol):
    def to_json(self) -> dict[str, Any]: ...


_R = TypeVar("_R", bound=_Result)


def show(result: _R, words: Callable[[_R], str], directory: Path | None = None, *, as_json: bool) -> None:
    """Print a result as JSON or as text, then its folder. With JSON the folder goes to stderr."""
    click.echo(json.dumps(result.to_json(), indent=1) if as_json else words(result))
    if directory:
        click.echo(directory, err=as_json)


_OFFSET = re.compile(r"([+-])(\d{1,2}):?(\d{2})?")


def time_zone(text: str | None) -> tzinfo | None:
    """Return the time zone of ``--zone``, given by name or by offset from UTC. Raises ``InputError``."""
    if text is None:
        return None
    match = _OFFSET.fullmatch(text)
    if match:
        sign = -1 if match[1] == "-" else 1
        shift = timedelta(hours=int(match[2]), minutes=int(match[3] or 0))
        if shift >= timedelta(hours=24):
            raise InputError(f"--zone: {text!r} is a day or more; allowed: such as +02:00 or Europe/Berlin")
        return timezone(sign * shift)
    try:
        return UTC if text.upper() in {"UTC", "Z"} else ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InputError(
            f"--zone: no time zone {text!r} is known here; allowed: a name such as Europe/Berlin (it needs "
            "the system's time zone database, or the package tzdata), a distance such as +02:00, or UTC"
        ) from error

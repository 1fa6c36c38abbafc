"""``INFO`` of Valkey and Redis, as ``valkey-cli INFO all`` prints it, once or many times in one file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pinchpoint.base.errors import InputError
from pinchpoint.fit.snapshots import seconds
from pinchpoint.fit.tables import CAPTURED

EXPORT = "valkey-cli INFO all > before.txt"
_BEGINS = "# Server"
_SETTING = re.compile(r"[a-z][a-z0-9-]*")
"""What ``CONFIG GET`` prints: name and value, each on a line of its own."""
_KNOWN = re.compile(r"^(?:(?:redis|valkey)_version|cmdstat_\S+):", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Calls:
    """What one command came to since the server's start.

    Attributes:
        calls: how often it was executed.
        spent_s: the server's time in it.
    """

    calls: float
    spent_s: float


@dataclass(frozen=True, slots=True)
class Info:
    """One answer to ``INFO all``.

    Attributes:
        source: where it came from, for people.
        place: the same, with the line it begins on.
        at_s: when it was given, UTC seconds.
        fields: its fields, as text.
        commands: name, in lower case -> what it came to.
        answer_bytes: how long the answer is: the next one counts it as sent.
    """

    source: str
    place: str
    at_s: float
    fields: Mapping[str, str]
    commands: Mapping[str, Calls]
    answer_bytes: int

    def number(self, name: str) -> float | None:
        """A field as a number; None where the server does not have it. Raises ``InputError``."""
        if name not in self.fields:
            return None
        try:
            return float(self.fields[name])
        except ValueError as error:
            raise InputError(
                f"{self.place}: {name}: found {self.fields[name]!r}; allowed: a number, as INFO writes it"
            ) from error

    def parts(self, name: str) -> dict[str, float]:
        """A field such as ``keys=5,expires=2``. Raises ``InputError``."""
        return _parts(self.fields[name], f"{self.place}: {name}")

    @property
    def databases(self) -> list[str]:
        """The names of its databases that hold keys (``db0``)."""
        return [name for name in self.fields if re.fullmatch(r"db\d+", name)]


def is_info(text: str) -> bool:
    """Whether a text is what ``INFO`` prints."""
    return _KNOWN.search(text) is not None


def read_infos(text: str, path: Path) -> list[Info]:
    """All answers in a text, in its order.

    Raises:
        InputError: one is cut off, does not say when it was given, or has a line that is none of INFO's.
    """
    blocks = list(_blocks(text.splitlines()))
    if not blocks:
        raise InputError(
            f"{path}: has no section Server: whose figures these are, and when, is not told; needed: {EXPORT}"
        )
    return [_info(block, path.name, str(path), {}) for block in blocks]


def read_info(text: str, source: str, settings: Mapping[str, str]) -> Info:
    """One answer as a server gave it, with settings it told besides (``config_appendfsync``).

    Raises:
        InputError: as ``read_infos``.
    """
    return _info(list(enumerate(text.splitlines(), 1)), source, source, settings)


_Lines = list[tuple[int, str]]


def _blocks(lines: Sequence[str]) -> Iterator[_Lines]:
    """Each answer, from its time or its first section on."""
    block: _Lines = []
    for number, line in enumerate(lines, 1):
        begins = line.startswith(CAPTURED) or (line.startswith(_BEGINS) and _has_section(block))
        if begins and block:
            if _has_section(block):
                yield block
            block = []
        block.append((number, line))
    if _has_section(block):
        yield block


def _has_section(block: _Lines) -> bool:
    return any(line.startswith(_BEGINS) for _, line in block)


def _info(block: _Lines, source: str, path: str, settings: Mapping[str, str]) -> Info:
    fields = dict(settings)
    commands: dict[str, Calls] = {}
    remaining = iter(block)
    for number, line in remaining:
        name, colon, value = line.partition(":")
        if not line.strip() or line.startswith("#"):
            continue
        if not colon and _SETTING.fullmatch(line.strip()):
            fields[f"config_{line.strip()}"] = next(remaining, (0, ""))[1].strip()
        elif not colon:
            raise InputError(
                f"{path}:{number}: found {line.strip()[:60]!r}; allowed: lines such as used_memory:1024, "
                f"sections such as # Stats; {EXPORT}"
            )
        elif name.startswith("cmdstat_"):
            parts = _parts(value, f"{path}:{number}: {name}")
            commands[name.removeprefix("cmdstat_").lower()] = _calls(parts, f"{path}:{number}: {name}")
        else:
            fields[name.strip()] = value.strip()
    place = f"{path}:{block[0][0]}"
    if not commands:
        raise InputError(f"{place}: has no section Commandstats; needed: INFO all, not INFO: {EXPORT}")
    if "run_id" not in fields:
        raise InputError(f"{place}: has no run_id, so the answer is not whole; take it again: {EXPORT}")
    size = sum(len(line.encode()) + 2 for _, line in block)
    return Info(source, place, _at_s(fields, place), fields, commands, size)


def _at_s(fields: Mapping[str, str], place: str) -> float:
    if CAPTURED in fields:
        return seconds(fields[CAPTURED], f"{place}: {CAPTURED}")
    if "server_time_usec" in fields:
        text = fields["server_time_usec"]
        if not text.isdecimal():
            raise InputError(f"{place}: server_time_usec: found {text!r}; allowed: microseconds since 1970")
        return int(text) / 1e6
    raise InputError(
        f"{place}: this version does not say its time; put it before: "
        "{ date -u '+captured_at: %FT%TZ'; redis-cli INFO all; } > before.txt"
    )


def _parts(value: str, place: str) -> dict[str, float]:
    found = {}
    for part in value.strip().split(","):
        name, sign, text = part.partition("=")
        try:
            found[name] = float(text)
        except ValueError as error:
            said = f"found {part!r}" if sign else f"found {value.strip()[:60]!r}"
            raise InputError(
                f"{place}: {said}; allowed: names and numbers such as calls=5,usec=12"
            ) from error
    return found


def _calls(parts: Mapping[str, float], place: str) -> Calls:
    if not {"calls", "usec"} <= parts.keys():
        raise InputError(
            f"{place}: found {', '.join(parts)}; needed: calls and usec, as INFO all writes them"
        )
    return Calls(parts["calls"], parts["usec"] / 1e6)

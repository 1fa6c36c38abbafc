"""Parses the first report of a host, sent once before its first reading."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.linux import cloud, mountinfo
from pinchpoint_collectors.linux.files import ExistingPath

BEGINS = "#pinchpoint\n"
_BLOCK = "/sys/class/block"


class Recorded:
    """The files of another machine from its report. Files that were not requested are missing.

    Args:
        facts: path -> text.
        links: path -> target of the link.
        others: existing paths without a text.
        places: path -> ``none``, ``path`` or ``device``, and the path without symbolic links.
    """

    def __init__(
        self,
        facts: Mapping[str, str],
        links: Mapping[str, str],
        others: Iterable[str],
        places: Mapping[str, tuple[str, str]],
    ) -> None:
        self._facts = facts
        self._places = places
        self._links = dict(links)
        self._mounts = mountinfo.parse(facts.get("/proc/self/mountinfo", ""))
        for path, leads in links.items():
            if number := facts.get(f"{path}/dev"):
                self._links[f"/sys/dev/block/{number}"] = leads
        self._children: dict[str, set[str]] = defaultdict(set)
        for path in (*facts, *links, *others):
            below = path
            while below != "/":
                above, name = posixpath.split(below)
                self._children[above].add(name)
                below = above

    def fact(self, path: str) -> str | None:
        return self._facts.get(path, "").strip() or None

    def names(self, folder: str) -> list[str]:
        return sorted(self._children.get(folder, ()))

    def real(self, path: str) -> str | None:
        if path in self._links:
            return self._links[path]
        kind, real = self._places.get(path, ("none", ""))
        if kind != "none":
            return real
        return path if path in self._facts or path in self._children else None

    def find(self, path: str) -> ExistingPath:
        kind, real = self._places.get(path, ("none", ""))
        if kind == "none" or not real:
            raise CollectorError(
                f"disk {path!r}: no such path on the host, or its user may not look into the folder; "
                "give a path or device that is there"
            )
        if kind == "device":
            name = real.removeprefix("/dev/").replace("/", "!")
            return ExistingPath(real, is_device=True, number=self.fact(f"{_BLOCK}/{name}/dev"))
        mount = mountinfo.mount_of(real, self._mounts)
        return ExistingPath(real, is_device=False, number=mount.device if mount else None)


@dataclass(frozen=True, slots=True)
class Hello:
    """The state of a host at the start of a session.

    Attributes:
        files: contents of its files in /proc and /sys.
        missing: repeatedly read files that are missing -> reason.
        fractions: whether the sleep command of the host accepts fractions of a second.
        nanoseconds: whether the times of readings have nanoseconds; otherwise 10 ms.
        page_bytes: page size of the host in bytes.
        ticks_per_s: clock ticks per second of the host, the unit of CPU time.
        cloud: region, zone and machine type, as far as the cloud reports them.
    """

    files: Recorded
    missing: Mapping[str, str]
    fractions: bool
    nanoseconds: bool
    page_bytes: int
    ticks_per_s: int
    cloud: Mapping[str, str] = field(default_factory=dict)


def parse(text: str) -> Hello:
    """Parse the output of ``hello`` in loop.sh. Output of the login shell before it is ignored.

    Raises ``CollectorError`` for other output.
    """
    _greeting, begins, rest = text.partition(BEGINS)
    if not begins:
        raise CollectorError(f"its shell answered otherwise than expected: {text.strip()[:200]!r}")
    facts: dict[str, list[str]] = defaultdict(list)
    links: dict[str, str] = {}
    places: dict[str, tuple[str, str]] = {}
    missing: dict[str, str] = {}
    others: list[str] = []
    reported: dict[str, str] = {}
    for line in rest.splitlines():
        word, _, answer = line.partition(" ")
        if line.startswith("/"):
            path, _, content = line.partition(":")
            facts[path].append(content)
        elif line.startswith("place\t"):
            _, kind, real, path = line.split("\t", 3)
            places[path] = kind, real
        elif word == "link":
            path, _, leads = answer.partition(" ")
            links[path] = posixpath.normpath(posixpath.join(posixpath.dirname(path), leads))
        elif word == "missing":
            path, _, why = answer.partition(" ")
            missing[path] = why
        elif word == "name":
            others.append(answer)
        else:
            reported[word] = answer
    try:
        hello = Hello(
            Recorded({path: "\n".join(lines) for path, lines in facts.items()}, links, others, places),
            missing,
            reported["fractions"] == "yes",
            reported["nanoseconds"] == "yes",
            int(reported["page_bytes"]),
            int(reported["ticks_per_s"]),
            cloud.from_document(*reported.get("cloud", "").partition(" ")[::2]),
        )
    except (KeyError, ValueError) as error:
        raise CollectorError(f"its shell did not answer ({error}): {text.strip()[:200]!r}") from error
    if not any(line.startswith("MemTotal:") for line in facts.get("/proc/meminfo", ())):
        raise CollectorError("it has no /proc/meminfo as Linux has it")
    return hello

"""Checks across the fields of a host: its disks, its types, its collectors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from pinchpoint.base.objects import JsonObject
from pinchpoint.base.redact import NOT_SHOWN, redacted_word
from pinchpoint.plan.document import YamlFile
from pinchpoint.plan.problems import Path, Problem, listed, unknown_at
from pinchpoint_collectors import registry as collectors
from pinchpoint_collectors.common.names import nearest_name
from pinchpoint_collectors.databases.base import ServerKind
from pinchpoint_collectors.errors import CollectorError, OptionError
from pinchpoint_collectors.record import Kind, OptionChecker, Watch
from pinchpoint_infra.catalogue import catalogue


def check_catalogue(farm: YamlFile, place: Path) -> Iterator[Problem]:
    """A machine and the profiles of disks are entries of the catalogue, each of its kind."""
    named = [("machine", (*place, "machine"))]
    named += [("disk", (*place, "disks", role, "profile")) for role in farm.mapping(*place, "disks")]
    for kind, here in named:
        name = farm.at(*here)
        names = [entry.name for entry in catalogue().values() if entry.kind == kind]
        if isinstance(name, str) and name not in names:
            yield unknown_at(here, f"{kind} of the catalogue:", name, names)


def check_places(farm: YamlFile, place: Path) -> Iterator[Problem]:
    """A disk lies somewhere; one that cannot be measured needs a declared limit."""
    known = {"device", "path", *(("profile", "limits") if _is_managed(farm, place) else ())}
    for role, disk in farm.mapping(*place, "disks").items():
        if isinstance(disk, dict) and not disk.keys() & known:
            yield Problem(
                (*place, "disks", role),
                "a disk without a place",
                "needed: device (such as nvme1n1) or path (an absolute path that lies on it); if the "
                "machine cannot be measured, a collector of the database and the disk's profile or limits",
            )


def _is_managed(farm: YamlFile, place: Path) -> bool:
    """Whether a host is watched through a database that counts its files' I/O, and by nothing else."""
    entries = farm.at(*place, "collect")
    given = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    names = [entry.get("kind") for entry in given]
    kinds = [kind for name in names if (kind := usable_kind(name)) is not None]
    asked = [kind for kind in kinds if isinstance(kind, ServerKind)]
    return any(kind.counts_files for kind in asked) and len(asked) == len(kinds)


def public_options(kind: str) -> frozenset[str]:
    """The options of a kind of collector whose values may be shown; of an unknown kind none."""
    result = usable_kind(kind)
    return result.public if result else frozenset()


def usable_kind(name: object) -> Kind | None:
    """The kind of collector of that name; None: there is none, or its package cannot be imported."""
    with suppress(CollectorError):
        return collectors.kind(str(name)) if name in collectors.names() else None
    return None


def check_collectors(farm: YamlFile, place: Path) -> Iterator[Problem]:
    """Each of a kind that exists, with options that kind takes."""
    entries = farm.at(*place, "collect")
    for position, entry in enumerate(entries if isinstance(entries, list) else []):
        here = (*place, "collect", position)
        kind = entry.get("kind") if isinstance(entry, dict) else None
        if not isinstance(kind, str):
            continue  # the record reports it
        if kind not in collectors.names():
            yield unknown_at((*here, "kind"), "collector kind", kind, collectors.names())
            continue
        try:
            options = {"kind", "required", *collectors.kind(kind).options}
        except CollectorError as error:
            yield Problem((*here, "kind"), str(error))
            continue
        for option in entry.keys() - options:
            yield Problem(
                (*here, option),
                "unknown field",
                f"allowed: {listed(sorted(options))}",
                nearest_name(option, options),
            )
        asked, offered = entry.get("endpoint"), farm.mapping("endpoints")
        if "endpoint" in options and asked is not None and str(asked) not in offered:
            yield unknown_at((*here, "endpoint"), "endpoint", str(asked), offered)
        yield from _check_options(here, kind, entry)


def _check_options(here: Path, kind: str, entry: JsonObject) -> Iterator[Problem]:
    """A collector's options by its own rules, except what only the environment knows."""
    choosy = collectors.kind(kind)
    if not isinstance(choosy, OptionChecker):
        return
    public = choosy.public
    try:
        choosy.check_options(Watch("", "", options={key: entry[key] for key in entry if key != "kind"}))
    except OptionError as error:
        if "${" not in str(entry.get(error.option)):
            yield Problem((*here, error.option), _message(error, public, entry))
    except CollectorError:
        return  # of this machine, which need not be the one that watches; connecting says it


def _message(error: OptionError, public: frozenset[str], entry: JsonObject) -> str:
    """The problem of an option, without the value if that is secret."""
    text = error.said
    for option, value in entry.items():
        if option not in public and option not in ("kind", "required"):
            for spelling in (repr(value), str(value)):
                text = text.replace(spelling, NOT_SHOWN) if spelling else text
        elif isinstance(value, str):
            text = text.replace(value, redacted_word(value))
    return text

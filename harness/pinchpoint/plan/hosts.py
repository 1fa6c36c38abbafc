"""Checks the fields of a host together: its disks, its catalogue types, its collectors."""

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
    """Problems of a host's machine and disk profiles that are not in the catalogue."""
    named = [("machine", (*place, "machine"))]
    named += [("disk", (*place, "disks", role, "profile")) for role in farm.mapping(*place, "disks")]
    for kind, here in named:
        name = farm.at(*here)
        names = [entry.name for entry in catalogue().values() if entry.kind == kind]
        if isinstance(name, str) and name not in names:
            yield unknown_at(here, f"{kind} of the catalogue:", name, names)


def check_places(farm: YamlFile, place: Path) -> Iterator[Problem]:
    """Problems of disks without a device or a path.

    If only the database of a managed host is measured, a profile or limits are enough.
    """
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
    """Whether only database collectors measure a host, and one of them counts the I/O of files."""
    entries = farm.at(*place, "collect")
    given = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    names = [entry.get("kind") for entry in given]
    kinds = [kind for name in names if (kind := usable_kind(name)) is not None]
    asked = [kind for kind in kinds if isinstance(kind, ServerKind)]
    return any(kind.counts_files for kind in asked) and len(asked) == len(kinds)


def public_options(kind: str) -> frozenset[str]:
    """The options of a kind of collector whose values may be shown; none for an unknown kind."""
    result = usable_kind(kind)
    return result.public if result else frozenset()


def usable_kind(name: object) -> Kind | None:
    """The kind of collector with this name; None if it does not exist or its package cannot be imported."""
    with suppress(CollectorError):
        return collectors.kind(str(name)) if name in collectors.names() else None
    return None


def check_collectors(farm: YamlFile, place: Path) -> Iterator[Problem]:
    """Problems of a host's collectors: unknown kinds, unknown options, unknown endpoints, invalid options."""
    entries = farm.at(*place, "collect")
    for position, entry in enumerate(entries if isinstance(entries, list) else []):
        here = (*place, "collect", position)
        kind = entry.get("kind") if isinstance(entry, dict) else None
        if not isinstance(kind, str):
            continue  # validation of the record reports the error
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
    """The problem of a collector's options by the rules of its kind; options with variables are skipped."""
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
        # the error depends on this machine, and another may run the collector; connecting reports the error
        return


def _message(error: OptionError, public: frozenset[str], entry: JsonObject) -> str:
    """The problem of an option, without secret values."""
    text = error.said
    for option, value in entry.items():
        if option not in public and option not in ("kind", "required"):
            for spelling in (repr(value), str(value)):
                text = text.replace(spelling, NOT_SHOWN) if spelling else text
        elif isinstance(value, str):
            text = text.replace(value, redacted_word(value))
    return text

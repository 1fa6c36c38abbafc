"""Report known vulnerabilities of the versions in uv.lock, without the network: ``make audit DATABASE=DIR``.

DIR is a clone of https://github.com/pypa/advisory-database, bare or with files. The result is as recent as
the clone.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version
from ruamel.yaml import YAML

LOCK = Path(__file__).parents[1] / "uv.lock"
ACCEPTED = {
    "PYSEC-2017-83": "Scrapy is a peer of `make bench` alone, which does not use its files pipeline",
}
"""Accepted advisories: the advisory's id -> the reason why the project is not affected."""


def locked(text: str) -> dict[str, list[Version]]:
    """Return the versions per package name that a lock file takes from a package index."""
    found: dict[str, list[Version]] = {}
    for package in tomllib.loads(text)["package"]:
        if "registry" in package["source"]:
            found.setdefault(canonicalize_name(package["name"]), []).append(Version(package["version"]))
    return found


def _ordered(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None  # versions older than PEP 440; uv.lock contains no such version


def _within(version: Version, events: list[Mapping[str, str]]) -> bool:
    """Return True if the version is in an affected range: after an "introduced", before a "fixed" event."""
    inside = False
    for event in events:
        [(what, text)] = event.items()
        at = Version("0") if text == "0" else _ordered(text)
        if at is None:
            continue
        if what == "introduced" and version >= at:
            inside = True
        elif (what == "fixed" and version >= at) or (what == "last_affected" and version > at):
            inside = False
    return inside


def affects(advisory: Mapping[str, Any], name: str, version: Version) -> bool:
    """Return True if an advisory in OSV's format affects this version of a package on PyPI."""
    if advisory.get("withdrawn"):
        return False
    for affected in advisory.get("affected", ()):
        package = affected["package"]
        if package["ecosystem"] != "PyPI" or canonicalize_name(package["name"]) != name:
            continue
        ranges = [each["events"] for each in affected.get("ranges", ()) if each["type"] == "ECOSYSTEM"]
        listed = any(_ordered(text) == version for text in affected.get("versions", ()))
        if listed or any(_within(version, events) for events in ranges):
            return True
    return False


def advisories(database: Path, names: Mapping[str, object]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield (package name, advisory) for each advisory about one of the named packages."""
    archive = subprocess.run(
        ["git", "-C", database, "archive", "HEAD", "vulns"], check=True, capture_output=True
    ).stdout
    reader = YAML(typ="safe")
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        for file in files:
            path = Path(file.name)
            name = canonicalize_name(path.parent.name)
            content = files.extractfile(file) if path.suffix == ".yaml" and name in names else None
            if content is not None:
                yield name, reader.load(content.read())


def main() -> int:
    """Run the command; return 1 if a locked version has a known vulnerability, else 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("database", type=Path)
    database = parser.parse_args().database
    versions = locked(LOCK.read_text())
    log = ["git", "-C", database, "log", "-1", "--format=%cs"]
    date = subprocess.run(log, check=False, capture_output=True, text=True).stdout.strip()
    if not date:
        parser.error(f"{database}: is no clone of https://github.com/pypa/advisory-database")
    found, read = [], 0
    for name, advisory in advisories(database, versions):
        read += 1
        found += [(name, at, advisory["id"]) for at in versions[name] if affects(advisory, name, at)]
    for name, at, identity in found:
        accepted = f" (accepted: {ACCEPTED[identity]})" if identity in ACCEPTED else ""
        print(f"{name} {at}: {identity}, https://osv.dev/vulnerability/{identity}{accepted}")
    print(
        f"{sum(map(len, versions.values()))} versions in uv.lock against {read} advisories about their "
        f"packages; the database is of {date}: {len(found)} found"
    )
    return int(any(identity not in ACCEPTED for *_, identity in found))


if __name__ == "__main__":
    sys.exit(main())

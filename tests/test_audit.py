"""Tests of ``make audit`` (advisories that affect a version) and ``make sbom`` (the list of dependencies)."""

from __future__ import annotations

import json
import subprocess
from importlib.metadata import requires
from pathlib import Path
from typing import Any

import pytest
from audit import advisories, affects, locked
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]


def advisory(*events: dict[str, str], **more: Any) -> dict[str, Any]:
    package = {"name": "Some.Thing", "ecosystem": "PyPI"}
    return {"affected": [{"package": package, "ranges": [{"type": "ECOSYSTEM", "events": events}], **more}]}


@pytest.mark.parametrize(
    ("given", "version", "affected"),
    [
        (advisory({"introduced": "0"}, {"fixed": "2.0"}), "1.9", True),
        (advisory({"introduced": "0"}, {"fixed": "2.0"}), "2.0", False),
        (advisory({"introduced": "1.10"}, {"last_affected": "1.12"}), "1.9", False),
        (advisory({"introduced": "1.10"}, {"last_affected": "1.12"}), "1.12", True),
        (advisory({"introduced": "0"}, {"fixed": "1.5"}, {"introduced": "2"}), "1.7", False),
        (advisory({"introduced": "0"}, {"fixed": "1.5"}, {"introduced": "2"}), "2.1", True),
        (advisory(versions=["1.0", "of old"]), "1.0.0", True),
        (advisory(versions=["1.0"]) | {"withdrawn": "2024-01-01T00:00:00Z"}, "1.0", False),
    ],
)
def test_which_versions_an_advisory_meets(given: dict[str, Any], version: str, affected: bool) -> None:
    """An advisory affects the versions that OSV's format defines, in the order of PEP 440."""
    assert affects(given, "some-thing", Version(version)) is affected
    assert not affects(given, "another", Version(version))


def test_a_clone_is_read(tmp_path: Path) -> None:
    """Only advisories about a locked package are read; package names are normalised."""
    folder = tmp_path / "vulns" / "Some.Thing"
    folder.mkdir(parents=True)
    (folder / "PYSEC-2024-1.yaml").write_text("id: PYSEC-2024-1\naffected: []\n")
    (folder / "notes.txt").write_text("not an advisory")
    git = ("git", "-C", str(tmp_path), "-c", "user.name=t", "-c", "user.email=t@example.org")
    for arguments in (("init", "-q"), ("add", "."), ("commit", "-qm", "all")):
        subprocess.run([*git, *arguments], check=True)
    assert [one["id"] for _, one in advisories(tmp_path, {"some-thing": []})] == ["PYSEC-2024-1"]
    assert list(advisories(tmp_path, {"another": []})) == []


def test_the_list_of_dependencies_has_what_the_wheels_need() -> None:
    """``make sbom`` writes CycloneDX with each dependency's version from uv.lock and its source."""
    subprocess.run(["make", "-C", ROOT, "sbom"], check=True, capture_output=True)
    found = json.loads((ROOT / "dist" / "pinchpoint.cdx.json").read_text())
    assert (found["bomFormat"], found["specVersion"]) == ("CycloneDX", "1.5")
    listed = {canonicalize_name(one["name"]): one for one in found["components"]}
    versions = locked((ROOT / "uv.lock").read_text())
    ours = {name for name in listed if name.startswith("pinchpoint")}
    for name in listed.keys() - ours:
        assert Version(listed[name]["version"]) in versions[name]
        assert listed[name]["purl"] == f"pkg:pypi/{name}@{listed[name]['version']}"
    for name in ours - {"pinchpoint-workspace"}:
        for each in map(Requirement, requires(name) or ()):
            needed = each.marker is None or each.marker.evaluate({"extra": ""})
            assert not needed or canonicalize_name(each.name) in listed, (name, each)

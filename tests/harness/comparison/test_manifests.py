"""Differences between two farms, and which of them may affect the named bottlenecks."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from harness.comparison.example import alike, changed, manifest

from pinchpoint.comparison import compare
from pinchpoint.comparison.differences import Difference, differences
from pinchpoint.comparison.sides import pair_hosts
from pinchpoint.plan import Farm
from pinchpoint.run.manifest import declared_places


def differing(base: dict[str, Any], other: dict[str, Any]) -> tuple[Difference, ...]:
    return differences([base], [other], pair_hosts(base, other))


def found(base: dict[str, Any], other: dict[str, Any]) -> list[tuple[str, str, Any, Any]]:
    return [(one.area, one.what, one.base, one.other) for one in differing(base, other)]


def test_the_machine_knows_better_than_farm_yaml_where_it_is() -> None:
    """The machine's own report of its location precedes farm.yaml; a contradiction is a warning."""
    farm = Farm.from_json(
        {
            "name": "f",
            "environment": "test",
            "identity": "/f/farm.yaml",
            "region": "westeurope",
            "tiers": {
                "sql": {"hosts": {"sql1": {"zone": "1"}, "sql2": {"region": "northeurope"}, "sql3": {}}}
            },
        }
    )
    hosts: dict[str, Any] = {"sql1": {}, "sql2": {}, "sql3": {"region": "eastus", "zone": "3"}, "web1": {}}
    assert list(declared_places(hosts, farm)) == [
        "the region of sql3 is eastus, as the machine says, not westeurope of farm.yaml"
    ]
    assert hosts == {
        "sql1": {"region": "westeurope", "zone": "1"},
        "sql2": {"region": "northeurope"},
        "sql3": {"region": "eastus", "zone": "3"},
        "web1": {"region": "westeurope"},
    }


def test_a_farm_does_not_differ_from_itself() -> None:
    """A farm compared with itself has no differences, despite other names, paths and order."""
    renamed = manifest("dev")
    renamed["farm"] |= {"name": "another", "identity": "/elsewhere/farm.yaml"}
    renamed["plan"]["name"] = "another"
    renamed["hosts"]["sql1"]["roles"]["log"]["device"] = "loop7"
    renamed["hosts"]["sql1"]["disks"]["loop7"] = {"write_cache": "write through"}
    assert found(manifest("dev"), renamed) == []


def test_declared_limits_differ_by_role_with_their_figures() -> None:
    """Limits differ by role with their figures; machine identities are one difference."""
    each = differing(manifest("dev"), manifest("prod"))
    assert [(one.what, one.role, one.base, one.other) for one in each if one.area == "disks"] == [
        ("declared.iops", "data", (2000.0,), (5000.0,)),
        ("declared.bytes_per_s", "data", (), (200e6,)),
        ("declared.iops", "log", (2000.0,), (5000.0,)),
        ("declared.bytes_per_s", "log", (), (200e6,)),
    ]
    assert {one.what for one in each if one.area != "disks"} == {"machine_id"}


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        (("hosts", "app3", "cpu_model"), "Another CPU", ("cpu", "cpu_model")),
        (("hosts", "app3", "cores"), 8, ("cpu", "cores")),
        (("hosts", "sql1", "memory_bytes"), 56_000_000_000, ("memory", "memory_bytes")),
        (("hosts", "web1", "kernel"), "6.2.0", ("machine", "kernel")),
        (("hosts", "sql1", "zone"), "2", ("machine", "zone")),
        (("hosts", "sql1", "machine_type"), "Standard_DS12_v2", ("machine", "machine_type")),
        (("farm", "region"), "westeurope", ("machine", "region")),
        (("hosts", "sql1", "disks", "devlog", "write_cache"), "write back", ("disks", "write_cache")),
        (("hosts", "sql1", "database", "version"), "17.2", ("database", "version")),
        (
            ("hosts", "sql1", "database", "settings", "shared_buffers"),
            "8GB",
            ("database", "settings.shared_buffers"),
        ),
        (("plan", "scenarios", "crawl", "load", "users"), 16, ("plan", "scenarios.crawl.load.users")),
        (("seed",), 2, ("plan", "seed")),
        (("content",), {"documents": 10, "sources": {}}, ("content", "documents")),
        (("collectors",), [{"kind": "ssh", "interval_s": 1.0}], ("collectors", "kinds")),
        (("generators",), [{"cores": [1]}, {"cores": [2]}], ("generators", "workers")),
        (("versions", "pinchpoint"), "0.2.0", ("versions", "pinchpoint")),
    ],
)
def test_every_kind_of_difference_is_found(
    path: tuple[str, ...], value: Any, expected: tuple[str, str]
) -> None:
    """Differences in CPU, memory, kernel, disks, database, plan, content and versions are found."""
    other = manifest("dev")
    place = other
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    assert expected in [(area, what) for area, what, *_ in found(manifest("dev"), other)]


def test_a_kernel_that_keeps_a_little_memory_makes_no_difference() -> None:
    """Memory sizes within 1 % are the same."""
    other = manifest("dev")
    other["hosts"]["sql1"]["memory_bytes"] += 4096
    assert found(manifest("dev"), other) == []


def test_a_host_more_and_a_host_unseen_are_said_once() -> None:
    """An additional or unobserved host is one difference, not one per fact."""
    more, unseen = manifest("dev"), manifest("dev")
    more["farm"]["tiers"]["search"]["hosts"]["app4"] = {}
    more["hosts"]["app4"] = {**more["hosts"]["app3"], "machine_id": "m"}
    del unseen["hosts"]["app3"]
    assert found(manifest("dev"), more) == [("machine", "host", (), ("app4",))]
    assert found(manifest("dev"), unseen) == [("machine", "inventory", ("recorded",), ())]
    assert found(unseen, deepcopy(unseen)) == [("machine", "inventory", (), ())], "unknown is not the same"


def test_hosts_of_other_names_answer_by_their_place() -> None:
    """Hosts of a tier are paired by name, then by order."""
    other = manifest("dev")
    for name in ("farm", "hosts"):
        hosts = other["farm"]["tiers"]["search"]["hosts"] if name == "farm" else other["hosts"]
        hosts["prodapp"] = hosts.pop("app3")
    assert found(manifest("dev"), other) == []
    other["hosts"]["prodapp"]["cores"] = 16
    (one,) = differing(manifest("dev"), other)
    assert (one.what, one.places[0].name) == ("cores", "app3 / prodapp")


def test_what_an_embedded_farm_was_given_differs_only_where_it_was_built() -> None:
    """An embedded farm's options count where they took effect; a disk that could not be made does not."""
    base, other = manifest("dev"), manifest("dev")
    built = {"disks": {"sql.log": {"latency_s": 0.035}}, "cpus": {"search": 0.5}}
    other["farm"]["embedded"] = built
    assert found(base, other) == [("cpu", "built.cores", (), (0.5,))]
    other["hosts"]["sql1"]["roles"]["log"] |= {"given": "/farm/sql/log", "mount_point": "/farm/sql/log"}
    assert ("disks", "built.latency_s", (), (0.035,)) in found(base, other)


def test_interfaces_and_settings_of_an_embedded_farm_are_compared() -> None:
    """An embedded farm's interfaces and server settings are compared, as its CPU limits are."""
    base, other = manifest("dev"), manifest("dev")
    base["farm"]["embedded"] = {"networks": {"nosql": 8e6}}
    other["farm"]["embedded"] = {
        "networks": {"nosql": 2e6},
        "settings": {"sql": {"shared_buffers": "64MB"}},
    }
    assert found(base, other) == [
        ("network", "built.interface_bytes_per_s", (8e6,), (2e6,)),
        ("database", "built.settings.shared_buffers", (), ("64MB",)),
    ]


def test_a_disk_s_probed_latencies_are_one_difference() -> None:
    """A disk's probed latencies are one difference, or none if they are the same."""
    base, other = manifest("dev"), manifest("dev")
    for one, curve in ((base, [[1.0, 0.002], [8.0, 0.016]]), (other, [[1.0, 0.0004], [8.0, 0.0032]])):
        disks = one["farm"]["tiers"]["sql"]["hosts"]["sql1"]["disks"]
        disks["log"] = {"resolved_limits": {"iops": 2000.0, "latency": curve}}
    assert found(base, deepcopy(base)) == []
    assert found(base, other) == [
        (
            "disks",
            "declared.latency",
            ("2 ms at 1, 16 ms at 8 outstanding",),
            ("400 \N{MICRO SIGN}s at 1, 3.2 ms at 8 outstanding",),
        )
    ]


def test_a_disk_behind_the_host_s_cache_is_another_disk() -> None:
    """The same disk type with and without host cache is a difference; "network" is the default."""
    base, other = manifest("dev"), manifest("dev")
    mine, theirs = (one["farm"]["tiers"]["sql"]["hosts"]["sql1"]["disks"] for one in (base, other))
    mine["data"] = {**mine["data"], "attached": "network"}
    assert found(base, other) == []
    theirs["data"] = {**theirs["data"], "attached": "cached"}
    assert found(base, other) == [("disks", "declared.attached", (), ("cached",))]


def test_runs_of_one_side_that_differ_are_told() -> None:
    """Differences between runs of one side are reported with both values."""
    second = manifest("dev")
    second["plan"]["scenarios"]["crawl"]["load"]["users"] = 16
    base = [manifest("dev"), second]
    found = differences(base, [manifest("dev")], pair_hosts(base[0], base[0]))
    assert [(one.what, one.base, one.other, one.mixed) for one in found] == [
        ("scenarios.crawl.load.users", (8, 16), (8,), True)
    ]


@pytest.mark.parametrize(
    ("path", "value", "touched"),
    [
        (("hosts", "app3", "cpu_model"), "Another CPU", ["search"]),
        (("hosts", "web1", "cpu_model"), "Another CPU", []),
        (("hosts", "sql1", "cpu_model"), "Another CPU", []),
        (("hosts", "sql1", "memory_bytes"), 56e9, []),
        (("hosts", "sql1", "database", "settings", "shared_buffers"), "8GB", ["sql"]),
        (("hosts", "app3", "kernel"), "6.2.0", ["search"]),
        (("plan", "scenarios", "crawl", "load", "users"), 16, ["sql", "search"]),
        (("seed",), 2, []),
        (("collectors",), [{"kind": "ssh", "interval_s": 1.0}], []),
    ],
)
def test_a_difference_touches_what_it_can_act_upon(
    path: tuple[str, ...], value: Any, touched: list[str]
) -> None:
    """A difference weakens the claim only where it can affect one of the named bottlenecks."""
    done = compare(changed(alike(), *path, value=value), ["disks"])
    (one,) = [
        one for one in done.confounders if not one.difference.what.endswith(("machine_id", "interval_s"))
    ]
    assert [resource.tier for resource in one.touches] == touched
    assert done.claim.kind == ("associated_with" if touched else "caused_by")

"""Tests of a machine's facts and disks, from the script's lines to the inventory."""

from __future__ import annotations

import json

import pytest
from collectors.windows.standin import ADAPTER, CLOUD, FACTS
from collectors.windows.standin import Machine as StandIn

from pinchpoint_collectors.errors import CollectorError
from pinchpoint_collectors.record import Watch
from pinchpoint_collectors.windows.disks import Storage
from pinchpoint_collectors.windows.machine import WindowsMachine, not_measured, role_places
from pinchpoint_collectors.windows.reading import class_of
from pinchpoint_collectors.windows.script import request, wanted


@pytest.fixture
def machine() -> WindowsMachine:
    """Return the simulated machine, with the disks of its counters."""
    found = WindowsMachine()
    for text in StandIn().hello(request((), 0)):
        found.take(json.loads(text))
    found.storage.logical = ("C:", "L:", "C:\\mnt\\tempdb", "HarddiskVolume1")
    found.storage.physical = ("0 C:", "1 L:", "2")
    return found


@pytest.mark.parametrize(
    ("given", "device", "mount_point"),
    [
        ("L:", "L:", "L:"),
        ("l:\\", "L:", "L:"),
        ("L:/sql/log", "L:", "L:"),
        ("C:\\mnt\\other", "C:", "C:"),
        ("C:\\mnt\\tempdb", "C:\\mnt\\tempdb", "C:\\mnt\\tempdb"),
        ("c:\\MNT\\TempDB\\files", "C:\\mnt\\tempdb", "C:\\mnt\\tempdb"),
        ("C:\\mnt\\tempdb2", "C:", "C:"),
        ("HarddiskVolume1", "HarddiskVolume1", None),
        ("1 L:", "1 L:", None),
    ],
)
def test_a_disk_is_found_by_letter_folder_or_name(
    machine: WindowsMachine, given: str, device: str, mount_point: str | None
) -> None:
    """A folder resolves to the longest mount point, in any case of letters."""
    place = machine.storage.place(given)
    assert (place.device, place.mount_point) == (device, mount_point)


def test_a_mounted_volume_that_windows_counts_by_another_name_is_not_taken_for_its_folder_s_drive() -> None:
    r"""A volume at C:\mnt\log that counts as HarddiskVolume7 is not taken for C:."""
    storage = Storage(logical=("C:", "HarddiskVolume7"), mounts=[("C:", "v1"), ("C:\\mnt\\log", "v2")])
    place = storage.place("C:\\mnt\\log\\file")
    assert place.device is None
    assert "HarddiskVolume7" in (place.why or "")


def test_without_the_list_of_volumes_the_counters_own_names_tell() -> None:
    """Without the list of volumes, the counters' names give the drives."""
    storage = Storage(logical=("C:", "C:\\mnt\\log"))
    assert storage.place("C:\\mnt\\log\\x").device == "C:\\mnt\\log"
    assert storage.place("C:\\x").device == "C:"


def test_a_disk_that_is_not_there_names_those_that_are(machine: WindowsMachine) -> None:
    """A missing disk's error names the role, the host, the existing disks and the remedy."""
    watch = Watch("sql1", "sql", disks={"log": "M:"})
    with pytest.raises(CollectorError, match=r"host 'sql1', role 'log'.*'M:'.*C:, L:.*correct `device:`"):
        role_places(watch, machine.storage, "collector 'windows'")


def test_roles_say_what_lies_below_them(machine: WindowsMachine) -> None:
    """A role has its file system, allocation unit, disk, disk model and write cache."""
    places = role_places(
        Watch("sql1", "sql", disks={"log": "L:", "tempdb": "C:\\mnt\\tempdb"}), machine.storage, ""
    )
    assert machine.role(places["log"]) == {
        "given": "L:",
        "device": "L:",
        "mount_point": "L:",
        "file_system": "NTFS",
        "allocation_unit_bytes": 65536,
        "mount_options": None,
        "data_io": "kernel",
        "why": None,
    }
    assert machine.storage.facts("L:") == {
        "size_bytes": 2 * 10**11,
        "model": "INTEL SSDPE2KX010T8",
        "rotational": False,
        "scheduler": None,
        "write_cache": "write through",
        "members": ["1 L:"],
    }
    below = machine.storage.facts("C:\\mnt\\tempdb")
    assert (below["members"], below["rotational"], below["write_cache"]) == (["2"], True, None)
    assert machine.storage.facts("0 C:")["members"] == []
    assert machine.storage.facts("HarddiskVolume1")["members"] == []


def test_the_machine_s_facts(machine: WindowsMachine) -> None:
    """The machine's facts are in base units, with the names of every kind."""
    assert machine.facts() == {
        "machine_id": "4C4C4544-0042 SQL1",
        "hostname": "SQL1",
        "cpu_model": "Intel(R) Xeon(R) Gold 6130 CPU @ 2.10GHz",
        "cores": 2,
        "usable_cores": [0, 1],
        "memory_bytes": 8 * 2**30,
        "swap_bytes": 2**30,
        "kernel": "10.0.20348",
        "os": "Microsoft Windows Server 2022 Standard",
        "virtualisation": "VMware, Inc. VMware7,1",
        "clock_source": None,
        "sql_servers": [dict(FACTS)["sql_server"]],
    }


def test_a_cloud_s_machine_and_its_disks() -> None:
    """A cloud machine has region, zone and type; a disk's type is found by its LUN and size."""
    found = WindowsMachine()
    for text in StandIn(facts=FACTS + CLOUD).hello(request((), 0)):
        found.take(json.loads(text))
    storage = found.storage
    storage.logical, storage.physical = ("C:", "L:"), ("0 C:", "1 L:")
    facts = found.facts()
    assert [facts[name] for name in ("region", "zone", "machine_type")] == [
        "westeurope",
        "2",
        "Standard_E8ds_v5",
    ]
    storage.disks[1] = {**storage.disks[1], "location": ADAPTER % (1, 0), "size_bytes": 1024 * 2**30}
    assert storage.facts("L:")["cloud_type"] == "Premium_LRS"
    assert "cloud_type" not in storage.facts("C:"), "the system's disk has LUN 0 of another controller"


def test_a_hypervisor_below_real_hardware_is_no_virtual_machine(machine: WindowsMachine) -> None:
    """A hypervisor on physical hardware does not make a machine virtual."""
    machine.said = {**machine.said, "manufacturer": "Dell Inc.", "model": "PowerEdge R740"}
    assert machine.facts()["virtualisation"] is None


def test_what_is_not_known_is_null_and_said(machine: WindowsMachine) -> None:
    """A machine without facts has nulls and the reason."""
    silent = WindowsMachine()
    silent.take({"kind": "unknown", "what": "host", "why": "Access denied"})
    facts = silent.facts()
    assert facts.pop("sql_servers") == []
    assert facts.pop("usable_cores") == []
    assert set(facts.values()) == {None}
    told = list(not_measured(silent, wanted(), [], []))
    assert any(one["why"] == "Access denied" and one["remedy"] for one in told)


def test_classes_that_are_missing_or_odd_are_not_measured_with_the_remedy(machine: WindowsMachine) -> None:
    """Damaged counters and unknown types are not measured, with the remedy; no SQL Server is normal."""
    line = {"class": "PerfOS_System", "pattern": "PerfOS_System", "columns": "ProcessorQueueLength"}
    system = class_of({"kind": "class", **line, "types": "12345"}, wanted())
    assert system is not None
    told = {one["metric"]: one for one in not_measured(machine, wanted(), [system], [])}
    assert "lodctr /R" in told["disk.write_latency_s"]["remedy"]
    assert "type 12345" in told["cpu.waiting_threads"]["why"]
    assert "db.lock_waits_per_s" not in told
    assert told["disk.flush*"]["why"] == "Windows does not count flushes"

"""Tests of the mapping between Performance Monitor counters and CIM classes."""

from __future__ import annotations

import pytest

from pinchpoint_collectors.windows.counters import COUNTERS
from pinchpoint_collectors.windows.script import CounterObject, chosen, property_name, sql_instance, wanted

BY_OBJECT = {one.object: one for one in wanted()}


@pytest.mark.parametrize(
    ("counter", "name"),
    [
        ("Avg. Disk sec/Write", "AvgDisksecPerWrite"),
        ("Disk Reads/sec", "DiskReadsPersec"),
        ("% Idle Time", "PercentIdleTime"),
        ("Current Disk Queue Length", "CurrentDiskQueueLength"),
        ("Pages Input/sec", "PagesInputPersec"),
        ("Number of Deadlocks/sec", "NumberofDeadlocksPersec"),
        ("Buffer cache hit ratio", "Buffercachehitratio"),
        ("MSSQL$MICROSOFT##WID:Access Methods", "MSSQLMICROSOFTNumberNumberWIDAccessMethods"),
        ("Search Gatherer Projects - SharePointServerSearch", "SearchGathererProjectsSharePointServerSearch"),
    ],
)
def test_names_are_spelt_as_wmi_spells_them(counter: str, name: str) -> None:
    """Property and class names are those of generated class bindings on real systems."""
    assert property_name(counter) == name


def test_every_object_of_the_logs_is_asked_for() -> None:
    """Each object of the logs is read from machines as well."""
    assert set(BY_OBJECT) == set(COUNTERS) - {"Processor"}
    assert BY_OBJECT["LogicalDisk"].pattern == "PerfDisk_LogicalDisk"
    assert BY_OBJECT["Processor Information"].pattern == "Counters_ProcessorInformation"
    assert BY_OBJECT["SQLServer:Locks"].pattern == "MSSQL*_*Locks"
    gatherer = BY_OBJECT["Search Gatherer - SharePointServerSearch"]
    assert gatherer.pattern == "*_SearchGathererSharePointServerSearch"
    assert not gatherer.needed
    assert "disk.transfers_per_s" not in {
        means.metric for means in BY_OBJECT["PhysicalDisk"].counters.values()
    }


def test_sql_server_may_be_left_to_its_own_kind() -> None:
    """SQL Server's classes can be left to their own kind; no other class is left out."""
    left = {one.object for one in wanted(sql_server=False)}
    assert left == {name for name in BY_OBJECT if not name.startswith("SQLServer:")}


@pytest.mark.parametrize(
    ("name", "instance"),
    [
        ("MSSQLSERVER_SQLServerLocks", ""),
        ("MSSQLPROD_MSSQLPRODLocks", "PROD"),
        ("MSSQLMY_ONE_MSSQLMY_ONELocks", "MY_ONE"),
        ("MSSQLServerOLAPService_MSAS2008Locks", None),
        ("MSSQLSERVER_SQLServerDeprecatedLocks", None),
    ],
)
def test_an_instance_of_sql_server_is_told_by_its_class(name: str, instance: str | None) -> None:
    """The instance of SQL Server is taken from the class name, also with an underscore."""
    assert sql_instance(BY_OBJECT["SQLServer:Locks"], name) == instance


def test_of_several_counters_for_one_metric_the_finest_is_taken() -> None:
    """If several counters give one metric, the finest available one is used."""
    memory = BY_OBJECT["Memory"]
    present = {"AvailableMBytes": 65792, "AvailableKBytes": 65792, "PagesInputPersec": 272696320}
    assert set(chosen(memory, present)) == {"AvailableKBytes", "PagesInputPersec"}
    gatherer = BY_OBJECT["Search Gatherer - SharePointServerSearch"]
    assert set(chosen(gatherer, {"ThreadsIdle": 65536})) == {"ThreadsIdle"}
    assert chosen(CounterObject("Memory", "PerfOS_Memory", {}), present) == {}

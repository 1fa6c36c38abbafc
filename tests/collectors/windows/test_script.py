"""The PowerShell script: it parses, it calls only what Windows PowerShell has, and it speaks the protocol.

There is no PowerShell to run it with: its grammar is checked by tree-sitter, and what it says is compared
with what the stand-in says.
"""

from __future__ import annotations

import json
import re

from collectors.windows.standin import CLASSES, CLOUD, FACTS, PROCESS_TYPES, Machine
from powershell import check_script, named, wrong

from pinchpoint_collectors.common.powershell import line_of
from pinchpoint_collectors.windows import openssh, winrm
from pinchpoint_collectors.windows.script import (
    PREFIX,
    PROPERTIES,
    SCRIPT,
    ProcessSelector,
    request,
    script,
    unix_ns,
    wanted,
)

COMMANDS = {
    *("ConvertFrom-Json", "ConvertTo-Json", "ForEach-Object", "Where-Object", "Write-Output", "New-Object"),
    *("Get-CimClass", "Get-CimInstance", "Get-Command", "Get-Item", "Get-ItemProperty", "Test-Path"),
    *("Get-PhysicalDisk", "Get-StorageAdvancedProperty", "Start-Sleep"),
}
"""Cmdlets of Windows PowerShell 5.1 and its modules CimCmdlets and Storage."""


def test_the_script_can_be_read_by_windows() -> None:
    check_script(SCRIPT, script())


def test_what_is_said_around_it_parses() -> None:
    """The loader over SSH is one line; the question for the time is one, too."""
    assert not wrong(openssh.LOADER)
    assert not wrong(winrm.TIME.format(asked=1))
    assert "\n" not in openssh.LOADER
    assert "\n" not in winrm.TIME


def test_every_command_is_its_own_or_powershell_s() -> None:
    """A function that is called and not defined would be found only on a Windows machine."""
    defined = set(re.findall(r"^function ([\w-]+)", script(), re.MULTILINE))
    called = {name for name in named(script(), "command_name") if "-" in name}
    own = {name for name in called if "Pinchpoint" in name}
    assert own == defined, "none is missing, and none is left over"
    assert called - own <= COMMANDS


def test_it_changes_nothing_on_the_machine() -> None:
    """It reads only: no command that sets, removes, installs or writes a file, and no file of its own."""
    verbs = {name.partition("-")[0] for name in named(script(), "command_name") if "-" in name}
    assert verbs.isdisjoint({"Set", "Remove", "Add", "Install", "Register", "Out", "Copy", "Import"})
    assert not re.search(r"WriteAll|Out-File|Add-Type|Set-Content|>>|Temp(?!db)", script())


def test_it_reads_the_classes_that_are_asked_for() -> None:
    """The prefix stands in both, and every need of the formulas: the stamps and the frequency."""
    assert f"$Prefix = '{PREFIX}'" in script()
    for stamp in ("Timestamp_PerfTime", "Timestamp_Sys100NS", "Frequency_PerfTime"):
        assert stamp in script()


def test_the_stand_in_speaks_as_the_script_does() -> None:
    """Every kind of line has the same fields in both, so that what is tested is what Windows would say."""
    said: dict[str, set[str]] = {}
    machine = Machine(failing={"PerfOS_System"}, facts=FACTS + CLOUD)
    sought = [ProcessSelector("service", ("MSSQLSERVER",))]
    texts = [*machine.hello(request(wanted(), 1, sought)), *machine.reading(), machine.time("1")]
    for line in map(json.loads, texts):
        said.setdefault(line["kind"], set()).update(set(line) - {"kind"})
    written: dict[str, set[str]] = {}
    for kind, body in re.findall(r"Write-PinchpointLine '(\w+)' @\{(.*?)\}", script(), re.DOTALL):
        written.setdefault(kind, set()).update(re.findall(r"(?:^|;|\n)\s*(\w+) = ", body))
    rows = re.search(r'Write-Output "\{(""kind"":""rows"".*)\}"', script())
    assert rows is not None
    written["rows"] = set(re.findall(r'""(\w+)"":', rows[1])) - {"kind"}
    assert written.pop("end") == {"why"}
    assert said == written


def test_a_request_is_one_line_that_the_script_understands() -> None:
    """What the script takes from it, and nothing else; ASCII, as it goes through a console."""
    text = request(wanted(), 0.5)
    assert text.isascii()
    assert "\n" not in text
    asked = json.loads(text)
    assert asked["interval_ms"] == 500
    used = set(re.findall(r"\$asked\.(\w+)", script()))
    assert used == set(asked)
    assert set(re.findall(r"\$wanted\.(\w+)", script())) == set(asked["classes"][0])


def test_processes_are_asked_for_where_a_tier_has_some() -> None:
    """By name all that is needed is in the rows; the rest is looked for there, each thing once."""
    assert "PerfProc_Process" not in request(wanted(), 1)
    by_name = json.loads(request(wanted(), 1, [ProcessSelector("process", ("sqlservr",))]))
    assert by_name["classes"][-1] == {"pattern": "PerfProc_Process", "properties": ",".join(PROPERTIES)}
    assert by_name["find"] == []
    line = ProcessSelector("command_line", ('-ap "Größe"', "-ap x"))
    looked_for = json.loads(request(wanted(), 1, [line, line, ProcessSelector("service", ("W3SVC",))]))[
        "find"
    ]
    assert looked_for == [
        {"what": "command_line", "text": '-ap "Größe"'},
        {"what": "command_line", "text": "-ap x"},
        {"what": "service", "text": "W3SVC"},
    ]
    assert set(re.findall(r"\$one\.(\w+)", script())) == set(looked_for[0])


def test_command_lines_stay_on_the_machine() -> None:
    """They may hold passwords: they are compared there, and no line that is written has one."""
    written = re.findall(r"Write-PinchpointLine '\w+' @\{(.*?)\}", script(), re.DOTALL)
    assert script().count("CommandLine") == 2
    assert not [body for body in written if "CommandLine" in body]


def test_every_column_of_the_stand_in_is_asked_for() -> None:
    """The stand-in has no column that nobody reads, except those of another rank."""
    asked = {name for one in wanted() for name in (*one.counters, *one.errors)}
    assert set(PROCESS_TYPES) == set(PROPERTIES)
    columns = {name.removesuffix("_Base") for _, counters in CLASSES.values() for name in counters}
    assert columns <= asked


def test_what_a_profile_prints_is_no_line() -> None:
    """Only objects with a kind are."""
    for text in ("Welcome", "{ not json", "[1]", '{"a": 1}', '{"kind": 3}', ""):
        assert line_of(text) is None
    assert line_of(' {"kind": "ready"}\r') == {"kind": "ready"}


def test_windows_time_becomes_ours() -> None:
    """FILETIME of 2023-02-09T11:11:22.71Z, as a recorded counter's base has it."""
    assert unix_ns(133_204_146_827_100_000) == 1_675_941_082_710_000_000

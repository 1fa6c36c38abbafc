"""Tests of a tier's processes on a Windows machine: search, tracking and CPU, from documented rows."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from collectors.windows.standin import PROCESSES, START, Machine
from collectors.workers import Worker

from pinchpoint_collectors.processes import Process
from pinchpoint_collectors.record import Processes, Sample
from pinchpoint_collectors.windows.local import nothing_runs, processes_here, roots_here
from pinchpoint_collectors.windows.reader import ScriptReader
from pinchpoint_collectors.windows.reading import ClassRows, Row
from pinchpoint_collectors.windows.script import PROPERTIES, ProcessSelector, request, wanted
from pinchpoint_collectors.windows.stream import Arrived
from pinchpoint_collectors.windows.tiers import WindowsTiers, plain, table_of

SQL = ProcessSelector("process", ("SQLSERVR.exe",))


class Conversation:
    """A reader that gets a machine's lines on a tier's processes."""

    def __init__(self, **sought: ProcessSelector) -> None:
        self.machine = Machine()
        self.tiers = WindowsTiers({host: (f"{host}-tier", each) for host, each in sought.items()})
        self.reader = ScriptReader(list(sought), wanted(), 1.0, self.tiers)
        self.sought = list(sought.values())
        self.link = 0

    def begin(self) -> list[Sample]:
        """Open a new link up to its first reading."""
        self.link += 1
        found: list[Sample] = []
        for text in self.machine.hello(request(wanted(), 1, self.sought)):
            found += self._told(text)
        found += self._told(self.machine.time(str(time.time_ns())))
        return [*found, *self.read()]

    def read(self) -> list[Sample]:
        """Return the tier samples of one reading."""
        found = [sample for text in self.machine.reading() for sample in self._told(text)]
        return [sample for sample in found if sample.instance.startswith("tier:")]

    def _told(self, text: str) -> list[Sample]:
        return self.reader.samples([(self.link, Arrived(time.time_ns(), json.loads(text)))])


def values(samples: list[Sample]) -> dict[tuple[str, str], float | None]:
    assert len({each[2:5] for each in samples}) == len(samples)
    return {(each.host, each.metric): each.value for each in samples}


@pytest.mark.parametrize(
    ("sought", "cpu_s"),
    [
        (SQL, 0.5),  # itself 0.4, its child 0.1; not a process that only has its id as parent
        # and both w3wp processes, with and without #1
        (ProcessSelector("process", ("sqlservr", "W3WP")), 0.85),
        (ProcessSelector("service", ("MSSQLSERVER",)), 0.5),
        (ProcessSelector("command_line", ('-ap "SharePoint - 80"',)), 0.3),
    ],
)
def test_cpu_of_a_tier_is_that_of_its_processes(sought: ProcessSelector, cpu_s: float) -> None:
    """A tier's CPU is that of its processes on two processors; the first reading has the core count."""
    talk = Conversation(sql1=sought)
    assert values(talk.begin()) == {("sql1", "cpu.cores"): 2}
    samples = talk.read()
    assert values(samples) == {
        ("sql1", "cpu.cores"): 2,
        ("sql1", "cpu.busy_ratio"): pytest.approx(cpu_s / 2),
    }
    assert {(each.instance, each.interval_s) for each in samples} == {("tier:sql1-tier", 1.0)}


def test_two_tiers_of_one_machine_are_told_apart() -> None:
    """Two tiers on one machine get their own CPU from the same rows."""
    talk = Conversation(sql1=SQL, web1=ProcessSelector("process", ("w3wp",)))
    talk.begin()
    found = values(talk.read())
    assert found["sql1", "cpu.busy_ratio"] == pytest.approx(0.25)
    assert found["web1", "cpu.busy_ratio"] == pytest.approx(0.175)


def test_a_server_that_is_started_anew_is_found_again() -> None:
    """A restarted server is found again; a reused name or id is a new process."""
    talk = Conversation(sql1=SQL)
    talk.begin()
    talk.machine.processes.pop("sqlservr")
    talk.machine.processes.pop("conhost")
    assert values(talk.read()) == {("sql1", "cpu.cores"): None, ("sql1", "cpu.busy_ratio"): None}
    talk.machine.processes["notepad"] = (1433, 600, START + 300, 9_000_000)
    assert values(talk.read())["sql1", "cpu.busy_ratio"] is None
    talk.machine.processes["sqlservr"] = (1700, 600, START + 400, 0)
    assert values(talk.read())["sql1", "cpu.busy_ratio"] is not None


def test_a_process_stays_the_tier_s_when_what_started_it_ends() -> None:
    """A process stays in the tier when its parent ends, as on Linux."""
    talk = Conversation(sql1=SQL)
    talk.begin()
    talk.read()
    talk.machine.processes.pop("sqlservr")
    assert values(talk.read())["sql1", "cpu.busy_ratio"] == pytest.approx(0.05)


def test_what_cannot_be_read_is_null_and_another_link_begins_anew() -> None:
    """An unreadable value is null, and after a gap no sample covers the missing time."""
    talk = Conversation(sql1=SQL)
    talk.begin()
    talk.read()
    talk.machine.failing.add("PerfProc_Process")
    lost = talk.read()
    assert values(lost) == {("sql1", "cpu.cores"): None, ("sql1", "cpu.busy_ratio"): None}
    assert {each.interval_s for each in lost} == {1.0}
    talk.machine.failing.clear()
    assert talk.begin() == []
    assert values(talk.read())["sql1", "cpu.busy_ratio"] == pytest.approx(0.25)


def test_what_is_not_measured_is_said_with_the_remedy() -> None:
    """Threads, missing processes, and missing process counters are listed with the remedy."""
    talk = Conversation(sql1=SQL, web1=ProcessSelector("service", ("W3SVC",)))
    talk.begin()
    assert [each.instance for each in talk.tiers.missing("sql1")] == ["thread:*"]
    (_, missing) = talk.tiers.missing("web1")
    assert missing.instance == "tier:web1-tier"
    assert "service W3SVC" in missing.why
    assert "Get-Service" in str(missing.remedy)
    broken = Conversation(sql1=SQL)
    broken.machine.without.add("PerfProc_Process")
    broken.begin()
    assert "no counters of processes" in [*broken.tiers.missing("sql1")][1].why
    assert list(broken.tiers.missing("another")) == []


@pytest.mark.parametrize("name", ["sqlservr", "SQLSERVR.EXE", "sqlservr#12", " sqlservr.exe#1 "])
def test_a_program_has_one_name(name: str) -> None:
    """A process name matches with or without its suffix and number, in any case."""
    assert plain(name) == "sqlservr"


def test_names_that_end_with_the_id_are_understood() -> None:
    """Names that end with the process id are read, as with ``ProcessNameFormat`` and the version 2 object."""
    cells = (1433, 600, START, 5, 3)
    rows = ClassRows(0, {"sqlservr_1433": Row(1, 1, 1, cells), "w3wp:7": Row(1, 1, 1, (7, *cells[1:]))})
    assert {one.name for one in table_of(rows, PROPERTIES).values()} == {"sqlservr", "w3wp"}


def test_rows_without_the_needed_cells_are_no_processes() -> None:
    """The total, the idle process, and rows with a missing cell are no processes."""
    whole = (1433, 600, START, 5, 3)
    rows = {"_Total": (0, 0, 0, 9, 9), "Idle": (0, 0, 0, 9, 2), "odd": (8, 1, None, 5, 1), "sqlservr": whole}
    table = table_of(ClassRows(0, {name: Row(1, 1, 1, cells) for name, cells in rows.items()}), PROPERTIES)
    assert table == {1433: Process(1433, 0, "sqlservr", START, 3, 5, 0)}
    assert set(PROCESSES) >= {"_Total", "Idle"}


@pytest.fixture
def worker() -> Iterator[Worker]:
    found = Worker("0")
    yield found
    found.close()


@pytest.mark.parametrize("by", ["pid", "name", "port"])
def test_this_machine_s_own_processes_by_psutil(worker: Worker, by: str) -> None:
    """With psutil, as `local` does on Windows, a process is found with its child and exact CPU."""
    port = int(worker.answer())
    name = f"pp-win-{os.getpid()}"
    worker.do(f"name {name}")
    ways: dict[str, Callable[[], Processes]] = {
        "pid": lambda: Processes(pids=(worker.pid,)),
        "name": lambda: Processes(names=(f"{name.upper()}.EXE",)),
        "port": lambda: Processes(port=port),
    }
    sought: Any = ways[by]()
    before = processes_here()
    (found,) = roots_here(sought, before)
    assert found.pid == worker.pid
    worker.do("burn 0.2")
    after = processes_here()
    assert (after[worker.pid].own - found.own) / 1e7 == pytest.approx(0.2, abs=0.05)
    assert after[worker.pid].start == found.start
    assert os.getpid() == after[worker.pid].parent
    assert roots_here(Processes(names=("nobody-is-called-so",)), after) == []
    assert "nobody" in nothing_runs("sql", Processes(names=("nobody",))).why

"""Tests of a /proc mounted with hidepid: other users' processes are listed but not readable."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from pinchpoint_collectors.linux import processes
from pinchpoint_collectors.linux.files import read_text
from pinchpoint_collectors.linux.processes import ProcessTable, Roots, read_threads
from pinchpoint_collectors.local import LocalKind
from pinchpoint_collectors.record import Processes, Watch

OWN = f"/proc/{os.getpid()}/"


@pytest.fixture
def hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate hidepid=1 for an ordinary user."""
    listed = os.listdir

    def read(path: str) -> str:
        if not path.startswith(OWN):
            raise PermissionError(1, "Operation not permitted", path)
        return read_text(path)

    def names(path: str | Path) -> list[str]:
        if str(path).endswith("/task") and not str(path).startswith(OWN):
            raise PermissionError(1, "Operation not permitted", path)
        return listed(path)

    monkeypatch.setattr(processes, "read_text", read)
    monkeypatch.setattr(os, "listdir", names)


@pytest.mark.usefixtures("hidden")
def test_what_is_hidden_is_not_there_and_the_rest_is() -> None:
    """Only readable processes are in the table, and the others cause no error."""
    assert list(ProcessTable().read()) == [os.getpid()]
    assert os.getpid() in read_threads(os.getpid())
    assert read_threads(1) == {}


@pytest.mark.usefixtures("hidden")
def test_a_tier_that_is_hidden_costs_its_own_figures_only() -> None:
    """A hidden tier loses only its own metrics, and the remedy names the mount option."""
    collector = LocalKind().connect([Watch("sql1", "sql", processes=Processes(names=("postgres",)))])
    collector.read()
    time.sleep(0.05)
    values = {(each.metric, each.instance): each.value for each in collector.read()}
    assert values["cpu.busy_ratio", ""] is not None
    assert values["cpu.busy_ratio", "tier:sql"] is None
    (missing,) = (
        each for each in collector.inventory()["sql1"]["not_measured"] if each["instance"] == "tier:sql"
    )
    assert missing["why"] == "no process named postgres runs there"
    assert "hidepid" in missing["remedy"]


def test_where_all_are_seen_nobody_speaks_of_hidepid() -> None:
    """Without hidepid, seen by the first process, no remedy mentions it."""
    table = ProcessTable().read()
    if 1 not in table:
        pytest.skip("/proc hides other users' processes here")
    for wanted in (Processes(names=("no-such-one",)), Processes(pids=(2**22 + 1,))):
        for seen, said in ((table, False), ({os.getpid(): table[os.getpid()]}, True)):
            roots = Roots(wanted)
            assert roots.find(seen) == []
            assert roots.missing is not None
            assert ("hidepid" in roots.missing.remedy) is said

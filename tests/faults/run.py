"""``make faults``: cause one fault in each phase of a run, and check how Pinchpoint handles it.

A cell of the table is a run against real servers on this machine with one fault in one phase. The run is
right under four conditions. It ends in time, with an exit status and a message that fit the fault. At most
one second of the measurements before the fault is missing. No process, file, schema or key is left that the
output does not name. The next run works and leaves nothing. The table is written to ``build/faults.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import psycopg
from faults.cell import MARK, Cell, mount_ext4, prepared, write_plan
from valkey import Valkey

from pinchpoint.store.read import open_run

BUILD = Path(__file__).parents[2] / "build"
PHASES = {
    "start": "checking every endpoint",
    "prepare": "orders: ",
    "warm-up": "warm-up: ",
    "measure": "measuring",
    "write": "removing the data",
    "report": "analysing",
}
"""Phase -> the words on standard error with which the phase begins."""
ENDS_WITHIN_S = 150.0
WAITED_FOR_S = 120.0
"""Additional time limit, in seconds, for a run that waits for a remote worker."""
_STANDS_S = 5.0
_INTO_MEASURE_S = 4.0
OF_RUN = {
    "lost+found",
    "events.jsonl",
    "manifest.json",
    "operations.parquet",
    "samples.parquet",
    "report.html",
    "verdict.json",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault.

    Attributes:
        apply: function that causes the fault.
        phases: phases in which the fault is tried.
        statuses: exit statuses that fit.
        late: exit statuses that fit in the report phase, when the farm is no longer used; empty: same as
            ``statuses``.
        words: pattern that the output or the run's warnings must contain; "": no requirement.
        even_fine: True if a run with exit status 0 must contain ``words`` too, for a fault before the end of
            the load.
        never: pattern that the output must not contain.
        parts: further parts of the run, as in ``prepared``.
        mend: function that makes the next run possible.
    """

    apply: Callable[[Cell], None]
    phases: tuple[str, ...]
    statuses: frozenset[int]
    words: str = ""
    even_fine: bool = False
    late: frozenset[int] = frozenset()
    never: str = ""
    parts: tuple[str, ...] = ()
    mend: Callable[[Cell], None] = lambda cell: (cell.out / "ballast").unlink(missing_ok=True)


@dataclass(slots=True)
class Row:
    """One row of build/faults.json."""

    fault: str
    phase: str
    outcome: str
    lost_s: float | None
    orphans: list[str]
    right: bool
    why: str


# ---- what may happen


def _generators(cell: Cell) -> list[psutil.Process]:
    """Return the load generators; wait for them, because they start only after the data is made."""
    deadline = time.monotonic() + ENDS_WITHIN_S
    while not (found := cell.generators()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


def _kill_controller(cell: Cell) -> None:
    cell.killed = True
    cell.controller.kill()


def _stand(*processes: psutil.Process) -> None:
    for one in processes:
        one.suspend()
    time.sleep(_STANDS_S)
    for one in processes:
        with suppress(psutil.NoSuchProcess):
            one.resume()


def _server(url: str) -> psutil.Process:
    port = urlsplit(url).port
    for found in psutil.net_connections("tcp"):
        here = found.laddr[1] if found.laddr else None
        if found.status == psutil.CONN_LISTEN and here == port and found.pid:
            return psutil.Process(found.pid)
    raise AssertionError(f"no server listens on {port}")


def _kill_server(cell: Cell, url: str) -> None:
    cell.gone = True
    server = _server(url)
    for one in [*server.children(recursive=True), server]:
        with suppress(psutil.NoSuchProcess):
            one.kill()


def _stand_server(url: str) -> None:
    server = _server(url)
    _stand(server, *server.children(recursive=True))


def _kill_tier(cell: Cell, tier: str) -> None:
    _kill_server(cell, cell.crawled[tier])


def _stand_tier(cell: Cell, tier: str) -> None:
    _stand_server(cell.crawled[tier])


def _cut(cell: Cell) -> None:
    cell.gone = True
    cell.proxy.close()


def _stall(cell: Cell) -> None:
    cell.gone = True
    cell.proxy.stalled.set()


def _garble(cell: Cell) -> None:
    cell.gone = True
    cell.proxy.garbled.set()


def _fill(cell: Cell) -> None:
    with (cell.out / "ballast").open("wb", buffering=0) as ballast, suppress(OSError):
        while True:
            ballast.write(bytes(65536))


def _remove(cell: Cell) -> None:
    for one in cell.out.iterdir():
        shutil.rmtree(one, ignore_errors=True)


def _abort_disk(cell: Cell) -> None:
    """Make the file system read-only, as the kernel does when the disk fails.

    Data in memory is lost as well: the kernel would write part of it half a minute later.
    """
    subprocess.run(["mount", "-o", "remount,abort", cell.out], check=True)


def _repair_disk(cell: Cell) -> None:
    subprocess.run(["umount", cell.out], check=True)
    # fsck status 1: errors were corrected.
    assert subprocess.run(["fsck.ext4", "-p", cell.out.with_name("disk")], check=False).returncode < 2
    mount_ext4(cell.out)


def _no_descriptors(cell: Cell) -> None:
    cell.controller.rlimit(psutil.RLIMIT_NOFILE, (cell.controller.num_fds(), 4096))


def _no_memory(*processes: psutil.Process) -> None:
    for one in processes:
        room = one.memory_info().vms + 2**20
        one.rlimit(psutil.RLIMIT_AS, (room, room))


def _kill(*processes: psutil.Process) -> None:
    for one in processes:
        with suppress(psutil.NoSuchProcess):
            one.kill()


def _lives(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _watched(cell: Cell) -> list[psutil.Process]:
    """Return the processes on the watched host, without sshd itself."""
    assert cell.host is not None
    return [*cell.host.sessions(), *cell.host.ours()]


def _kill_host(cell: Cell) -> None:
    assert cell.host is not None
    cell.gone = True
    sshd = psutil.Process(cell.host.pid)
    sshd.suspend()  # a suspended sshd accepts no new connection
    deadline = time.monotonic() + _STANDS_S
    while (left := [one for one in _watched(cell) if _lives(one)]) and time.monotonic() < deadline:
        _kill(*left)
        time.sleep(0.02)
    sshd.kill()


def _agent(cell: Cell) -> psutil.Process:
    assert cell.agent is not None
    return cell.agent


def _kill_agent(cell: Cell) -> None:
    cell.gone = True
    _agent(cell).kill()


def _break_link(cell: Cell, how: str) -> None:
    assert cell.link is not None
    if how == "cut":
        cell.link.close()
    else:
        getattr(cell.link, how).set()


NOT_KEPT = ("directory removed", "disk read-only")
"""Faults that destroy the measurements."""
GOES_ON = frozenset({0, 1, 3})
FAILS = frozenset({3, 5})
LOADED = ("warm-up", "measure")
GENERATING = ("prepare", *LOADED)
"""Phases with load generators: they start at the end of prepare and end with the measurement."""
NEEDED = frozenset({1, 3, 5})
"""Exit statuses for the loss of a server that is needed until its data is removed."""
CRAWLED = ("web", "search", "files")
"""Tiers of a crawl's servers; files is a Samba server, which needs root."""
REMOTE = Fault(
    lambda _: None, (*PHASES,), GOES_ON | {5}, "generator2|worker", even_fine=True, parts=("worker",)
)
FAULTS: dict[str, Fault] = {
    "controller SIGKILL": Fault(_kill_controller, tuple(PHASES), frozenset({-9})),
    "controller SIGSTOP 5 s": Fault(
        # The controller's own time limit for an answer may pass while it is suspended; that message fits as
        # well.
        lambda cell: _stand(cell.controller),
        tuple(PHASES),
        GOES_ON | {5},
        never="said nothing|was lost",
    ),
    "generator SIGKILL": Fault(
        lambda cell: _kill(*_generators(cell)),
        GENERATING,
        FAILS | {0},
        "generator|worker",
    ),
    "generator SIGSTOP 5 s": Fault(lambda cell: _stand(*_generators(cell)), GENERATING, GOES_ON),
    "SQL server SIGKILL": Fault(
        lambda cell: _kill_server(cell, cell.sql), tuple(PHASES), NEEDED, "sql|127.0.0.1", late=GOES_ON
    ),
    "SQL server SIGSTOP 5 s": Fault(lambda cell: _stand_server(cell.sql), tuple(PHASES), GOES_ON),
    "NoSQL server SIGKILL": Fault(
        lambda cell: _kill_server(cell, cell.nosql), tuple(PHASES), NEEDED, "nosql|127.0.0.1", late=GOES_ON
    ),
    "NoSQL server SIGSTOP 5 s": Fault(lambda cell: _stand_server(cell.nosql), tuple(PHASES), GOES_ON),
    **{
        f"{tier} server SIGKILL": Fault(
            partial(_kill_tier, tier=tier),
            tuple(PHASES),
            GOES_ON | {5},
            "operations failed|127.0.0.1",
            even_fine=True,
            parts=("crawl",),
        )
        for tier in CRAWLED
    },
    **{
        f"{tier} server SIGSTOP 5 s": Fault(
            # ``check`` also waits 5 s for an answer; its message fits as well.
            partial(_stand_tier, tier=tier),
            tuple(PHASES),
            GOES_ON | {5},
            "operations failed|127.0.0.1",
            parts=("crawl",),
        )
        for tier in CRAWLED
    },
    **{
        f"link to SQL {how}": Fault(break_it, tuple(PHASES), NEEDED, "sql|127.0.0.1", late=GOES_ON)
        for how, break_it in (("cut", _cut), ("stalled", _stall), ("answers garbage", _garble))
    },
    "disk full": Fault(_fill, tuple(PHASES), FAILS, "space|room"),
    "directory removed": Fault(_remove, tuple(PHASES)[1:], FAILS, "gone|kept|removed|missing|no such"),
    "disk read-only": Fault(
        _abort_disk,
        tuple(PHASES),
        FAILS,
        "read-only",
        parts=("ext4",),
        mend=_repair_disk,
    ),
    "descriptors limited": Fault(_no_descriptors, tuple(PHASES), GOES_ON | {5}),
    "memory of the controller limited": Fault(
        lambda cell: _no_memory(cell.controller), tuple(PHASES), GOES_ON | {5}
    ),
    "memory of the generator limited": Fault(
        lambda cell: _no_memory(*_generators(cell)), GENERATING, GOES_ON | {5}
    ),
    "remote worker SIGKILL": replace(REMOTE, apply=lambda cell: _kill(*cell.remote())),
    "remote worker SIGSTOP 5 s": replace(REMOTE, apply=lambda cell: _stand(*cell.remote()), words=""),
    **{
        f"link to the remote worker {how}": replace(REMOTE, apply=partial(_break_link, how=name))
        for how, name in (("cut", "cut"), ("stalled", "stalled"), ("answers garbage", "garbled"))
    },
    "ssh host SIGKILL": Fault(
        _kill_host, tuple(PHASES), GOES_ON | {5}, "db2", even_fine=True, parts=("ssh",)
    ),
    "ssh sessions SIGKILL": Fault(
        lambda cell: _kill(*_watched(cell)), tuple(PHASES), GOES_ON | {5}, parts=("ssh",)
    ),
    "ssh sessions SIGSTOP 5 s": Fault(
        lambda cell: _stand(*_watched(cell)), tuple(PHASES), GOES_ON, parts=("ssh",)
    ),
    "ssh collector SIGKILL": Fault(
        lambda cell: _kill(*cell.readers()), tuple(PHASES), GOES_ON | {5}, parts=("ssh",)
    ),
    "agent SIGKILL": Fault(
        _kill_agent,
        tuple(PHASES),
        GOES_ON | {5},
        "db3",
        even_fine=True,
        parts=("agent",),
    ),
    "agent SIGSTOP 5 s": Fault(lambda cell: _stand(_agent(cell)), tuple(PHASES), GOES_ON, parts=("agent",)),
}


# ---- one cell


def _wait_for(words: str, said: Path, process: subprocess.Popen[str]) -> bool:
    """Return True if the words appeared before the run ended."""
    deadline = time.monotonic() + ENDS_WITHIN_S
    while words not in said.read_text():
        if process.poll() is not None or time.monotonic() > deadline:
            return words in said.read_text()
        time.sleep(0.02)
    return True


def tried(name: str, phase: str) -> Row:
    """Run one cell: start the run, cause the fault, and judge the result."""
    fault = FAULTS[name]
    with prepared(*fault.parts) as cell:
        said = cell.farm.with_name("said.txt")
        cell.process = process = cell.started(said)
        reached = _wait_for(PHASES[phase], said, process)
        if phase == "measure":
            time.sleep(_INTO_MEASURE_S)
        at_s = time.time()
        late = []
        try:
            fault.apply(cell)
        except psutil.NoSuchProcess as gone:
            late = [f"what was to fail had ended: {gone}"] if process.poll() is None else []
        within_s = ENDS_WITHIN_S + WAITED_FOR_S * ("worker" in fault.parts)
        try:
            out, _ = process.communicate(timeout=within_s)
        except subprocess.TimeoutExpired:
            words = said.read_text()
            process.send_signal(signal.SIGABRT)  # the process prints its stack
            with suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=5)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            why = f"it did not end within {within_s:g} s: {said.read_text()[len(words) :][-3000:]}"
            return Row(name, phase, _last(words), None, [], False, why)
        fault.mend(cell)
        if phase in ("start", "prepare"):
            cell.end()  # a worker that has not joined waits for its controller without limit
        words = out + said.read_text()
        wrong = late if reached else [f"the phase was never reached: {_last(words)}"]
        wrong += _wrong_words(fault, phase, process.returncode, words, cell)
        lost_s = _lost(cell, at_s) if phase == "measure" and name not in NOT_KEPT else None
        if lost_s is not None and lost_s > 1:
            wrong.append(f"{lost_s:g} s of what was measured before are missing")
        said_left = re.search(r"left on the farm|made could not be removed", words) is not None
        orphans = _orphans(cell, reported=said_left or cell.killed)
        if "is kept there" in words:
            orphans = [one for one in orphans if one != "file journal"]
        if not cell.gone:
            wrong += _next_run(cell)
            orphans += [f"after the next run: {one}" for one in _orphans(cell, reported=False)]
        wrong += [f"left: {one}" for one in orphans]
        outcome = f"exit status {process.returncode}: {_last(said.read_text() if cell.killed else words)}"
        return Row(name, phase, outcome, lost_s, orphans, not wrong, "; ".join(wrong))


def _last(words: str) -> str:
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    errors = [
        line
        for line in lines
        if re.search(r"cannot|could not|failed\b(?! \|)|lost|invalid|No space|make room|gone|error", line)
    ]
    return (errors or lines or [""])[-1][:300]


def _wrong_words(fault: Fault, phase: str, status: int, words: str, cell: Cell) -> Iterator[str]:
    allowed = (phase == "report" and fault.late) or fault.statuses
    if status not in allowed:
        yield f"exit status {status}, allowed {sorted(allowed)}: {_last(words)}"
    for word in ("Traceback", "internal error"):
        if word in words:
            yield f"it printed {word!r}: {words[-600:]}"
    due = phase in ("start", "prepare", *LOADED) if fault.even_fine else status != 0 and allowed != fault.late
    if fault.words and due and not re.search(fault.words, words + _warnings(cell), re.IGNORECASE):
        yield f"no word of {fault.words!r}: {_last(words)}"


def _runs(cell: Cell) -> list[Path]:
    return [path for path in cell.out.iterdir() if path.is_dir()] if cell.out.exists() else []


def _warnings(cell: Cell) -> str:
    found = [run / "manifest.json" for run in _runs(cell)]
    written = [text for path in found if path.exists() and (text := path.read_text())]
    return "\n".join(str(json.loads(text)["warnings"]) for text in written)


def _lost(cell: Cell, at_s: float) -> float | None:
    """Return the number of seconds from the start of the load to the fault that have no operation."""
    [run] = _runs(cell)
    seconds = {row["time_s"] for row in open_run(run).operations.to_pylist()}
    if not seconds:
        return at_s
    return float(len(set(range(min(seconds), int(at_s))) - seconds))


def _orphans(cell: Cell, *, reported: bool) -> list[str]:
    """Return leftovers: processes, foreign files, and schemas and keys that the output did not name."""
    deadline = time.monotonic() + 8
    while (left := _processes(cell.mark)) and time.monotonic() < deadline:
        time.sleep(0.1)
    for run in _runs(cell):
        if not cell.killed:
            left += [f"file {path.name}" for path in run.iterdir() if path.name not in OF_RUN]
    if reported or cell.gone:
        return left
    with psycopg.connect(cell.sql) as database:
        query = "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'pinchpoint%'"
        left += [f"schema {name}" for (name,) in database.execute(query).fetchall()]
    with Valkey.from_url(cell.nosql) as client:
        left += [f"key {name!r}" for name in client.keys("*")[:3]]
    return left


def _processes(mark: str) -> list[str]:
    found = []
    for one in psutil.process_iter():
        with suppress(psutil.Error):
            if one.environ().get(MARK) == mark and one.status() != psutil.STATUS_ZOMBIE:
                found.append(f"process {' '.join(one.cmdline())[:100]}")
    return found


def _next_run(cell: Cell) -> Iterator[str]:
    """Yield the errors of another run on the same farm."""
    write_plan(cell, 2)
    said = cell.farm.with_name("again.txt")
    process = cell.started(said, *(["--take-over"] if cell.killed else []))
    try:
        process.communicate(timeout=ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        yield "the next run did not end"
        return
    cell.killed = False
    for run in _runs(cell):
        if not (run / "verdict.json").exists():
            shutil.rmtree(run)  # the previous run, whose controller was killed
    if process.returncode not in (0, 1, 3):
        yield f"the next run: exit status {process.returncode}: {_last(said.read_text())}"


def _keep(table: Path, row: Row) -> None:
    """Write a row to the table; it replaces an earlier row of the same cell."""
    kept = json.loads(table.read_text()) if table.exists() else []
    rows = [each for each in kept if (each["fault"], each["phase"]) != (row.fault, row.phase)]
    table.write_text(json.dumps([*rows, asdict(row)], indent=1) + "\n")


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", default="", help="only those whose names this pattern finds")
    parser.add_argument("--phases", default="", help="only these, with spaces between them")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    phases = asked.phases.split() or list(PHASES)
    BUILD.mkdir(exist_ok=True)
    table = BUILD / "faults.json"
    rows: list[Row] = []
    for name, fault in FAULTS.items():
        for phase in fault.phases:
            if re.search(asked.faults, name) and phase in phases:
                row = tried(name, phase)
                rows.append(row)
                print(f"{'right' if row.right else 'WRONG'} {name}, {phase}: {row.outcome}", flush=True)
                if row.why:
                    print(f"      {row.why}", flush=True)
                _keep(table, row)
    print(f"{sum(row.right for row in rows)} of {len(rows)} right")
    return int(not all(row.right for row in rows))


if __name__ == "__main__":
    sys.exit(main())

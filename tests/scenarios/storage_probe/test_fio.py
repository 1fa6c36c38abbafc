"""Tests of fio: recorded JSON and logs with values computed by hand, and real fio on a small file."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import disk_folder, require

from pinchpoint_scenarios.storage_probe import TOOLS, Cell, CellFigures, Job, ProbePlace, ToolFailed
from pinchpoint_scenarios.storage_probe.tools.fio import course, measured

RECORDED: dict[str, Any] = {
    # fio 3.33, randrw 8 KiB, queue depth 2, 10 I/Os; without percentiles and unread fields.
    "fio version": "fio-3.33",
    "jobs": [
        {
            "jobname": "cell",
            "error": 0,
            "read": {
                "io_bytes": 40960,
                "bw_bytes": 40960000,
                "iops": 5000.0,
                "runtime": 1,
                "total_ios": 5,
                "lat_ns": {
                    "min": 46449,
                    "max": 246335,
                    "mean": 132885.0,
                    "stddev": 90215.972164,
                    "N": 5,
                    "bins": {"46336": 1, "56064": 1, "108032": 1, "207872": 1, "246784": 1},
                },
            },
            "write": {
                "io_bytes": 40960,
                "bw_bytes": 40960000,
                "iops": 5000.0,
                "runtime": 1,
                "total_ios": 5,
                "lat_ns": {
                    "min": 76683,
                    "max": 283019,
                    "mean": 173110.2,
                    "stddev": 100992.022931,
                    "N": 5,
                    "bins": {"76288": 1, "101888": 1, "121344": 1, "280576": 1, "284672": 1},
                },
            },
        }
    ],
}
NOTHING = {"io_bytes": 0, "runtime": 0, "total_ios": 0, "lat_ns": {"max": 0, "mean": 0.0, "N": 0}}


def said(**changed: Any) -> str:
    """Return fio's output with changed fields of its job."""
    [job] = RECORDED["jobs"]
    return json.dumps({**RECORDED, "jobs": [{**job, **changed}]}, indent=1)


def test_the_recorded_job_by_hand() -> None:
    """Ten I/Os in 1 ms: rates of both directions, mean (5 x 132,885 + 5 x 173,110.2) ÷ 10 ns, ten bins."""
    one = measured(said(), "", 8192)
    assert (one.reads_per_s, one.writes_per_s) == (5000.0, 5000.0)
    assert (one.read_bytes_per_s, one.write_bytes_per_s) == (40960000.0, 40960000.0)
    assert one.mean_s == pytest.approx(152997.6e-9)
    assert one.max_s == pytest.approx(283019e-9)
    assert one.seconds == 0.001
    assert one.times_ns is not None
    assert sorted(one.times_ns.values()) == [1] * 10
    assert sum(one.times_ns) / 10 == pytest.approx(152997.6, rel=0.01)  # within the width of the bins


def test_waiting_for_the_last_ones_is_no_part_of_the_rate() -> None:
    """The final wait is not in the rate: 600 I/Os at 400 a second take 1.5 s, though fio reports 1,578 ms."""
    [job] = RECORDED["jobs"]
    write = job["write"] | {"total_ios": 600, "io_bytes": 632 * 4096, "runtime": 1578}
    one = measured(said(read=NOTHING, write=write), "", 4096, asked_s=1.5)
    assert (one.writes_per_s, one.write_bytes_per_s, one.seconds) == (400.0, 400.0 * 4096, 1.5)


def test_one_at_a_time_the_last_one_counts_with_its_time() -> None:
    """At depth 1 the last I/O counts with its time: 18 I/Os of 116.5 ms in 2,097 ms are 8.58 a second."""
    [job] = RECORDED["jobs"]
    write = job["write"] | {"total_ios": 18, "io_bytes": 18 * 2**20, "runtime": 2097}
    for depth, expected in ((1, 18 / 2.097), (2, 18 / 2.0)):
        cell = Cell("SEQ1M write", 2**20, 0.0, 0.0, depth)
        place = ProbePlace(Path("/nowhere"), 2**30, None, 2**30)
        found = TOOLS["fio"].read(Job("fio", (cell,), 2.0), place, said(read=NOTHING, write=write), "")
        assert found[cell].writes_per_s == pytest.approx(expected)


def test_a_way_that_did_nothing_has_no_latency_of_0() -> None:
    """A direction without I/O has no latency, not 0."""
    one = measured(said(write=NOTHING), "", 8192)
    assert one.writes_per_s == 0.0
    assert one.mean_s == pytest.approx(132885e-9)
    nothing = measured(said(read=NOTHING, write=NOTHING), "", 8192)
    assert (nothing.mean_s, nothing.max_s, nothing.times_ns) == (None, None, None)


def test_notes_may_stand_before_the_json() -> None:
    assert measured("note: both iodepth >= 1 and synchronous I/O\n" + said(), "", 8192).reads_per_s == 5000


@pytest.mark.parametrize("text", ["", "fio: no such option\n", "{\n", '{\n"jobs": []}', '{\n"a": 1}'])
def test_what_is_no_such_json(text: str) -> None:
    with pytest.raises(ToolFailed, match="did not print the JSON"):
        measured(text, "bad option", 8192)


def test_an_error_of_the_job_is_an_error() -> None:
    """A job's error is an error even with exit status 0; 28 is "no space left"."""
    with pytest.raises(ToolFailed, match="error 28: fio: No space left on device"):
        measured(said(error=28), "fio: No space left on device\n", 8192)


IOPS_LOG = "1000, 14061, 0, 0, 0\n1000, 5999, 1, 0, 0\n2000, 100, 0, 0, 0\n3000, 10, 0, 0, 0\n"
LATENCY_LOG = "1000, 162617, 0, 0, 0\n1000, 284384, 1, 0, 0\n2000, 2000000, 0, 0, 0\n4500, 5, 0, 0, 0\n"


def test_the_course_by_hand() -> None:
    """Rates are added and latencies weighted: 14,061 x 162,617 and 5,999 x 284,384 give 199,031 ns."""
    tail = "".join(f"{second}000, 7, 0, 0, 0\n" for second in (4, 5))
    found = course(IOPS_LOG + tail, LATENCY_LOG, 1.0)
    assert found is not None
    assert found.iops == (20060.0, 100.0, 10.0, 7.0, 7.0)
    assert found.latency_s[0] == pytest.approx(199031e-9, rel=1e-4)
    assert found.latency_s[1] == pytest.approx(0.002)
    assert found.latency_s[2] is None
    assert found.step_s == 1.0


def test_a_course_of_a_few_steps_is_none() -> None:
    """A cell of three seconds has no time course."""
    assert course(IOPS_LOG, LATENCY_LOG, 1.0) is None
    assert course("", "", 1.0) is None


@pytest.fixture
def place() -> Iterator[ProbePlace]:
    """Yield a folder on a real disk and remove it afterwards."""
    require("fio", "fio")
    with tempfile.TemporaryDirectory(prefix=disk_folder(), dir="/var/tmp") as folder:
        yield ProbePlace(Path(folder), 2**24, None, 2**30)


def called(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


def ran(job: Job, place: ProbePlace) -> CellFigures:
    [command] = TOOLS["fio"].commands(job, place)
    done = called(list(command), place.folder)
    assert done.returncode == 0, done.stderr
    [one] = TOOLS["fio"].read(job, place, done.stdout, done.stderr).values()
    return one


def test_fio_itself(place: ProbePlace) -> None:
    """Real fio does I/O only in its file, with the requested shares, and leaves no logs."""
    prepared = called(list(TOOLS["fio"].prepare(place)), place.folder)
    assert prepared.returncode == 0, prepared.stderr
    assert place.file.stat().st_blocks * 512 >= place.size_bytes
    job = Job("fio", (Cell("mix", 8192, 0.67, 0.5, 4),), 0.5)
    one = ran(job, place)
    assert one.reads_per_s
    assert one.writes_per_s
    assert one.reads_per_s / (one.reads_per_s + one.writes_per_s) == pytest.approx(0.67, abs=0.1)
    assert [path.name for path in place.folder.iterdir()] == [place.file.name]


def test_a_log_s_writes_by_fio(place: ProbePlace) -> None:
    """Real fio writes with O_DSYNC, one in flight, so rate and latency agree but for the ends."""
    called(list(TOOLS["fio"].prepare(place)), place.folder)
    cell = Cell("log 4K write", 4096, 0.0, 0.0, 1, "log")
    flushed = ran(Job("fio", (cell,), 0.5, flush_each=True), place)
    assert flushed.writes_per_s
    assert flushed.mean_s
    assert 0.2 < flushed.writes_per_s * flushed.mean_s < 1.1


def test_fio_s_own_words(place: ProbePlace) -> None:
    """The error has fio's own message, here for a file that is a folder."""
    place.file.mkdir()
    done = called(list(TOOLS["fio"].prepare(place)), place.folder)
    assert done.returncode
    assert "Is a directory" in TOOLS["fio"].why(done.stdout, done.stderr)
    words = TOOLS["fio"].why("", "fio: looks like your file system does not support direct=1/buffered=0\n")
    assert "give a folder on a disk" in words

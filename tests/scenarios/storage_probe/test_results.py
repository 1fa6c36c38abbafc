"""Tests of other tools' result files: figures in base units, missing ones are None."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from pinchpoint_collectors.common.legible import ForeignFileError
from pinchpoint_scenarios.storage_probe import SUITES, Cell, CellFigures
from pinchpoint_scenarios.storage_probe.results import RESULTS, ResultFile, recognised

from . import result_files as files

SAMPLES = [(kind, text) for kind, texts in files.ALL.items() for text in texts]


def _read(kind: str, text: str) -> tuple[ResultFile, dict[str, CellFigures | None]]:
    found = RESULTS[kind].read(text)
    return found, {one.cell.name: one.measured for one in found.results}


@pytest.mark.parametrize(("kind", "text"), SAMPLES)
def test_each_kind_is_recognised_by_its_beginning(kind: str, text: str) -> None:
    """Exactly one kind recognises each file by its beginning."""
    assert [name for name, each in RESULTS.items() if each.recognises(text[:8192])] == [kind]
    assert recognised("some,csv\n1,2\n") is None


def test_diskspd_of_a_later_version() -> None:
    """Additions of later versions (I/O rings, BypassIO, topology, units) change no figure."""
    for name in ("IoRing", "BypassIO", "ProcessorTopology", 'unit="IOPS"', "SubmitCount"):
        assert name in files.DISKSPD_NEWER
    later, older = (RESULTS["diskspd"].read(text) for text in (files.DISKSPD_NEWER, files.diskspd()))
    assert (later.version, older.version) == ("2.3.0", "2.2.0")
    assert later.results == older.results
    assert RESULTS["diskspd"].recognises(files.DISKSPD_NEWER[:200])


def test_diskspd() -> None:
    """DiskSpd's threads are added; percentiles, mean and time course are its own."""
    found, cells = _read("diskspd", files.diskspd())
    assert (found.version, found.host, found.size_bytes) == ("2.2.0", "SQL1", 2**30)
    assert found.paths == ["L:\\probe.dat"]
    assert found.results[0].started is not None
    assert found.results[0].started.isoformat() == "2026-11-20T09:00:05+00:00"
    one = cells["8K random 70% read, 8 outstanding"]
    assert one is not None
    assert (one.seconds, one.reads_per_s, one.writes_per_s) == (10, 700, 300)
    assert (one.read_bytes_per_s, one.write_bytes_per_s) == (5_734_400, 2_457_600)
    assert (one.mean_s, one.max_s) == (0.004, 0.04125)
    assert one.times_ns == {2_000_000: 5000, 9_000_000: 4500, 12_500_000: 400, 30_000_000: 90, 41_250_000: 10}
    assert one.series is not None
    assert (one.series.step_s, one.series.iops[0]) == (1, 1000)
    assert one.series.latency_s[0] == pytest.approx(0.0039)


def test_diskspd_without_latency() -> None:
    found, cells = _read("diskspd", files.DISKSPD_PLAIN)
    [one] = cells.values()
    assert one is not None
    assert (one.mean_s, one.max_s, one.times_ns, one.series) == (None, None, None, None)
    assert found.notes == []


@pytest.mark.parametrize(
    ("changed", "cell"),
    [
        ({"target": "<StrideSize>8192</StrideSize>"}, Cell("8K sequential 70% read", 8192, 0.7, 0.0, 8)),
        (
            {"target": "<Random>8192</Random><RandomRatio>25</RandomRatio>"},
            Cell("8K 25% random 70% read", 8192, 0.7, 0.25, 8),
        ),
        ({"write_ratio": 100}, Cell("8K random write", 8192, 0.0, 1.0, 8)),
    ],
)
def test_what_diskspd_was_told(changed: dict[str, object], cell: Cell) -> None:
    assert RESULTS["diskspd"].read(files.diskspd(**changed)).results[0].cell == cell  # type: ignore[arg-type] # a table's values


def test_what_does_not_show_the_disk() -> None:
    """A result with the tool's rate limit is not measured, and I/O through the page cache has a note."""
    found = RESULTS["diskspd"].read(files.diskspd(cache="").replace("<Throughput>0<", "<Throughput>80<"))
    assert "memory may have been measured" in found.notes[0]
    assert found.results[0].measured is None
    assert "limited to 80 bytes per millisecond" in str(found.results[0].failed)
    cut = files.diskspd(span="<TimeSpan>\n<Error>The test was interrupted</Error>\n</TimeSpan>\n")
    assert RESULTS["diskspd"].read(cut).results[0].failed == "The test was interrupted"


def test_crystaldiskmark_has_the_cells_of_our_suite() -> None:
    ours = {cell for job in SUITES["crystaldiskmark"].jobs(5.0) for cell in job.cells}
    found, cells = _read("crystaldiskmark", files.CDM_8)
    assert {one.cell for one in found.results} <= ours
    one = cells["RND4K mix, 1 outstanding"]
    assert one is not None
    assert one.seconds == 10
    assert (one.reads_per_s, one.writes_per_s) == pytest.approx((3500, 1500))
    assert one.mean_s == pytest.approx(196.72e-6)
    assert (found.paths, found.size_bytes, found.notes) == (["F:"], 2**30, [])


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (files.CDM_5, ["SEQ128K read, 32", "RND4K read, 32", "SEQ1M write, 1", "RND4K write, 1"]),
        (files.CDM_6, ["RND4K read, 64"]),
        (files.CDM_7, ["RND4K read, 512", "SEQ1M write, 8"]),
    ],
)
def test_crystaldiskmark_of_older_versions(text: str, names: list[str]) -> None:
    """Up to version 6 sequential I/O with a queue has 128 KiB; tests that did not run are missing, not 0."""
    found, cells = _read("crystaldiskmark", text)
    assert {f"{name} outstanding" for name in names} <= cells.keys()
    assert found.notes == ["CrystalDiskMark reports the best of 5 repetitions, not their spread"]
    if text is files.CDM_5:
        assert cells["RND4K write, 1 outstanding"] is None


@pytest.mark.parametrize(("text", "unit"), [(files.IOMETER_2006, 2**20), (files.IOMETER_1_1, 1.048576e6)])
def test_iometer(text: str, unit: float) -> None:
    """Specification names may have commas, the queue depth covers all targets, old MB are 2^20 bytes."""
    found, cells = _read("iometer", text)
    one = cells["8K random 67% read, 16 outstanding"]
    assert one is not None
    assert (one.reads_per_s, one.writes_per_s, one.mean_s, one.max_s) == (1000, 500, 0.0045, 0.04125)
    assert one.read_bytes_per_s == pytest.approx(7.8125 * unit)
    assert (found.paths, found.size_bytes) == (["PHYSICALDRIVE:3"], 2**30)


def test_fio_of_version_3() -> None:
    found, cells = _read("fio", files.FIO_3)
    one, mixed = cells["8K random read, 4 outstanding"], cells["4K random 70% read, 2 outstanding"]
    assert one is not None
    assert mixed is not None
    assert (one.reads_per_s, one.read_bytes_per_s, one.mean_s) == (26667.332667, 218458789, 149264.21016e-9)
    assert one.times_ns == {
        71168: 1600,
        109056: 78400,
        230000: 72000,
        700416: 6400,
        2000000: 1440,
        5379697: 160,
    }
    assert mixed.times_ns == {68096: 57000, 4800000: 400, 180224: 24600}
    assert mixed.mean_s == pytest.approx((95760 * 57400 + 195760 * 24600) / 82000 / 1e9)
    assert cells["64K sequential write, 1 outstanding"] is None
    assert "rate_iops=100" in str(found.results[2].failed)
    assert found.size_bytes == 16 * 2**20


def test_fio_of_version_2() -> None:
    """Output of fio 2 is in microseconds and KiB; jobs keep their names; grouped jobs ran together."""
    found, cells = _read("fio", files.FIO_2)
    one, old = cells["4K sequential write, flushed, 1 outstanding"], cells["seq-old"]
    assert one is not None
    assert old is not None
    assert found.results[0].cell.role == "log"
    assert (one.mean_s, one.max_s, one.write_bytes_per_s) == (0.00395, 0.00633, 1_024_000)
    assert (old.read_bytes_per_s, old.reads_per_s, old.times_ns) == (2_097_152, 5, None)
    assert any("ran at the same time" in note for note in found.notes)


def test_jobs_of_one_name_are_one_cell() -> None:
    """Jobs with one name (``numjobs`` without ``group_reporting``) are one cell; percentiles are missing."""
    text = files.FIO_3.replace('"jobname" : "b", "groupid" : 1', '"jobname" : "a", "groupid" : 0')
    _, cells = _read("fio", text)
    one = cells["8K random read, 8 outstanding"]
    assert one is not None
    assert one.reads_per_s == pytest.approx(26667.332667 + 9572.427572)
    assert one.times_ns is None


@pytest.mark.parametrize("text", [files.BONNIE_98, files.BONNIE_97])
def test_bonnie(text: str) -> None:
    found, cells = _read("bonnie", text)
    assert (found.host, found.size_bytes) == ("db1", 16 * 2**30)
    write, seeks = cells["bonnie block write"], cells["bonnie seeks"]
    assert write is not None
    assert seeks is not None
    assert (write.write_bytes_per_s, write.max_s, seeks.reads_per_s) == (204800 * 1024, 0.602, 512.5)
    assert cells["bonnie create files in order"] is None
    assert set(cells) <= {cell.name for job in SUITES["bonnie"].jobs(0) for cell in job.cells}


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        ("diskspd", "Input parameters:\n", "no <Results> was found"),
        ("diskspd", files.diskspd()[:900], "cut off"),
        (
            "diskspd",
            files.diskspd().replace("<WriteCount>1500", "<WriteCount>many"),
            "WriteCount: found 'many'",
        ),
        (
            "diskspd",
            files.diskspd().replace("<Results>", "<Results><!ENTITY a 'b'>"),
            "cannot be read as XML",
        ),
        ("diskspd", files.diskspd(span=""), "the run did not end"),
        ("crystaldiskmark", files.CDM_8.replace("8.0.4", "3.0.1"), "supported: versions 5 to 9"),
        ("crystaldiskmark", files.CDM_8[:600], "cut off"),
        ("crystaldiskmark", files.CDM_8.replace("21.640", "21,640"), "found '21,640'"),
        ("iometer", files.IOMETER_1_1[:700], "cut off"),
        ("iometer", files.IOMETER_1_1.replace(",41.25,40,41.25,0", ""), "the line is cut off"),
        ("fio", files.FIO_3[:900], "cannot be read as JSON"),
        ("fio", files.FIO_3.replace('"iops" : 26667.332667', '"iops" : -1'), "iops: found '-1'"),
        ("fio", files.FIO_3.replace('"iodepth" : "4"', '"iodepth" : "9999999999"'), "outstanding I/Os"),
        ("bonnie", "name,16G,1\n", "no line of bonnie++'s CSV"),
        ("bonnie", files.BONNIE_98[:-60], "the line is cut off"),
        ("bonnie", files.BONNIE_98.replace("1.98", "9.99", 1), "supported: 1.96, 1.97, 1.98"),
    ],
)
def test_a_damaged_file(kind: str, text: str, words: str) -> None:
    with pytest.raises(ForeignFileError, match=words.replace("+", r"\+")):
        RESULTS[kind].read(text)


def _damaged(text: str) -> Iterator[str]:
    yield from ("", "\0" * 100, "[" * 5000, "<Results>" * 5000, "9" * 5000)
    yield from (text[: len(text) * part // 8] for part in range(8))
    chance = random.Random(7)
    for _ in range(60):
        at = chance.randrange(len(text))
        yield text[:at] + chance.choice("\0x-9,<{\u2028") + text[at + 1 :]
    for word in ("9" * 400, "nan", "-1", "1e999"):
        at = text.find("1", chance.randrange(len(text)))
        yield text[:at] + word + text[at + 1 :]


@pytest.mark.parametrize("kind", RESULTS)
def test_damaged_files_end_in_words(kind: str) -> None:
    """Damaged files, nonsense and other kinds' files give figures or a Pinchpoint error."""
    for name, text in SAMPLES:
        for one in _damaged(text) if name == kind else [text]:
            try:
                found = RESULTS[kind].read(one)
            except ForeignFileError:
                continue
            assert found.results

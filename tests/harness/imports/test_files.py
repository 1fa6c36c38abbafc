"""Foreign files: what is read, what is refused, and what the resulting run contains."""

from __future__ import annotations

import json
import os
from datetime import UTC
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from collectors.imports.blg_file import event, trace
from collectors.imports.logs import CRAWL_HISTORY
from collectors.imports.test_blg import CATALOGUE, READINGS
from harness.imports.days import between, day
from harness.imports.made import BUSY_AT_NIGHT, DISKS, imported, places, written
from support import run_cli

from pinchpoint.analysis.saved import verdict_of
from pinchpoint.base.errors import InputError
from pinchpoint.cli.import_ import import_
from pinchpoint.imports import import_as_run, import_into_run, open_source, read_places
from pinchpoint.imports.reading import TimeSpan
from pinchpoint.store.read import open_run
from pinchpoint_collectors.imports.record import Settings


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_run_of_somebody_else_is_judged_all_the_same(tmp_path: Path) -> None:
    """A verdict on another user's run is printed and not stored, with a message."""
    directory = imported(tmp_path, day(hours=1))
    directory.chmod(0o555)
    try:
        done = run_cli("analyse", directory)
    finally:
        directory.chmod(0o755)
    assert (done.returncode, "so the verdict is not kept" in done.stderr) == (0, True)
    assert not (directory / "verdict.json").exists()


def test_the_run_directory_is_whole_or_not_there(tmp_path: Path) -> None:
    """A file that is damaged at its end leaves no run directory."""
    text = day(hours=1).replace('"11/20/2026 00:59:00.000"', '"no time"')
    with pytest.raises(InputError, match=r"farm\.csv:61: found the time 'no time'"):
        imported(tmp_path, text)
    assert list((tmp_path / "runs").iterdir()) == []


def test_a_line_that_would_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line of 1 GB is refused by its length, with its line number (it took 2.2 GB of memory)."""
    monkeypatch.setattr("pinchpoint.imports.source._MOST_BYTES", 1000)
    lines = day(hours=1).splitlines()
    lines[3] = lines[3][:-1] + "1" * 1001 + '"'
    with pytest.raises(InputError, match=r"farm\.csv:4: a line of more than 1,000 characters; export"):
        imported(tmp_path, "\n".join(lines))


@pytest.mark.parametrize("part", ["[],\n", '{"a":1},', '"ab", ', "1.5,", "\n", "\U0001f600"])
def test_json_that_would_fill_the_memory(part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """JSON is refused by its worst memory use before parsing (120 MB of [], took 3 GB)."""
    monkeypatch.setattr("pinchpoint_collectors.common.legible._MOST_BYTES", 10**6)
    begin = '{"sysstat": {"hosts": [{"nodename": "a", "file-date": "2026-01-01", "statistics": ['
    path = tmp_path / "sar.json"
    path.write_text(begin + part * 600_000)
    ended = run_cli("import", path, "--out", tmp_path / "runs")
    assert ended.returncode == 2, ended.stderr
    assert f"{path}: it is a JSON file that takes more than 1 GB of memory" in ended.stderr


def test_a_result_that_would_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """XML is refused by its size, because reading it takes a multiple of that in memory."""
    monkeypatch.setattr("pinchpoint.imports.source._MOST_RESULT_BYTES", 1000)
    path = tmp_path / "diskspd.xml"
    path.write_text(f"<Results><System>{'<a/>' * 300}</System></Results>")
    ended = run_cli("import", path, "--out", tmp_path / "runs")
    assert ended.returncode == 2, ended.stderr
    assert f"{path}: has 1,236 bytes; allowed: 1,000 for a result of a storage tool" in ended.stderr


def test_a_binary_log(tmp_path: Path) -> None:
    """A binary log is recognised by its first bytes, whatever its name."""
    path = tmp_path / "monday.bin"
    path.write_bytes(trace([CATALOGUE, *(event(0x22, one, 15 * at) for at, one in enumerate(READINGS))]))
    ended = run_cli("import", path, "--disk", "SQL1:L:=sql.log", "--out", tmp_path / "runs")
    assert ended.returncode == 0, ended.stderr
    manifest = open_run(Path(ended.stdout.splitlines()[-1])).manifest
    assert (manifest["imports"][0]["kind"], manifest["started"]) == ("blg", "2025-08-18T14:13:20.000Z")
    path.write_text("some,csv")
    with pytest.raises(InputError, match="no binary log of Windows Vista"):
        open_source(path, "blg")


def test_the_manifest_says_where_the_samples_come_from(tmp_path: Path) -> None:
    """The manifest has file, kind, checksum, time span, machines, UTC times and disk roles."""
    directory = imported(tmp_path, day(hours=1))
    manifest = open_run(directory).manifest
    [entry] = manifest["imports"]
    assert (entry["file"], entry["kind"], entry["hosts"]) == (
        "farm.csv",
        "perfmon",
        {"SQL1": "SQL1", "APP3": "APP3"},
    )
    assert entry["from"] == "2026-11-19T23:00:00.000Z"
    assert manifest["phases"] == [
        {"name": "measure", "from": "2026-11-19T23:00:00.000Z", "to": "2026-11-20T00:00:00.000Z"}
    ]
    assert manifest["hosts"]["SQL1"]["roles"]["log"]["device"] == "L:"
    assert entry["samples"] == pq.read_table(directory / "samples.parquet").num_rows


def test_a_time_in_between_is_wanted(tmp_path: Path) -> None:
    """A time range selects samples, and an empty one is an error with the available range."""
    source = open_source(written(tmp_path, day(hours=6, app_cpu=BUSY_AT_NIGHT, complete=True)), None)
    begin_s = 1763593200.0 + 365 * 86400  # 2026-11-19T23:00Z
    late = TimeSpan(begin_s + 4 * 3600, begin_s + 5 * 3600)
    directory = import_as_run([source], Settings(), places(*DISKS), late, tmp_path / "runs")
    stored, verdict = verdict_of(directory)
    assert stored.manifest["started"] == "2026-11-20T03:00:00.000Z"
    assert verdict.outcome == "not_reached"
    with pytest.raises(InputError, match="2026-11-19 23:00:00 UTC to 2026-11-20 05:00:00 UTC"):
        import_as_run([source], Settings(), places(), TimeSpan(begin_s + 9e5, None), tmp_path / "runs")


def test_a_machine_without_a_name_must_be_given_one(tmp_path: Path) -> None:
    """A machine without a name needs one from an option."""
    with pytest.raises(InputError, match="--host"):
        imported(tmp_path, CRAWL_HISTORY, places(), "crawl.csv")
    with pytest.raises(InputError, match="several machines"):
        imported(tmp_path, day(hours=0.1), places(host="X"))


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("x.blg", b"\x00\x01PDH", "relog"),
        ("sa20", b"\x96\xd5\x75\x21\x00\x00", "sadf -j"),
        ("x.txt", b"hello\n", "the known kinds"),
        ("x.csv", b"", "it is empty"),
    ],
)
def test_files_that_cannot_be_imported(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    """A file that cannot be imported gives a message with what was found and what to do."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=words):
        open_source(tmp_path / name, None)


def test_options_that_cannot_be_read_are_all_told() -> None:
    """All unreadable options are listed with the allowed values."""
    with pytest.raises(InputError) as caught:
        read_places(None, ["SQL1:L:"], ["APP3"], ["SQL1=many"], None)
    text = str(caught.value)
    assert "--disk" in text
    assert "--tier" in text
    assert "--memory: SQL1" in text


def test_into_a_run_by_time(tmp_path: Path) -> None:
    """An import into a run adds what was recorded meanwhile; existing series and repeats are refused."""
    directory = imported(tmp_path, day(hours=2, app_cpu=None, log_write_s=0.020))
    before = pq.read_table(directory / "samples.parquet").num_rows
    app = day(hours=6, app_cpu=between(0.5, 1.5, 97.0, 20.0))
    source = open_source(written(tmp_path, app, "app.csv"), None)
    added = import_into_run(directory, [source], Settings(), places())
    assert added == 120  # APP3's CPU in two of six hours; the run already has SQL1's series
    assert pq.read_table(directory / "samples.parquet").num_rows == before + added
    stored, verdict = verdict_of(directory)
    assert stored.manifest["hosts"]["APP3"]["tier"] == "search"
    assert stored.manifest["hosts"]["SQL1"]["roles"]["log"]["device"] == "L:"
    assert len(stored.manifest["imports"]) == 2
    assert any("ignored" in warning for warning in stored.manifest["warnings"])
    assert verdict.outcome == "inconclusive"
    with pytest.raises(InputError, match=r"is already imported.*nothing was changed"):
        import_into_run(directory, [source], Settings(), places())


def test_an_import_that_was_killed_is_completed_by_the_same_command(tmp_path: Path) -> None:
    """After a kill between samples and manifest, the same command completes the import without doubles."""
    directory = imported(tmp_path, day(hours=1, app_cpu=None))
    before = (directory / "manifest.json").read_bytes()
    text = day(hours=1).replace(r"\\SQL1\LogicalDisk(M:)", r"\\APP3\LogicalDisk(X:)")
    source = open_source(written(tmp_path, text, "app.csv"), None)
    where = places("APP3:X:=search.index")
    added = import_into_run(directory, [source], Settings(), where)
    done, rows = open_run(directory).manifest, pq.read_table(directory / "samples.parquet").num_rows
    (directory / "manifest.json").write_bytes(before)
    assert added > 0
    assert import_into_run(directory, [source], Settings(), where) == 0
    again = open_run(directory).manifest
    assert again["hosts"] == done["hosts"]
    assert again["hosts"]["APP3"]["roles"]["index"]["device"] == "X:"
    assert pq.read_table(directory / "samples.parquet").num_rows == rows


def test_a_role_the_run_knows_is_not_told_again(tmp_path: Path) -> None:
    """A disk role that the run has is not added again for a file that names the device only."""
    directory = imported(tmp_path, day(hours=1, app_cpu=None))
    other = day(hours=1).replace("Avg. Disk sec/Write", "Avg. Disk sec/Transfer")
    source = open_source(written(tmp_path, other, "other.csv"), None)
    import_into_run(directory, [source], Settings(), places())
    assert set(open_run(directory).manifest["hosts"]["SQL1"]["roles"]) == {"log", "data"}


def test_what_is_too_much_for_one_analysis_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recording that is too large is refused with its size and a suitable part."""
    monkeypatch.setattr("pinchpoint.imports.as_run.MAX_CELLS", 1000)
    with pytest.raises(InputError, match="--from and --to"):
        imported(tmp_path, day(hours=2))
    assert list((tmp_path / "runs").iterdir()) == []


def test_a_file_of_another_time_changes_nothing_and_hints_at_the_zone(tmp_path: Path) -> None:
    """A file of another time changes nothing, and the message suggests the time zone."""
    directory = imported(tmp_path, day(hours=1, app_cpu=None))
    before = {path.name: path.read_bytes() for path in directory.iterdir()}
    text = day(hours=1).replace("(-60)", "(540)")
    source = open_source(written(tmp_path, text, "app.csv"), None)
    with pytest.raises(InputError, match=r"does not cover the time of the run.*-10 h would make it fit"):
        import_into_run(directory, [source], Settings(), places())
    assert {path.name: path.read_bytes() for path in directory.iterdir()} == before


def test_the_command_as_a_user_calls_it(tmp_path: Path) -> None:
    """``import`` prints verdict, report and directory; ``analyse`` and ``report`` accept it."""
    log = written(tmp_path, day(hours=6, app_cpu=BUSY_AT_NIGHT))
    disks = [word for disk in DISKS for word in ("--disk", disk)]
    done = run_cli("import", log, *disks, "--tier", "APP3=search", "--out", tmp_path / "runs")
    assert done.returncode == 0, done.stderr
    directory = Path(done.stdout.splitlines()[-1])
    page = (directory / "report.html").read_text()
    assert "Bottleneck: CPU of APP3" in page
    assert "farm.csv" in page
    assert 'id="load"' not in page  # the file did not exist before
    again = run_cli("analyse", directory, "--json")
    assert json.loads(again.stdout) == json.loads((directory / "verdict.json").read_text())


def test_a_file_without_a_zone_must_be_given_one_to_lie_beside_a_run(tmp_path: Path) -> None:
    """Without a time zone a file cannot be added to a run, and a run of its own says so."""
    text = day(hours=2, app_cpu=None).replace("(PDH-CSV 4.0) (W. Europe Standard Time)(-60)", "(PDH-CSV 4.0)")
    directory = imported(tmp_path, text)
    manifest = open_run(directory).manifest
    assert manifest["imports"][0]["zone_assumed"]
    assert any("UTC was assumed" in warning for warning in manifest["warnings"])
    app = day(hours=2).replace("(PDH-CSV 4.0) (W. Europe Standard Time)(-60)", "(PDH-CSV 4.0)")
    source = open_source(written(tmp_path, app, "app.csv"), None)
    with pytest.raises(InputError, match="--zone UTC"):
        import_into_run(directory, [source], Settings(), places())
    assert import_into_run(directory, [source], Settings(zone=UTC), places()) == 120


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (["--zone", "Mars/Base"], "Europe/Berlin"),
        (["--zone", "+25:00"], "a day or more"),
        (["--from", "yesterday"], "2026-11-20T09:00"),
        (["--every", "5"], "5s"),
        (["--kind", "perfmom"], "nearest: perfmon"),
        (["--kind", "csv"], "--map"),
        (["--map", "none.yaml"], "no such file"),
        (["--into", "none"], "does not exist"),
    ],
)
def test_options_that_do_not_fit_are_told(tmp_path: Path, option: list[str], words: str) -> None:
    """Unsuitable options give a message with what is allowed, and no file is written."""
    log = written(tmp_path, day(hours=0.1))
    out = tmp_path / "runs"
    result = CliRunner().invoke(import_, [str(log), *option, "--out", str(out)])
    assert isinstance(result.exception, InputError)
    assert words in str(result.exception)
    assert not out.exists() or not list(out.iterdir())


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig", "cp1252"])
def test_a_log_in_any_encoding(tmp_path: Path, encoding: str) -> None:
    """Logs of perfmon, typeperf and PowerShell are read in each encoding, with and without BOM."""
    path = tmp_path / "farm.csv"
    path.write_bytes(day(hours=0.2).replace("SQL1", "SQLÖ1").encode(encoding))
    directory = import_as_run(
        [open_source(path, None)], Settings(), places(), TimeSpan(), tmp_path / encoding
    )
    assert "SQLÖ1" in open_run(directory).manifest["hosts"]


def test_letters_that_were_guessed_are_said_and_can_be_named(tmp_path: Path) -> None:
    """A guessed code page is reported, and an option can name it."""
    text = day(hours=1).replace("SQL1", "本番表")
    path = tmp_path / "farm.csv"
    path.write_bytes(text.encode("cp932"))
    for said, legible in ((None, False), ("cp932", True)):
        source = open_source(path, None, said)
        directory = import_as_run([source], Settings(), places(), TimeSpan(), tmp_path / "runs")
        manifest = open_run(directory).manifest
        assert ("本番表" in manifest["hosts"]) is legible
        assert any("give --encoding" in warning for warning in manifest["warnings"]) is not legible
    with pytest.raises(InputError, match="--encoding: no encoding 'klingon' is known"):
        open_source(path, None, "klingon")


def test_what_two_files_tell_of_one_time_is_not_counted_twice(tmp_path: Path) -> None:
    """Exports that overlap for a host are refused; other hosts at the same time are imported."""
    first = open_source(written(tmp_path, day(hours=1), "a.csv"), None)
    again = open_source(written(tmp_path, day(hours=2), "b.csv"), None)
    with pytest.raises(InputError, match=r"b\.csv: has .* which .*a\.csv has too; import one of the two"):
        import_as_run([first, again], Settings(), places(*DISKS), TimeSpan(), tmp_path / "runs")
    assert not list((tmp_path / "runs").iterdir())
    other = day(hours=1).replace("SQL1", "SQL2").replace("APP3", "APP4")
    beside = open_source(written(tmp_path, other, "c.csv"), None)
    directory = import_as_run([first, beside], Settings(), places(*DISKS), TimeSpan(), tmp_path / "runs")
    assert {"SQL1", "SQL2"} <= set(open_run(directory).manifest["hosts"])


def test_a_host_that_is_misspelt_in_an_option_is_said(tmp_path: Path) -> None:
    """A misspelt host in an option is reported."""
    directory = imported(tmp_path, day(hours=0.2), places("SQLI:L:=sql.log", *DISKS))
    (said,) = (each for each in open_run(directory).manifest["warnings"] if each.startswith("--disk"))
    assert "no file is of SQLI" in said
    assert "SQL1" in said

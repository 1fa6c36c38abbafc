"""The journal: written data is read back, and damage costs nothing before its place."""

from __future__ import annotations

import errno
import json
import os
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pinchpoint.base.errors import FarmUnavailable, InputError, NotEvidenceError
from pinchpoint.store import compact
from pinchpoint.store.journal import JournalWriter, read_frames, segments
from pinchpoint.store.read import open_run
from pinchpoint.store.samples import UnreadSamples, show
from pinchpoint.store.schema import JOURNAL, MANIFEST, SAMPLES, SAMPLES_SCHEMA
from pinchpoint.store.write import RunWriter, is_being_written, what_is_kept
from pinchpoint_collectors.record import Sample

SECOND = 1_000_000_000


def sample(second: int, value: float | None = 1.0, instance: str = "vda") -> Sample:
    return Sample(second * SECOND, 1.0, "sql1", "disk.write_latency_s", instance, value, 3.0)


def operation(second: int, count: int = 5) -> list[object]:
    return [second, 1.0, "generator1", "orders", "log_append", "ok", count, 100, None, None, 0]


def test_round_trip_keeps_null_apart_from_zero(tmp_path: Path) -> None:
    """Null, 0 and weights are read back as they were."""
    with JournalWriter(tmp_path, "controller") as writer:
        writer.write_samples([sample(10, None), sample(10, 0.0, "vdb"), sample(11, 0.25)])
        writer.write_operations([operation(10)], 11 * SECOND)
    operations, samples = compact.tables(tmp_path)
    assert samples["value"].to_pylist() == [None, 0.0, 0.25]
    assert samples["instance"].to_pylist() == ["vda", "vdb", "vda"]
    assert samples["weight"].to_pylist() == [3.0] * 3
    assert operations["count"].to_pylist() == [5]


def test_a_batch_across_the_end_of_a_segment_keeps_its_names(tmp_path: Path) -> None:
    """A batch across a segment's end keeps its names in any order."""
    with JournalWriter(tmp_path, "controller", segment_s=60) as writer:
        writer.write_samples([sample(0, 1.0, "vda"), sample(0, 2.0, "vdb"), sample(0, 3.0, "vdc")])
        writer.write_samples([sample(59, 4.0, "vdc"), sample(59, 5.0, "vda"), sample(61, 6.0, "vdb")])
        writer.write_samples([sample(62, 7.0, "vdc"), sample(62, 8.0, "vda")])
    assert len(segments(tmp_path)) == 2
    _, samples = compact.tables(tmp_path)
    read = sorted(zip(samples["value"].to_pylist(), samples["instance"].to_pylist(), strict=True))
    assert [name for _, name in read] == ["vda", "vdb", "vdc", "vdc", "vda", "vdb", "vdc", "vda"]


@pytest.mark.parametrize("seed", range(20))
def test_a_cut_or_flipped_journal_loses_only_its_end(tmp_path: Path, seed: int) -> None:
    """Every frame before a damaged byte is read, and none after it."""
    with JournalWriter(tmp_path, "controller") as writer:
        for second in range(50):
            writer.write_samples([sample(second, float(second))])
    [segment] = segments(tmp_path)
    whole = segment.read_bytes()
    position = random.Random(seed).randrange(30, len(whole))
    damaged = (
        whole[:position]
        if seed % 2
        else whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :]
    )
    segment.write_bytes(damaged)
    frames = list(read_frames(segment))
    _, samples = compact.tables(tmp_path)
    values = samples["value"].to_pylist()
    assert values == [float(second) for second in range(len(values))]
    assert len(values) in (len(frames) - 1, 0)  # one frame names the series
    frame_bytes = (len(whole) - 60) / 50
    assert len(values) >= (position - 120) / frame_bytes - 1


@pytest.mark.parametrize("tail", [b"\0" * 4096, struct.pack("<II", 1, zlib.crc32(b"\xc1")) + b"\xc1"])
def test_a_tail_that_is_no_frame_costs_nothing_before_it(tmp_path: Path, tail: bytes) -> None:
    """Zeros after a power cut, and random bytes that pass a checksum, cost no frame before."""
    with JournalWriter(tmp_path, "controller") as writer:
        writer.write_samples([sample(10), sample(11)])
    [segment] = segments(tmp_path)
    with segment.open("ab") as file:
        file.write(tail)
    _, samples = compact.tables(tmp_path)
    assert samples["time_ns"].to_pylist() == [10 * SECOND, 11 * SECOND]


def test_closed_segments_become_parts_without_loss_or_double_count(tmp_path: Path) -> None:
    """A part beside its segment (killed between rename and delete) counts once."""
    with JournalWriter(tmp_path, "controller", segment_s=10) as writer:
        for second in range(35):
            writer.write_samples([sample(second)])
            writer.write_operations([operation(second)], second * SECOND)
    kept = {path.name: path.read_bytes() for path in segments(tmp_path)}
    assert len(kept) == 4
    compact.compact_closed(tmp_path)
    assert len(segments(tmp_path)) == 1
    first = min(kept)
    (tmp_path / first).write_bytes(kept[first])
    operations, samples = compact.tables(tmp_path)
    assert sorted(samples["time_ns"].to_pylist()) == [second * SECOND for second in range(35)]
    assert sorted(operations["time_s"].to_pylist()) == list(range(35))


def test_a_run_killed_in_mid_write_is_recovered(tmp_path: Path) -> None:
    """After SIGKILL of the writer at most the last second is missing, and the run is incomplete."""
    script = """
import sys, time
from pathlib import Path
from pinchpoint.store.write import RunWriter
from pinchpoint_collectors.common.times import utc
from pinchpoint_collectors.record import Sample
store = RunWriter(Path(sys.argv[1]), {"name": "p", "started": utc(), "ended": None,
    "phases": [{"name": "measure", "from": utc(), "to": None}], "warnings": []}, segment_s=0.2)
for number in range(10_000):
    store.samples([Sample(time.time_ns(), 1.0, "sql1", "cpu.run_queue", "", number)])
    store.event("tick", number=number)
    print(number, flush=True)
    if number % 20 == 0:
        store.compact()
    time.sleep(0.01)
"""
    run = tmp_path / "run"
    process = subprocess.Popen([sys.executable, "-c", script, run], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) == 120:
            break
    assert is_being_written(run)
    live = open_run(run)
    assert live.manifest["state"] == "running"
    assert "still going on" in live.manifest["warnings"][0]
    process.send_signal(signal.SIGKILL)
    told = [120, *map(int, process.stdout.read().split())]
    process.wait()
    process.stdout.close()
    stored = open_run(run)
    values = stored.samples.to_table()["value"].to_pylist()
    assert values == [float(number) for number in range(len(values))]
    assert len(values) >= told[-1] + 1
    assert stored.manifest["state"] == "interrupted"
    assert stored.manifest["warnings"][-1].startswith("incomplete")
    assert stored.manifest["phases"][0]["to"] is not None
    assert not (run / JOURNAL).exists()
    assert open_run(run).samples.to_table().equals(stored.samples.to_table()), (
        "a second reading finds the same"
    )


def test_a_finished_run_holds_one_file_of_each(tmp_path: Path) -> None:
    """A finished run has complete tables and no journals or parts."""
    run = tmp_path / "run"
    store = RunWriter(run, {"name": "p", "started": "2026-01-01T00:00:00Z", "warnings": []}, segment_s=1)
    for second in range(5):
        store.samples([sample(second)])
    store.finish("finished")
    assert sorted(path.name for path in run.iterdir()) == [
        "events.jsonl", "manifest.json", "operations.parquet", "samples.parquet"
    ]  # fmt: skip
    assert open_run(run).samples.count_rows() == 5


def test_a_finished_run_lies_in_the_order_of_its_series(tmp_path: Path) -> None:
    """A finished run's samples are sorted by series, with the same rows and columns."""
    journal, file = tmp_path / "journal", tmp_path / "samples.parquet"
    journal.mkdir()
    names = ["vdb", "", "sda", "\u00e9"]
    with JournalWriter(journal, "controller", segment_s=5) as writer:
        for second in range(20):
            writer.write_samples(
                [sample(second, None if second == 7 else second / 3, name) for name in names]
                + [
                    Sample(second * SECOND + 5, 0.5, host, "cpu.run_queue", "", float(second))
                    for host in ("sql1", "app1")
                ]
            )
    compact.compact_closed(journal)
    _, recorded = compact.tables(journal)
    compact.merge(journal, tmp_path / "operations.parquet", file)
    found = pq.read_table(file)
    assert found.schema.equals(SAMPLES_SCHEMA)
    rows, before = found.to_pylist(), recorded.to_pylist()
    assert rows != before
    assert [row["metric"] for row in rows] == ["cpu.run_queue"] * 40 + ["disk.write_latency_s"] * 80
    order = {"sql1": 1, "app1": 0}
    assert rows == sorted(before, key=lambda row: (row["metric"], row["instance"], order[row["host"]]))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "holds no manifest.json"),
        (b"{", "cannot be read as JSON"),
        (b"[]", "all of it: found a list; allowed: an object"),
        (b'{"schema": "pinchpoint.run/9"}', 'found "pinchpoint.run/9"; this version of Pinchpoint reads'),
        (b'{"schema": "pinchpoint.run/1", "state": "x"}', "allowed: 'running', 'finished' or 'interrupted'"),
        (b'{"schema": "pinchpoint.run/1", "state": "finished"}', "started: missing"),
        (b"\xff\xfe\x00", "cannot be read as JSON"),
    ],
)
def test_what_is_no_run_is_refused_with_a_sentence(tmp_path: Path, content: bytes | None, said: str) -> None:
    """A damaged or foreign manifest is bad input without a traceback."""
    if content is not None:
        (tmp_path / MANIFEST).write_bytes(content)
    with pytest.raises(InputError, match=said):
        open_run(tmp_path)


def test_damaged_tables_are_refused_with_a_sentence(tmp_path: Path) -> None:
    """A truncated Parquet file is named."""
    run = tmp_path / "run"
    store = RunWriter(run, {"name": "p", "started": "2026-01-01T00:00:00Z", "warnings": []})
    store.samples([sample(1)])
    store.finish("finished")
    whole = (run / "samples.parquet").read_bytes()
    (run / "samples.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"samples\.parquet: cannot be read"):
        open_run(run)


@pytest.mark.parametrize("change", ["gone", "another type"])
def test_operations_of_another_form_are_refused(tmp_path: Path, change: str) -> None:
    """Operations with a missing column are refused, since no operation would count."""
    finished_run(tmp_path / "run")
    path = tmp_path / "run" / "operations.parquet"
    table = pq.read_table(path)
    at = table.schema.get_field_index("count")
    table = table.drop(["count"])
    if change != "gone":
        table = table.add_column(at, "count", pa.array([], pa.string()))
    pq.write_table(table, path)
    with pytest.raises(
        InputError, match=r"operations\.parquet: cannot be read: its columns are .*; allowed:"
    ):
        open_run(tmp_path / "run")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"phases": "x"}, 'phases: found "x"; allowed: a list'),
        ({"phases": ["x"]}, r'phases\[0\]: found "x"; allowed: an object'),
        ({"phases": [{"name": "measure", "from": "now", "to": None}]}, r'phases\[0\]\.from: found "now"'),
        ({"hosts": ["sql1"]}, "hosts: found a list; allowed: an object"),
        ({"hosts": {"sql1": "x"}}, r'hosts\.sql1: found "x"; allowed: an object'),
        ({"farm": "x", "plan": 1}, '(?s)plan: found 1; .*farm: found "x";'),
        ({"steps": [{"scenario": "orders", "level": 1}]}, r"(?s)\[0\]\.from: missing.*\[0\]\.unit: missing"),
    ],
)
def test_a_manifest_of_another_form_says_where(tmp_path: Path, content: dict[str, Any], said: str) -> None:
    """All errors of a manifest are listed by field."""
    finished_run(tmp_path / "run")
    path = tmp_path / "run" / MANIFEST
    whole = json.loads(path.read_text())
    path.write_text(json.dumps({**whole, **content}))
    with pytest.raises(InputError, match=said):
        open_run(tmp_path / "run")


def test_a_run_without_a_journal_is_not_recovered(tmp_path: Path) -> None:
    """A "running" run without a journal is not recovered, and its tables stay."""
    finished_run(tmp_path / "run")
    path = tmp_path / "run" / MANIFEST
    path.write_text(json.dumps({**json.loads(path.read_text()), "state": "running"}))
    with pytest.raises(InputError, match=r'manifest\.json: state: found "running", and there is no journal'):
        open_run(tmp_path / "run")
    assert pq.read_table(tmp_path / "run" / SAMPLES).num_rows == 5000


def finished_run(run: Path) -> None:
    """Write a small run whose samples take several pages."""
    store = RunWriter(run, {"name": "p", "started": "2026-01-01T00:00:00Z", "warnings": []})
    store.samples([sample(second, second / 7) for second in range(5000)])
    store.finish("finished")


def test_a_table_that_was_left_behind_is_missed(tmp_path: Path) -> None:
    """A missing table gives the remedy, not the system's message."""
    for name in ("samples.parquet", "operations.parquet"):
        run = tmp_path / name / "run"
        finished_run(run)
        (run / name).unlink()
        with pytest.raises(InputError, match=rf"{name}: is missing; copy the whole run directory"):
            open_run(run)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7])
def test_a_byte_that_changed_is_no_other_figure(tmp_path: Path, share: float) -> None:
    """A changed byte among the values is an error with the file's name."""
    finished_run(tmp_path / "run")
    path = tmp_path / "run" / "samples.parquet"
    content = bytearray(path.read_bytes())
    content[int(len(content) * share)] ^= 0x40
    path.write_bytes(content)
    damaged = open_run(tmp_path / "run").samples
    with pytest.raises(InputError, match=r"samples\.parquet: cannot be read"):
        list(UnreadSamples(damaged).each(lambda table: table.num_rows))
    with duckdb.connect() as connection, pytest.raises(InputError, match=r"samples\.parquet: cannot be"):
        show(damaged, connection)


def test_a_part_that_the_machine_left_damaged_is_named(tmp_path: Path) -> None:
    """A damaged part is named, with the way to the other measurements."""
    run = tmp_path / "run"
    store = RunWriter(run, {"name": "p", "started": "2026-01-01T00:00:00Z", "phases": []}, segment_s=1)
    for second in range(4):
        store.samples([sample(second)])
    store.compact()
    store.close()
    part = min((run / JOURNAL).glob("*.samples.parquet"))
    part.write_bytes(b"")
    with pytest.raises(InputError, match=rf"{part.name}: cannot be read: .*; move it and the one beside it"):
        open_run(run)
    part.unlink()
    part.with_name(part.name.replace(".samples.", ".operations.")).unlink()
    assert open_run(run).samples.count_rows() == 3


@pytest.mark.parametrize("line", ["5", '["gap"]', "half {"])
def test_an_event_that_is_none_is_named_with_its_line(tmp_path: Path, line: str) -> None:
    """A malformed event is named with its line."""
    finished_run(tmp_path / "run")
    events = tmp_path / "run" / "events.jsonl"
    good = '{"time": "2026-01-01T00:00:00Z", "event": "a"}'
    events.write_text(f"{good}\n{line}\n{good}\n")
    with pytest.raises(InputError, match=r"events\.jsonl:2: (all of it|cannot be read)"):
        open_run(tmp_path / "run")


def test_a_journal_that_may_not_be_removed_keeps_nothing_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A journal that cannot be removed in a read-only folder does not hide a complete run."""
    run = tmp_path / "run"
    finished_run(run)
    (run / JOURNAL).mkdir()
    monkeypatch.setattr("os.rmdir", _refuse)
    assert open_run(run).samples.count_rows() == 5000


@pytest.mark.parametrize("measured", [False, True])
def test_what_is_said_to_be_kept_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, measured: bool
) -> None:
    """On a full disk the journal is kept and recovered; after measuring, the recorder did not fail."""
    store = _written(tmp_path / "run", measured=measured)
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with monkeypatch.context() as patched:
        patched.setattr(compact, "merge", _raising(full))
        with pytest.raises(FarmUnavailable if measured else NotEvidenceError) as refused:
            store.finish("finished")
    assert "No space left" in str(refused.value)
    assert ("the recorder failed" in str(refused.value)) is not measured
    assert f"is kept there: make room, then `pinchpoint analyse {tmp_path / 'run'}`" in str(refused.value)
    store.close()
    assert open_run(tmp_path / "run").samples.count_rows() == 1


_STARVED = """
import psutil, resource, sys
from pathlib import Path
from pinchpoint.base.errors import NotEvidenceError
from pinchpoint.store.write import RunWriter
from pinchpoint_collectors.record import Sample

store = RunWriter(Path(sys.argv[1]), {"name": "p", "started": "2026-01-01T00:00:00.000Z", "warnings": []})
store.samples([Sample(1, 1.0, "h", "cpu.busy_ratio", "", 0.5, None)] * 1000)
room = psutil.Process().memory_info().vms + 2**19
resource.setrlimit(resource.RLIMIT_AS, (room, room))
try:
    store.finish("finished")
except NotEvidenceError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of address space are Linux's")
def test_too_little_memory_is_no_damage(tmp_path: Path) -> None:
    """A lack of memory is not reported as damage, and the next command reads the journal."""
    done = subprocess.run(
        [sys.executable, "-c", _STARVED, tmp_path / "run"], capture_output=True, text=True, check=True
    )
    assert "the recorder failed: too little memory; " in done.stdout, done.stderr
    assert f"kept there: end other programs, then `pinchpoint analyse {tmp_path / 'run'}`" in done.stdout
    assert open_run(tmp_path / "run").samples.count_rows() == 1000


def test_what_is_kept_can_be_said_without_a_descriptor(tmp_path: Path) -> None:
    """Without free descriptors the message still says that the journal exists."""
    store = _written(tmp_path / "run", measured=False)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken: list[int] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, limits[1]))
    try:
        with pytest.raises(OSError, match="Too many open files") as refused:
            taken.extend(os.dup(1) for _ in range(256))
        said = what_is_kept(tmp_path / "run", refused.value)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for one in taken:
            os.close(one)
    assert said == (
        "What was measured is kept there: allow this user more open files (ulimit -n 4096), then "
        f"`pinchpoint analyse {tmp_path / 'run'}`"
    )
    store.close()


@pytest.mark.parametrize("number", [errno.EROFS, errno.EIO])
def test_a_disk_that_failed_keeps_what_had_reached_it(tmp_path: Path, number: int) -> None:
    """On a disk that turned read-only the written part is kept, and no more is promised."""
    store = _written(tmp_path / "run", measured=False)
    said = what_is_kept(tmp_path / "run", OSError(number, os.strerror(number)))
    assert said == (
        "What had reached the disk is kept there: make it writable, then "
        f"`pinchpoint analyse {tmp_path / 'run'}`"
    )
    store.discard()
    said = what_is_kept(tmp_path / "run", OSError(number, os.strerror(number)))
    assert said == "Nothing of this run is kept there; make it writable, then run it again"


@pytest.mark.parametrize("measured", [False, True])
def test_nothing_is_kept_of_a_folder_that_is_gone(tmp_path: Path, *, measured: bool) -> None:
    """For a run folder that was removed no message promises data or a command."""
    store = _written(tmp_path / "run", measured=measured)
    shutil.rmtree(tmp_path / "run")
    with pytest.raises(
        FarmUnavailable if measured else NotEvidenceError, match="Nothing of this run is kept"
    ):
        store.finish("finished")
    store.discard()  # of a run without measurements: nothing is left to remove


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a small tmpfs")
def test_a_run_for_which_there_is_no_room_at_all_leaves_no_folder(tmp_path: Path) -> None:
    """A disk that is full before the first file leaves no folder; an existing folder stays."""
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", small], check=True)
    try:
        (small / "theirs").mkdir()
        with (small / "ballast").open("wb", buffering=0) as ballast, suppress(OSError):
            while True:
                ballast.write(bytes(4096))
        for name, why in (("run", "No space left.*make room, then run it again"), ("theirs", "File exists")):
            with pytest.raises(NotEvidenceError, match=why):
                RunWriter(small / name, {"name": "p", "started": "2026-01-01T00:00:00Z", "warnings": []})
        assert {path.name for path in small.iterdir()} == {"theirs", "ballast"}
    finally:
        subprocess.run(["umount", small], check=True)


def _written(directory: Path, *, measured: bool) -> RunWriter:
    store = RunWriter(directory, {"name": "p", "started": "2026-01-01T00:00:00.000Z", "warnings": []})
    store.samples([sample(1)])
    store.measured = measured
    return store


def _raising(error: OSError) -> Callable[..., None]:
    def raises(*_: object) -> None:
        raise error

    return raises


def _refuse(*_: object, **__: object) -> None:
    raise PermissionError(13, "Permission denied")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a small tmpfs")
def test_a_full_disk_is_an_error_and_loses_nothing_before_it(tmp_path: Path) -> None:
    """A full disk is reported at once, and earlier data is read back."""
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", small], check=True)
    try:
        store = RunWriter(small / "run", {"name": "p", "started": "2026-01-01T00:00:00Z", "warnings": []})
        written = 0
        with pytest.raises(NotEvidenceError, match=r"space|disk full"):  # noqa: PT012 -- some call of many raises
            for second in range(1_000_000):
                store.samples([sample(second)] * 100)
                written += 100
        store.close()
        _, samples = compact.tables(small / "run" / JOURNAL)
        assert 0 < samples.num_rows == written
    finally:
        time.sleep(0.1)
        subprocess.run(["umount", small], check=True)

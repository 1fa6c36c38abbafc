"""Rows read back from a table: impossible ones are refused with their place."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pinchpoint.base.errors import InputError
from pinchpoint.store import rows
from pinchpoint.store.samples import in_file
from pinchpoint.store.schema import OPERATIONS_SCHEMA, SAMPLES_SCHEMA


def test_a_text_that_is_no_utf_8_is_refused() -> None:
    """A text that is not UTF-8 is refused, also in a dictionary, as no command could print it."""
    damaged = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"a\xc1")]
    )
    of_dictionary = pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), damaged)
    for column in (damaged, of_dictionary):
        with pytest.raises(InputError, match=r"operations\.parquet: cannot be read: .*UTF8"):
            rows.check("operations.parquet", pa.table({"scenario": column}))


@pytest.mark.parametrize("number", [2**62, 2**63 - 1, -(2**63), 10**13 + 1])
@pytest.mark.parametrize("column", ["count", "bytes", "time_s", "dropped"])
def test_a_count_that_cannot_be_is_refused(column: str, number: int) -> None:
    """An impossible count is refused, also beyond the range of floats."""
    found = number if column != "bytes" else number * 100 if number == 10**13 + 1 else number
    damaged = pa.table({"operation": ["x"], column: pa.array([found], pa.int64())})
    with pytest.raises(InputError, match=rf"{column}: found {found} in row 1; allowed: "):
        rows.check("operations.parquet", damaged)


_READ = """
import re, sys
from pathlib import Path
from pinchpoint.base.errors import InputError
from pinchpoint.store import rows, samples
from pinchpoint.store.schema import OPERATIONS_SCHEMA

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

before = peak()
try:
    samples.in_file(Path("samples.parquet")) if sys.argv[1] == "samples" else rows.read(
        Path("operations.parquet"), OPERATIONS_SCHEMA
    )
except InputError as error:
    print(error)
print(peak() - before, file=sys.stderr)
"""


def _bomb(folder: Path, what: str) -> None:
    """Write small files whose repeated rows take gigabytes."""
    of = SAMPLES_SCHEMA if what == "samples" else OPERATIONS_SCHEMA
    text = "HISTF" + "A" * 10_000 if what == "histograms" else "HISTF"
    many = 400_000 if what == "histograms" else 2_000_000
    columns = {
        field.name: pa.repeat(pa.scalar(text if field.type == pa.string() else 1, field.type), many)
        if field.type != pa.string()
        else pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), many), [text])
        for field in of
    }
    group = pa.table(columns)
    file = folder / ("samples.parquet" if what == "samples" else "operations.parquet")
    settings = {"compression": "zstd", "store_schema": False, "write_statistics": False}
    with pq.ParquetWriter(file, group.schema, **settings) as writer:
        for _ in range(1 if what == "histograms" else 20):
            writer.write_table(group, row_group_size=many)
    assert file.stat().st_size < 2**20


@pytest.mark.parametrize("what", ["histograms", "rows", "samples"])
def test_a_small_file_does_not_fill_the_memory(what: str, tmp_path: Path) -> None:
    """A file below one megabyte with eight gigabytes of rows is refused within bounded memory."""
    _bomb(tmp_path, what)
    done = subprocess.run(
        [sys.executable, "-c", _READ, what], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "bytes of memory; allowed" in done.stdout
    assert int(done.stderr) < 300_000  # kB


def test_rows_that_are_the_same_for_long_are_read(tmp_path: Path) -> None:
    """An idle farm's hour with equal rows is read, although it compresses strongly."""
    columns = {
        field.name: pa.repeat(pa.scalar("x" if field.type == pa.string() else 1, field.type), 300_000)
        for field in SAMPLES_SCHEMA
    }
    columns["time_ns"] = pa.array(range(300_000), pa.int64())
    pq.write_table(pa.table(columns, schema=SAMPLES_SCHEMA), tmp_path / "samples.parquet", compression="zstd")
    assert in_file(tmp_path / "samples.parquet").count_rows() == 300_000

"""Rows of a table that are read back: what no writer of ours makes is refused with its place."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pinchpoint.base.errors import InputError
from pinchpoint.store import rows


def test_a_text_that_is_no_utf_8_is_refused() -> None:
    """Also in a dictionary: the first command that shows it would fail."""
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
    """Also where no float holds it."""
    found = number if column != "bytes" else number * 100 if number == 10**13 + 1 else number
    damaged = pa.table({"operation": ["x"], column: pa.array([found], pa.int64())})
    with pytest.raises(InputError, match=rf"{column}: found {found} in row 1; allowed: "):
        rows.check("operations.parquet", damaged)

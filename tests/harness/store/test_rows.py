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

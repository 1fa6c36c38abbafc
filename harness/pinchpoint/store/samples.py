"""Gives access to the samples of a run, in memory or read from the file when requested.

Eight hours of twenty hosts are 115 million samples; as a table they would take ten gigabytes. Each group of
rows in a file has statistics of its names (``order.py`` gives each group few names), so groups without
requested series are not read.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from pinchpoint.store import rows
from pinchpoint.store.impossible_values import bounds_in_sql, without_impossible_samples
from pinchpoint.store.order import NAMES, with_dictionaries
from pinchpoint.store.schema import SAMPLES_SCHEMA
from pinchpoint_collectors.bounds import EARLIEST_NS, LATEST_NS, LONGEST_INTERVAL_S, Tally, is_placed

if TYPE_CHECKING:
    import duckdb

Samples: TypeAlias = pa.Table | ds.Dataset
"""A table, or a dataset of one file; ``table()`` reads a dataset into a table."""

_ROWS = 250_000
_THREADS = 2
"""The number of groups of rows read at the same time; most of the work releases Python's lock."""
_AHEAD = 4
"""The highest number of results that wait; results are returned in order."""

_MOST_UNPACKED = 1000
"""Allowed ratio of unpacked to packed size: constant samples compress well, and are read group by group."""
_USUAL_BYTES = 31 * 2**20
"""A size just below 32 MiB, the highest to which glibc raises its threshold for mmap."""

_T = TypeVar("_T")
_U = TypeVar("_U")


class SeriesFilter(NamedTuple):
    """The names of the requested series; None matches any name."""

    host: str | None = None
    metric: str | None = None
    instance: str | None = None


ANY = SeriesFilter()

_CHECKED = ds.ParquetFileFormat(
    default_fragment_scan_options=ds.ParquetFragmentScanOptions(page_checksum_verification=True)
)


class UnreadSamples:
    """The groups of rows of a run's samples, each handed out once, when a requested series may be in it.

    Args:
        samples: the samples of a run.
        known: numbers of groups that are never handed out.

    Attributes:
        nonsense: counts of impossible values in the groups handed out; the groups contain null instead.
    """

    def __init__(self, samples: Samples, known: Collection[int] = ()) -> None:
        self._samples = samples
        self._left: dict[_Bounds, list[int]] = {}
        for number, bounds in enumerate(_bounds(samples)):
            if number not in known:
                self._left.setdefault(bounds, []).append(number)
        self._read = {} if isinstance(samples, pa.Table) else _groups_read(samples)
        self.nonsense = Tally()

    def each(self, work: Callable[[pa.Table], _T], wanted: SeriesFilter = ANY) -> Iterator[_T]:
        """The results of ``work`` for each new group of rows that may contain the requested series.

        Args:
            work: function called in several threads at once; its table has names as dictionaries.
            wanted: names of the requested series.

        Yields:
            The results, in the order of the groups in the file.

        Raises:
            InputError: the file is damaged.
        """
        result = [bounds for bounds in self._left if _may_hold(bounds, wanted)]
        numbers = sorted(itertools.chain.from_iterable(self._left.pop(bounds) for bounds in result))
        if not numbers:
            return iter(())
        return self._possible(work, numbers)

    def _possible(self, work: Callable[[pa.Table], _T], numbers: Sequence[int]) -> Iterator[_T]:
        def checked(table: pa.Table) -> tuple[_T, Tally]:
            result = Tally()  # several threads count at the same time, so each group has its own count
            return work(without_impossible_samples(table, result)), result

        in_table = isinstance(self._samples, pa.Table)
        results = self._in_table(checked) if in_table else self._in_file(checked, numbers)
        for place, (result, value) in enumerate(results):
            if not in_table:
                self._read[numbers[place]] = bool(value.found)
            for one in value.found.values():
                self.nonsense.add(one)
            yield result

    def _in_table(self, work: Callable[[pa.Table], _T]) -> Iterator[_T]:
        def done(batch: pa.RecordBatch) -> _T:
            return work(with_dictionaries(pa.table(batch)))

        return _in_order(done, self._samples.to_batches(max_chunksize=_ROWS))

    def _in_file(self, work: Callable[[pa.Table], _T], numbers: Iterable[int]) -> Iterator[_T]:
        path = self._samples.files[0]
        _keep_what_is_freed()
        with ExitStack() as opened:
            readers: SimpleQueue[pq.ParquetFile] = SimpleQueue()  # a reader is used by one thread at a time
            for _ in range(_THREADS):
                readers.put(opened.enter_context(_opened(path)))
            begins = _begins(path)

            def done(number: int) -> _T:
                reader = readers.get()
                try:
                    table = reader.read_row_group(number, use_threads=False)
                except (OSError, pa.ArrowException) as error:
                    raise rows.unreadable(path, error) from error
                finally:
                    readers.put(reader)
                rows.check(path, table, begins[number])
                return work(table)

            yield from _in_order(done, numbers)


def _begins(path: str) -> list[int]:
    """The number of rows before each group; the last number is the number of all rows."""
    with _opened(path) as file:
        lengths = [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]
    return [0, *itertools.accumulate(lengths)]


def _keep_what_is_freed() -> None:
    """Free one large array, so that glibc keeps freed memory of smaller arrays for the next group of rows.

    Freeing a large block raises glibc's threshold for mmap (mallopt(3), "M_MMAP_THRESHOLD"). Otherwise glibc
    returns the arrays of each group to the system and requests new pages: a fifth of the system time of a
    verdict on 115 million samples. With another C library this does nothing.
    """
    np.empty(_USUAL_BYTES, dtype=np.uint8)


def _in_order(work: Callable[[_U], _T], items: Iterable[_U]) -> Iterator[_T]:
    """The results of ``work`` for each item, computed in several threads, in the order of the items."""
    waiting: deque[Future[_T]] = deque()
    with ThreadPoolExecutor(_THREADS) as pool:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > _AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


_Bounds: TypeAlias = tuple[tuple[str, str] | None, ...]
"""(first, last) of each of ``NAMES`` in a group of rows; None if not known."""


def _bounds(samples: Samples) -> Iterator[_Bounds]:
    """The bounds of each group of rows; a table in memory is one group without bounds."""
    if isinstance(samples, pa.Table):
        yield (None,) * len(NAMES)
        return
    with _opened(samples.files[0]) as file:
        columns = [file.schema_arrow.get_field_index(name) for name in NAMES]
        for number in range(file.num_row_groups):
            group = file.metadata.row_group(number)
            yield tuple(_range(group.column(column).statistics) for column in columns)


def _range(statistics: pq.Statistics | None) -> tuple[Any, Any] | None:
    if statistics is None or not statistics.has_min_max:
        return None
    return statistics.min, statistics.max


def _may_hold(bounds: _Bounds, wanted: SeriesFilter) -> bool:
    pairs = zip(bounds, wanted, strict=True)
    return all(span is None or name is None or span[0] <= name <= span[1] for span, name in pairs)


def _opened(path: str) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path, read_dictionary=NAMES, pre_buffer=False, page_checksum_verification=True)
    except (OSError, pa.ArrowException) as error:
        raise rows.unreadable(path, error) from error


def in_file(path: Path) -> ds.Dataset:
    """The samples in a file, as a dataset; no samples are read yet.

    Raises:
        InputError: the file cannot be read, its columns are not those of ``SAMPLES_SCHEMA``, or its rows
            would take more memory than those of any run.
    """
    try:
        rows.check_columns(path, ds.dataset(path, format=_CHECKED).schema, SAMPLES_SCHEMA)
        with _opened(str(path)) as file:
            rows.check_size(path, file.metadata, _MOST_UNPACKED)
        return ds.dataset(path, schema=SAMPLES_SCHEMA, format=_CHECKED)
    except FileNotFoundError as error:
        raise rows.missing(path) from error
    except (OSError, pa.ArrowException) as error:
        raise rows.unreadable(path, error) from error


def table(samples: Samples) -> pa.Table:
    """All samples as a table in memory, without impossible values.

    Raises:
        InputError: the file is damaged.
    """
    if isinstance(samples, pa.Table):
        return samples
    path = samples.files[0]
    try:
        result = samples.to_table()
    except (OSError, pa.ArrowException) as error:
        raise rows.unreadable(path, error) from error
    rows.check(path, result)
    return without_impossible_samples(result, Tally())


def holds_values(samples: Samples) -> bool:
    """Whether at least one sample has a value that is measured and possible.

    Raises:
        InputError: the file is damaged.
    """
    return any(UnreadSamples(samples).each(lambda table: table["value"].null_count < table.num_rows))


def extent(samples: Samples) -> tuple[float, float] | None:
    """(start of the first interval, end of the last interval), UTC seconds; None if there are no samples.

    Raises:
        InputError: the file is damaged.
    """
    spans = list(_spans(samples))
    if not spans:
        return None
    firsts, lasts, longest = zip(*spans, strict=True)
    return min(firsts) / 1e9 - max(longest), max(lasts) / 1e9


def _spans(samples: Samples) -> Iterator[tuple[int, int, float]]:
    """(first time, last time, longest interval) of each group of rows, from statistics if available."""
    if isinstance(samples, pa.Table):
        if samples.num_rows:
            ends = pc.min_max(samples["time_ns"]).as_py()
            yield ends["min"], ends["max"], pc.max(samples["interval_s"]).as_py()
        return
    with _opened(samples.files[0]) as file:
        columns = [file.schema_arrow.get_field_index(name) for name in ("time_ns", "interval_s")]
        for number in range(file.num_row_groups):
            group = file.metadata.row_group(number)
            stamps, intervals = (_range(group.column(column).statistics) for column in columns)
            if stamps and intervals and all(map(is_placed, stamps, intervals)):
                yield *stamps, intervals[1]
            else:
                yield from _spans(without_impossible_samples(file.read_row_group(number), Tally()))


def usual_interval_s(samples: Samples) -> float:
    """The median interval of the samples, seconds; 0 if there are no samples."""
    import duckdb  # noqa: PLC0415 -- verdicts need no queries

    connection = duckdb.connect()
    show(samples, connection)
    usual = connection.execute("SELECT median(interval_s) FROM samples").fetchall()[0][0]
    return float(usual or 0.0)


def show(samples: Samples, connection: duckdb.DuckDBPyConnection) -> None:
    """Register the samples as the view ``samples`` in DuckDB, which reads only the needed parts of a file.

    Raises:
        InputError: the file is damaged.
    """
    if isinstance(samples, pa.Table):
        connection.register("samples", samples)
        return
    path = samples.files[0]
    whole = not _holds_nonsense(samples)
    name, quoted = "samples" if whole else "stored_samples", path.replace("'", "''")
    connection.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS FROM read_parquet('{quoted}')")
    if whole:
        return
    metrics = connection.execute("SELECT DISTINCT metric FROM stored_samples").fetchall()
    known, value, weight = bounds_in_sql([metric for (metric,) in metrics])
    connection.register("metric_bounds", known)
    connection.execute(
        "CREATE OR REPLACE TEMP VIEW samples AS "  # noqa: S608 -- of our own numbers
        f"SELECT stored_samples.* REPLACE ({value} AS value, {weight} AS weight) "
        "FROM stored_samples JOIN metric_bounds USING (metric) "
        # DuckDB filters by the file's minimum and maximum, which ignore NaN.
        f"WHERE interval_s BETWEEN 0 AND {LONGEST_INTERVAL_S} AND NOT isnan(interval_s) "
        f"AND time_ns BETWEEN {EARLIEST_NS} AND {LATEST_NS}"
    )


def _holds_nonsense(samples: ds.Dataset) -> bool:
    """Whether a file contains impossible values. Raises InputError.

    DuckDB does not verify checksums, so this function reads each page that the process has not read yet.
    """
    read = _groups_read(samples)
    for _ in UnreadSamples(samples, read).each(lambda _: None):
        pass
    return any(read.values())


def _groups_read(samples: ds.Dataset) -> dict[int, bool]:
    """Group of rows of a file that this process has read -> whether the group has impossible values."""
    path = samples.files[0]
    result = Path(path).stat()
    return _groups_of(path, result.st_mtime_ns, result.st_size)


@lru_cache(maxsize=4)
def _groups_of(path: str, changed_ns: int, size: int) -> dict[int, bool]:  # noqa: ARG001 -- a file that changed is another
    return {}

"""The samples of a run, in memory or read from the file as needed.

Eight hours of twenty hosts are 115 million samples: as a table they would take ten gigabytes. A file's
groups of rows list their names (``order.py`` keeps these few): what is not requested
is never read.
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
"""A table, or a dataset of one file; ``to_table()`` makes the one of the other."""

_ROWS = 250_000
_THREADS = 2
"""Groups of rows read at the same time; most of that work happens outside of Python's lock."""
_AHEAD = 4
"""Results that may wait to be taken: they are taken in order."""

_MOST_UNPACKED = 1000
"""Samples that stay the same for hours shrink well; they are read a group of rows at a time."""
_USUAL_BYTES = 31 * 2**20
"""Just below the most that glibc takes for usual (32 MiB)."""

_T = TypeVar("_T")
_U = TypeVar("_U")


class SeriesFilter(NamedTuple):
    """Series that are asked for, by their names; None: any."""

    host: str | None = None
    metric: str | None = None
    instance: str | None = None


ANY = SeriesFilter()

_CHECKED = ds.ParquetFileFormat(
    default_fragment_scan_options=ds.ParquetFragmentScanOptions(page_checksum_verification=True)
)


class UnreadSamples:
    """The samples of a run in groups of rows, each handed out once: when it may hold what is requested.

    Args:
        samples: of a run.
        known: the numbers of groups that are not handed out.

    Attributes:
        nonsense: what cannot be among those handed out, which is not measured there.
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
        """What ``work`` makes of each group that may hold the series and was not handed out before.

        Args:
            work: is called in several threads at once; names in its tables are dictionaries.
            wanted: the series.

        Yields:
            Its results, in the order in which the groups were recorded.

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
            result = Tally()  # several threads are at it
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
            readers: SimpleQueue[pq.ParquetFile] = SimpleQueue()  # none is used by two threads at a time
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
    """The number of rows before each group."""
    with _opened(path) as file:
        lengths = [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]
    return [0, *itertools.accumulate(lengths)]


def _keep_what_is_freed() -> None:
    """Free one large array, so that glibc keeps the memory of smaller ones for the next group of rows.

    It takes the size of what is freed for what is usual here (mallopt(3), "M_MMAP_THRESHOLD"). Else it gives
    the arrays of each group back to the system and asks for them anew, page by page: measured a fifth of the
    system's time in a verdict on 115 million samples. Elsewhere this does nothing.
    """
    np.empty(_USUAL_BYTES, dtype=np.uint8)


def _in_order(work: Callable[[_U], _T], items: Iterable[_U]) -> Iterator[_T]:
    """What ``work`` makes of each item, worked on in several threads, in the order of the items."""
    waiting: deque[Future[_T]] = deque()
    with ThreadPoolExecutor(_THREADS) as pool:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > _AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


_Bounds: TypeAlias = tuple[tuple[str, str] | None, ...]
"""The first and the last of each of ``NAMES`` in a group of rows; None if that is not known."""


def _bounds(samples: Samples) -> Iterator[_Bounds]:
    """The groups of rows; a table in memory is one group without statistics."""
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
    """The samples of a file, none of which are read yet.

    Raises:
        InputError: it cannot be read, its columns are not those of ``SAMPLES_SCHEMA``, or its rows take more
            memory than those of a run.
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
    """All of them in memory.

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
    """Whether any sample was measured: at least one value is not null, and can be.

    Raises:
        InputError: the file is damaged.
    """
    return any(UnreadSamples(samples).each(lambda table: table["value"].null_count < table.num_rows))


def extent(samples: Samples) -> tuple[float, float] | None:
    """When the first interval began and the last one ended, UTC seconds; None if there are no samples.

    Raises:
        InputError: the file is damaged.
    """
    spans = list(_spans(samples))
    if not spans:
        return None
    firsts, lasts, longest = zip(*spans, strict=True)
    return min(firsts) / 1e9 - max(longest), max(lasts) / 1e9


def _spans(samples: Samples) -> Iterator[tuple[int, int, float]]:
    """(first and last stamp, longest interval) of each group of rows; those of a file say it themselves."""
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
    """The median of the intervals that samples cover, seconds; 0 if there are no samples."""
    import duckdb  # noqa: PLC0415 -- verdicts need no queries

    connection = duckdb.connect()
    show(samples, connection)
    usual = connection.execute("SELECT median(interval_s) FROM samples").fetchall()[0][0]
    return float(usual or 0.0)


def show(samples: Samples, connection: duckdb.DuckDBPyConnection) -> None:
    """Make them the view ``samples``; DuckDB itself reads a file, and of it what a query needs.

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
        # DuckDB goes by the file's own lowest and highest, in which NaN has no part.
        f"WHERE interval_s BETWEEN 0 AND {LONGEST_INTERVAL_S} AND NOT isnan(interval_s) "
        f"AND time_ns BETWEEN {EARLIEST_NS} AND {LATEST_NS}"
    )


def _holds_nonsense(samples: ds.Dataset) -> bool:
    """Whether something in a file cannot be. Raises InputError.

    DuckDB heeds no checksum, so each page is read here, unless it was for the verdict.
    """
    read = _groups_read(samples)
    for _ in UnreadSamples(samples, read).each(lambda _: None):
        pass
    return any(read.values())


def _groups_read(samples: ds.Dataset) -> dict[int, bool]:
    """The groups of rows of a file that were read in this process -> whether something in it cannot be."""
    path = samples.files[0]
    result = Path(path).stat()
    return _groups_of(path, result.st_mtime_ns, result.st_size)


@lru_cache(maxsize=4)
def _groups_of(path: str, changed_ns: int, size: int) -> dict[int, bool]:  # noqa: ARG001 -- a file that changed is another
    return {}

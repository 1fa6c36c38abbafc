"""All sources of a production server as one plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from pinchpoint.errors import InputError
from pinchpoint.fit.course import course
from pinchpoint.fit.live import is_server, watched
from pinchpoint.fit.mix import fitted
from pinchpoint.fit.planfile import plan_text
from pinchpoint.fit.production import production
from pinchpoint.fit.snapshots import Snapshot, changes, read_csv


def fit(sources: Sequence[str], over_s: float, tell: Callable[[str], None]) -> str:
    """The text of a plan.yaml that loads a farm as production is loaded.

    Args:
        sources: CSV exports of statistics, a PostgreSQL server's URL, recordings of sar or perfmon.
        over_s: how long a server is watched.
        tell: is told what is waited for.

    Raises:
        InputError: a source cannot be used; the message names it and says what is needed.
        FarmUnavailable: a server cannot be reached.
    """
    snapshots: list[Snapshot] = []
    recordings: list[Path] = []
    for source in sources:
        if is_server(source):
            snapshots += watched(source, over_s, tell)
        elif (snapshot := read_csv(Path(source))) is not None:
            snapshots.append(snapshot)
        else:
            recordings.append(Path(source))
    if not snapshots:
        raise InputError(
            f"--from: {', '.join(sources)}: none has statistics of statements; needed: two CSV exports of "
            "pg_stat_statements, one of the Query Store, or postgresql://USER@HOST/DATABASE"
        )
    found = production(changes(snapshots))
    day = course(recordings, found.began_s, found.ended_s) if recordings else None
    return plan_text(found, fitted(found), day)

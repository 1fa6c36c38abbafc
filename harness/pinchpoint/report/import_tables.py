"""Which files of other tools a run has samples of."""

from __future__ import annotations

from pinchpoint.base import units
from pinchpoint.report.clock import day_and_time
from pinchpoint.report.tables import Column, Table, number
from pinchpoint.store.read import StoredRun

_DIGITS = 12
"""Of a file's digest, for the eye; the whole of it stands in the manifest."""


def imports(run: StoredRun) -> Table:
    """One row per imported file."""
    rows = [
        {
            **row,
            "hosts": list(row["hosts"]),
            "from": day_and_time(row["from"]),
            "to": day_and_time(row["to"]),
        }
        for row in run.manifest.get("imports") or ()
    ]
    return Table(
        "imports",
        "Imported files",
        (
            Column("file", "file"),
            Column("kind", "kind"),
            Column("hosts", "hosts"),
            Column("from", "from"),
            Column("to", "to"),
            number("samples", "samples"),
            number("bytes", "size", units.bytes_),
            Column("sha256", "SHA-256", lambda digest: f"{digest[:_DIGITS]}..."),
        ),
        rows,
        empty="",  # most runs have samples of our own collectors only
    )

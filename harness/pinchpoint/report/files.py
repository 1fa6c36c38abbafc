"""Writes the reports of runs, sets, probes and comparisons into folders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pinchpoint.analysis.saved import current_verdict
from pinchpoint.comparison import saved, several_sides
from pinchpoint.probe import compare as of_probes
from pinchpoint.probe import record
from pinchpoint.probe.judge import judge
from pinchpoint.report.cover import PLAIN, Cover
from pinchpoint.report.judged import judge_probes
from pinchpoint.run.run_set import is_set, load_set
from pinchpoint.store.read import StoredRun

# Each format is imported in the function that uses it, because the chart libraries take a second to load.


def write_run(run: StoredRun, verdict: dict[str, Any], formats: Sequence[str], out: Path) -> list[Path]:
    """Write the reports of a run and return their paths. Raises InputError."""
    from pinchpoint.report.registry import write_reports  # noqa: PLC0415 -- as above
    from pinchpoint.report.report import gather  # noqa: PLC0415 -- likewise

    return write_reports(gather(run, verdict), formats, out)


def write_comparison(comparison: saved.AnyComparison, parent: Path) -> Path:
    """Create the folder of a comparison with comparison.json and report.html, and return its path.

    Raises InputError.
    """
    directory = saved.save(comparison, parent)
    write_saved(directory, ["html"], directory)
    return directory


def write_saved(
    directory: Path, formats: Sequence[str], out: Path, cover: Cover = PLAIN, *, redact: bool = False
) -> list[Path]:
    """Write the reports of a saved folder or file and return the paths of the reports.

    The folder may be a run, a set, a comparison or a probe; the file may be a published report.

    Raises:
        InputError: the folder is of another kind, a format is unknown, or ``out`` is not writable.
    """
    from pinchpoint.report import probe_page, registry  # noqa: PLC0415 -- as above
    from pinchpoint.report.brief import Gathered  # noqa: PLC0415 -- likewise
    from pinchpoint.report.comparison import gather as gather_comparison  # noqa: PLC0415 -- likewise
    from pinchpoint.report.report import gather  # noqa: PLC0415 -- likewise

    registry.check_formats(formats)
    report: Gathered
    if directory.is_file():
        from pinchpoint.published import read_report  # noqa: PLC0415 -- likewise
        from pinchpoint.report import published_page  # noqa: PLC0415 -- likewise

        report = published_page.document(read_report(directory))
    elif is_set(directory):
        from pinchpoint.report import set_page  # noqa: PLC0415 -- likewise

        report = set_page.document(load_set(directory))
    elif (directory / record.PROBE).exists():
        probe = record.load(directory)
        report = probe_page.document(probe, judge(probe))
    elif (schema := saved.schema_of(directory)) == of_probes.SCHEMA:
        report = probe_page.compared_document(of_probes.load(directory))
    elif schema == several_sides.SCHEMA:
        from pinchpoint.report import several_page  # noqa: PLC0415 -- likewise

        report = several_page.document(several_sides.load(directory))
    elif saved.is_comparison(directory):
        report = gather_comparison(saved.load(directory))
    else:
        run, verdict = current_verdict(directory)
        judge_probes(run)
        report = gather(run, verdict)
    if redact:
        from pinchpoint.report.redaction import redacted  # noqa: PLC0415 -- likewise

        report = redacted(report)
    return registry.write_reports(report, formats, out, cover)

"""Analyses saved runs and probes again, and writes the new verdicts beside them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pinchpoint.analysis import Verdict
from pinchpoint.analysis.saved import verdict_of
from pinchpoint.base.errors import InputError
from pinchpoint.store.read import StoredRun

if TYPE_CHECKING:
    from pinchpoint.probe.record import Probe
    from pinchpoint.probe.verdict import ProbeVerdict

# Probes and formats are imported in the functions that use them, because most runs have no probe and a
# verdict needs no chart.


def renew_verdict(directory: Path) -> tuple[StoredRun, Verdict]:
    """Analyse a run and its probes again, and save the verdicts. Raises InputError."""
    run, verdict = verdict_of(directory)
    judge_probes(run)
    return run, verdict


def judge_probes(run: StoredRun) -> list[Path]:
    """Judge the probes that ran as scenarios of a plan, and save each in a folder of the run.

    Return the folders; empty if the run is still in progress. Raises InputError.
    """
    if run.manifest["state"] == "running" or not any("suite" in event for event in run.events):
        return []  # each event of a probe contains its suite
    from pinchpoint.probe.in_run import probes_of  # noqa: PLC0415 -- as above

    written = []
    try:
        for name, probe in probes_of(run):
            directory = run.directory / f"probe-{name}"
            directory.mkdir(exist_ok=True)
            renew_probe_verdict(probe, directory)
            written.append(directory)
    except OSError as error:
        raise InputError(f"{run.directory}: cannot be written: {error.strerror}") from error
    return written


def renew_probe_verdict(probe: Probe, directory: Path) -> ProbeVerdict:
    """Judge a probe again and write its files. Raises InputError."""
    from pinchpoint.probe import record  # noqa: PLC0415 -- as above
    from pinchpoint.probe.judge import judge  # noqa: PLC0415 -- likewise
    from pinchpoint.probe.verdict import probe_content  # noqa: PLC0415 -- likewise
    from pinchpoint.report.probe_page import document  # noqa: PLC0415 -- likewise
    from pinchpoint.report.registry import write_reports  # noqa: PLC0415 -- likewise

    verdict = judge(probe)
    record.save(directory, probe_content(probe, verdict))
    write_reports(document(probe, verdict), ["html"], directory)
    return verdict

"""Pinchpoint in Python: make a run or open one, and take its verdict and its samples."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pinchpoint.cli.run import run_and_judge
from pinchpoint.plan import expand_all, load
from pinchpoint.report.files import write_run
from pinchpoint.report.judged import renew_verdict
from pinchpoint.report.terminal import verdict_text
from pinchpoint.store.read import StoredRun


class Run:
    """A run that has been measured.

    Args:
        directory: its folder.

    Raises:
        InputError: it is no run, or a file in it is damaged.
    """

    def __init__(self, directory: Path | str) -> None:
        self.directory = Path(directory)
        self._stored, verdict = renew_verdict(self.directory)
        self.verdict: dict[str, Any] = json.loads(json.dumps(verdict.to_json()))
        """The content of verdict.json (docs/run-directory.md)."""

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """The content of manifest.json: plan, farm, phases, hosts, versions."""
        return self._stored.manifest

    def samples(
        self, metric: str | None = None, host: str | None = None, instance: str | None = None
    ) -> pa.Table:
        """Measured values (columns: docs/metrics.md); all, or those of a metric, host or instance."""
        return _where(self._stored, metric=metric, host=host, instance=instance)

    def operations(self) -> pa.Table:
        """The operations of all scenarios: a row per second, scenario, operation and outcome."""
        return self._stored.operations

    def report(self, *formats: str, out: Path | str | None = None) -> list[Path]:
        """Write the report, as html by default, into the run's folder or ``out``; the paths."""
        return write_run(self._stored, self.verdict, formats or ("html",), Path(out or self.directory))

    def __str__(self) -> str:
        return verdict_text(self.verdict, self._stored.manifest, self.directory)

    def __repr__(self) -> str:
        return f"<pinchpoint.Run {self.directory}: {self.verdict['outcome']}>"


def run(plan: Path | str, farm: Path | str, out: Path | str = "runs") -> Run:
    """Run a plan against a farm, as `pinchpoint run` does; progress goes to stderr.

    Args:
        plan: the path of plan.yaml.
        farm: the path of farm.yaml.
        out: the folder for the run's folder.

    Raises:
        PinchpointError: the files are wrong, or the farm cannot be used; its message says what to do.
    """
    of_farm, of_plan = load(farm, plan)
    expand_all(of_farm)
    ended, _, _ = run_and_judge(of_farm, of_plan, Path(out))
    return Run(ended.directory)


def _where(stored: StoredRun, **wanted: str | None) -> pa.Table:
    kept = pc.scalar(True)
    for name, value in wanted.items():
        if value is not None:
            kept = kept & (pc.field(name) == value)
    if isinstance(stored.samples, pa.Table):
        return stored.samples.filter(kept)
    return stored.samples.to_table(filter=kept)

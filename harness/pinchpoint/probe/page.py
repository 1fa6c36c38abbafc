"""The page of a probe: one file, no script, no network."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from markupsafe import Markup

from pinchpoint.analysis.disk_types import limits_words
from pinchpoint.probe import tables
from pinchpoint.probe.charts import charts
from pinchpoint.probe.figures import figures
from pinchpoint.probe.record import Probe
from pinchpoint.probe.verdict import Verdict
from pinchpoint.report import units
from pinchpoint.report.html import environment, policy, template_file


def page(probe: Probe, verdict: Verdict) -> str:
    """Verdict, charts, tables, how it was done."""
    found = figures(probe)
    text = files("pinchpoint.probe").joinpath("probe.html.j2").read_text(encoding="utf-8")
    return (
        environment()
        .from_string(text)
        .render(
            probe=probe,
            verdict=verdict,
            charts=charts(probe, found),
            tables=[
                tables.workloads(verdict, probe.options.line_s),
                tables.alike(verdict),
                tables.cells(found, verdict),
            ],
            facts=_facts(probe),
            style=Markup(template_file("style.css")),  # noqa: S704 - our own file
            policy=policy([]),
        )
    )


def _facts(probe: Probe) -> list[tuple[str, Any]]:
    """How it was done, for whoever repeats it."""
    where, options, declared = probe.where, probe.options, probe.declared
    said = declared.profile and (f"{declared.stripes} x " if declared.stripes > 1 else "") + declared.profile
    figures_said = None
    if declared.limits and not said:
        figures_said = limits_words(declared.limits.iops, declared.limits.bytes_per_s)
    return [
        ("Folder", where.folder),
        ("Machine", where.host),
        ("Device", where.device or "none: memory or a network share"),
        ("File system", where.file_system or "not known"),
        ("Model", where.model or "not known"),
        ("Declared", said or figures_said or "nothing"),
        ("Repetitions", options.repeat),
        ("Time per cell", units.seconds(options.time_per_cell_s)),
        ("File", units.bytes_(options.size_bytes)),
        ("Began", probe.started),
        ("Ended", probe.ended or "not yet"),
        *((name, version) for name, version in probe.versions.items()),
    ]

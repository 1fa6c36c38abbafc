"""The page of a probe: one file, no script, no network."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from markupsafe import Markup

from pinchpoint.base import units
from pinchpoint.probe import tables, words
from pinchpoint.probe.charts import charts
from pinchpoint.probe.figures import figures
from pinchpoint.probe.record import Probe
from pinchpoint.probe.verdict import Verdict
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
            distance=words.distance(verdict, probe.declared),
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
    where, options = probe.where, probe.options
    return [
        ("Folder", where.folder),
        ("Machine", where.host),
        ("Device", where.device or "none: memory or a network share"),
        ("File system", where.file_system or "not known"),
        ("Model", where.model or "not known"),
        ("Declared", probe.declared.words or "nothing"),
        ("Repetitions", options.repeat),
        (
            "Time per cell",
            units.seconds(options.time_per_cell_s) if options.time_per_cell_s else "until its work was done",
        ),
        ("File", units.bytes_(options.size_bytes)),
        ("Began", probe.started),
        ("Ended", probe.ended or "not yet"),
        *((name, version) for name, version in probe.versions.items()),
    ]

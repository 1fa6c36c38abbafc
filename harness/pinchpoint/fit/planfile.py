"""A fitted plan.yaml, with the origin of each figure beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pinchpoint.fit.figures import Figures, plain
from pinchpoint.fit.load import measure_s
from pinchpoint.fit.section import Section, indented, said
from pinchpoint.plan.production import FIGURES


def plan_text(sections: Sequence[Section]) -> str:
    """The plan, commented: one section for each production server it was fitted to."""
    lines: list[str] = []
    figures: Figures = {}
    for section in sections:
        figures |= section.figures
        for name, scenario in section.scenarios.items():
            lines += indented(2, [f"{name}:", *indented(2, scenario)])
    return "\n".join(
        [
            "# Fitted to what production says of itself. After a run the figures at the end of this file are",
            "# compared with those of the run.",
            "",
            "name: fitted",
            "seed: 1",
            "",
            "scenarios:",
            *lines,
            "",
            f"phases: {{warm_up: 10s, measure: {measure_s(section.day for section in sections)}s}}",
            "",
            *_figures(figures),
            *(line for section in sections for line in _untold(section)),
            "",
        ]
    )


def _figures(figures: Figures) -> Iterator[str]:
    yield "# Production's own figures."
    yield "production:"
    for name in FIGURES:
        if name in figures:
            yield f"  {name}: {plain(figures[name].value)}  # {FIGURES[name]}; {figures[name].origin}"


def _untold(section: Section) -> Iterator[str]:
    """What a server's sources do not tell, and what would."""
    by_need: dict[str, list[str]] = {}
    for name, need in section.tells.items():
        if name not in section.figures:
            by_need.setdefault(need, []).append(FIGURES[name])
    yield from said("Not told: ", (f"{', '.join(names)}; needed: {need}" for need, names in by_need.items()))

"""Writes the HTML format: one file that needs no network and no other file, readable without scripts."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import Any

import platformdirs
import vl_convert
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from pinchpoint.base import units, wording
from pinchpoint.base.glossary import TERMS
from pinchpoint.base.text import escaped_bytes, without_controls
from pinchpoint.data.timeaxis import day_and_time
from pinchpoint.report.brief import Brief, Gathered, brief_of
from pinchpoint.report.comparison import SECTIONS as COMPARED_SECTIONS
from pinchpoint.report.comparison import ComparisonReport
from pinchpoint.report.cover import PLAIN, Cover
from pinchpoint.report.drawn import burst_charts, latency_charts, panel_charts, ratios_of, step_charts
from pinchpoint.report.report import SECTIONS, Report
from pinchpoint.report.tables import run_header
from pinchpoint.report.timeline_chart import FIRST, both_timelines

_TEMPLATES = "templates"
_LOOK = {True: "moved", False: "stayed", None: "inconclusive"}


def write(report: Gathered, cover: Cover = PLAIN) -> str:
    """Return the page as HTML."""
    brief = brief_of(report)
    match report:
        case Report():
            return _run(report, brief, cover)
        case ComparisonReport():
            return _comparison(report, brief, cover)
    return _page("document.html.j2", doc=report, brief=brief, cover=cover)


def _page(template: str, scripts: Sequence[str] = (), **shown: Any) -> str:
    """Render a template to a complete page. The page allows only its own styles and scripts."""
    return (
        environment()
        .get_template(template)
        .render(
            **shown,
            terms=TERMS,
            style=Markup(template_file("style.css")),  # noqa: S704 - our own file
            scripts=[Markup(script) for script in scripts],  # noqa: S704 - our own file and vl-convert's bundle
            policy=policy(scripts),
        )
    )


def _run(report: Report, brief: Brief, cover: Cover) -> str:
    charts, latencies = panel_charts(report), latency_charts(report)
    scripts = [_bundle(), template_file("page.js")] if charts or latencies else []
    return _page(
        "report.html.j2",
        scripts,
        report=report,
        sections={section.name: section for section in SECTIONS},
        verdict=report.verdict,
        manifest=report.run.manifest,
        tables=report.tables,
        header=run_header(report.run.manifest, report.verdict),
        brief=brief,
        cover=cover,
        sure=wording.sure(report.verdict),
        charts=charts,
        first_names=FIRST,
        first=[name for name in FIRST if name in charts],
        latencies=latencies,
        climbs=step_charts(report),
        bursts=burst_charts(report),
        outcome_words="" if report.summary.label else wording.OUTCOME[str(report.verdict["outcome"])],
        crashes=[event for event in report.run.events if event.get("event") == "tier_crashed"],
    )


def _comparison(report: ComparisonReport, brief: Brief, cover: Cover) -> str:
    content = report.content
    look = "invalid" if content["claim"] is None else _LOOK[content["bottleneck"]["moved"]]
    return _page(
        "comparison.html.j2",
        report=report,
        brief=brief,
        cover=cover,
        sections=COMPARED_SECTIONS,
        content=content,
        tables=report.tables,
        base=report.sides[0],
        other=report.sides[1],
        look=look,
        invalid=sum(run["outcome"] == "invalid" for side in report.sides for run in side.runs),
        ratios=ratios_of(report),
        pairs=both_timelines(content),
    )


def policy(scripts: Sequence[str]) -> str:
    """Return the content security policy: no network access, and only these scripts, by their hashes."""
    hashes = " ".join(f"'sha256-{_sha256(script)}'" for script in scripts) or "'none'"
    return f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src {hashes}"


def _sha256(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def environment(*, page: bool = True) -> Environment:
    """Return the Jinja environment with the filters of all formats. Only HTML pages are escaped."""
    made = Environment(
        loader=PackageLoader("pinchpoint.report", _TEMPLATES),
        autoescape=page,  # noqa: S701 -- other formats escape by filters of their own
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=not page,
        finalize=_shown if page else None,
    )
    made.filters |= {
        "percent": units.percent,
        "seconds": units.seconds,
        "per_second": units.per_second,
        "day_and_time": day_and_time,
        "coded": _coded,
        "packed": _packed,
        "pretty": lambda value: json.dumps(value, indent=2, ensure_ascii=False),
        # vl-convert escapes the texts in an SVG. The SVG in a page needs no XML namespace.
        "drawn": lambda chart: Markup(chart.svg.replace(' xmlns="http://www.w3.org/2000/svg"', "")),  # noqa: S704 - see above
    }
    return made


def _shown(value: Any) -> Any:
    """Return a value as a template prints it. Text gets direction marks, and no line break before a unit."""
    if type(value) is not str:
        return value
    text = _FROM_THE_RIGHT.sub("\\g<0>\u200e", without_controls(escaped_bytes(value)))
    return text if "\n" in text else _BEFORE_UNIT.sub("\N{NO-BREAK SPACE}", text)


def _coded(sentence: object) -> Markup:
    """Return a sentence with each command between backticks marked as code."""
    return Markup(_COMMAND.sub(r"<code>\1</code>", str(escape(_shown(sentence)))))  # noqa: S704 - escaped before


def _packed(spec: object) -> str:
    """Return a chart specification for ``page.js`` as base64 of gzip of JSON.

    Compressed, the rows of 20 hosts need a sixth of their size.
    """
    text = json.dumps(spec, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


_COMMAND = re.compile("`([^`]+)`")
_BEFORE_UNIT = re.compile(
    r"(?<=\d) (?=(?:%|\u00d7|x|s|ms|\u00b5s|min|h|B|kB|MB|GB|TB|KiB|MiB|GiB|IOPS|cores?|users?)(?!\w))"
)
_FROM_THE_RIGHT = re.compile(
    r"[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]+(?:\s+[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]+)*"
)
"""Words in Hebrew or Arabic. A direction mark after such a word keeps a following number in place."""


@cache
def _bundle() -> str:
    """Return one script with Vega, Vega-Lite and Vega-Embed.

    Building the script takes two seconds, so it is kept in the user's cache folder if possible.
    """
    kept = platformdirs.user_cache_path("pinchpoint") / f"vega-{version('vl-convert-python')}.js"
    with suppress(OSError, UnicodeDecodeError):
        digest, _, bundled = kept.read_text(encoding="utf-8").partition("\n")
        if digest == _digest(bundled) and kept.stat().st_uid == os.geteuid():
            return bundled
    bundled = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    if "</script" in bundled.lower():
        raise ValueError("vl-convert's script would end its own script element")
    with suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        made = kept.with_suffix(f".{os.getpid()}")
        made.write_text(f"{_digest(bundled)}\n{bundled}", encoding="utf-8")
        made.replace(kept)
    return bundled


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def template_file(name: str) -> str:
    """Return the text of a file in the templates folder."""
    return files("pinchpoint.report").joinpath(_TEMPLATES, name).read_text(encoding="utf-8")

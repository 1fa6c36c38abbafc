"""Writes the JUnit format: verdict, objectives and stop rules as test cases for a CI pipeline."""

from __future__ import annotations

from collections import Counter
from xml.sax.saxutils import escape

from pinchpoint.base.text import one_line
from pinchpoint.report.brief import Gathered, brief_of
from pinchpoint.report.cover import PLAIN, Cover
from pinchpoint.report.html import environment


def write(report: Gathered, cover: Cover = PLAIN) -> str:
    """Return the JUnit XML: one suite with a test case per check.

    A check without a result counts as skipped.
    """
    brief = brief_of(report)
    made = environment(page=False)
    made.filters["xml"] = lambda text: escape(one_line(text), {'"': "&quot;"})
    return made.get_template("report.junit.j2").render(
        brief=brief,
        title=cover.title or brief.title,
        count=Counter(one.state for one in brief.checks),
        elements={"failed": "failure", "skipped": "skipped", "error": "error"},
    )

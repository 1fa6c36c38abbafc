"""The JUnit format: the verdict, objectives and stop rules as the test cases of a pipeline."""

from __future__ import annotations

from collections import Counter
from xml.sax.saxutils import escape

from pinchpoint.base.text import one_line
from pinchpoint.report.brief import Gathered, brief_of
from pinchpoint.report.cover import PLAIN, Cover
from pinchpoint.report.html import environment


def write(report: Gathered, cover: Cover = PLAIN) -> str:
    """The document: one suite, one test case per check; a check without a result is skipped, not passed."""
    brief = brief_of(report)
    made = environment(page=False)
    made.filters["xml"] = lambda text: escape(one_line(text), {'"': "&quot;"})
    return made.get_template("report.junit.j2").render(
        brief=brief,
        title=cover.title or brief.title,
        count=Counter(one.state for one in brief.checks),
        elements={"failed": "failure", "skipped": "skipped", "error": "error"},
    )

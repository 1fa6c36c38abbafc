"""The JUnit format: the verdict, objectives and stop rules as the test cases of a pipeline."""

from __future__ import annotations

from collections import Counter
from xml.etree import ElementTree as Xml

from pinchpoint.base.text import one_line
from pinchpoint.report.brief import Gathered, brief_of
from pinchpoint.report.cover import PLAIN, Cover
from pinchpoint.report.document import TestCase

_ELEMENT = {"failed": "failure", "skipped": "skipped", "error": "error"}


def write(report: Gathered, cover: Cover = PLAIN) -> str:
    """The document: one suite, a test case a check; what has no result is skipped, not passed."""
    brief = brief_of(report)
    name = one_line(cover.title or brief.title)
    count = Counter(one.state for one in brief.checks)
    figures = {
        "tests": str(len(brief.checks)),
        "failures": str(count["failed"]),
        "errors": str(count["error"]),
        "skipped": str(count["skipped"]),
    }
    suites = Xml.Element("testsuites", {"name": "pinchpoint", **figures})
    suite = Xml.SubElement(suites, "testsuite", {"name": name, **figures})
    if brief.at:
        suite.set("timestamp", brief.at.removesuffix("Z"))
    properties = Xml.SubElement(suite, "properties")
    for each in brief.answers:
        Xml.SubElement(properties, "property", name=each.question, value=one_line(each.said))
    for check in brief.checks:
        _case(suite, check)
    Xml.indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{Xml.tostring(suites, encoding="unicode")}\n'


def _case(suite: Xml.Element, check: TestCase) -> None:
    case = Xml.SubElement(suite, "testcase", classname=one_line(check.group), name=one_line(check.name))
    text = one_line(check.message)
    if check.state in _ELEMENT:
        Xml.SubElement(case, _ELEMENT[check.state], message=text).text = text
    elif text:
        Xml.SubElement(case, "system-out").text = text

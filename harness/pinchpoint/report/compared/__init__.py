"""A comparison as a page, as Markdown, as JSON, as sentences for the terminal: from comparison.json alone."""

from pinchpoint.report.compared import html, jsonfile, markdown

__all__ = ["html", "jsonfile", "markdown"]

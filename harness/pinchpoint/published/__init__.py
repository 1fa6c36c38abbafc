"""Judges the published figures of a report, without samples."""

from pinchpoint.published.judge import SCHEMA, PublishedFindings, judge_report
from pinchpoint.published.record import PublishedReport, read_report

__all__ = ["SCHEMA", "PublishedFindings", "PublishedReport", "judge_report", "read_report"]

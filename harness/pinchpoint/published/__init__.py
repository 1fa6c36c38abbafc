"""Figures of a report, without any sample: what they prove, where they disagree, what is missing."""

from pinchpoint.published.judge import SCHEMA, Found, judge_report
from pinchpoint.published.record import Report, read_report

__all__ = ["SCHEMA", "Found", "Report", "judge_report", "read_report"]

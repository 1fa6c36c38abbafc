"""Judges samples without operations: what was saturated, when, and what was not measured."""

from pinchpoint.analysis.recordings.judge import is_recording, judge_recording

__all__ = ["is_recording", "judge_recording"]

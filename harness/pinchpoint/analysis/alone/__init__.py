"""Samples without any operation: what was used up, for how long and when, and what that can bear."""

from pinchpoint.analysis.alone.judge import is_samples_alone, judge_samples

__all__ = ["is_samples_alone", "judge_samples"]

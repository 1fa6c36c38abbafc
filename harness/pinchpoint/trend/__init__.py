"""Finds changes of level in a plan's figures over many runs, and whether a figure is worse now."""

from pinchpoint.trend.history import read_histories
from pinchpoint.trend.trend import SCHEMA, FigureTrend, LevelChange, Trend, find_trend

__all__ = ["SCHEMA", "FigureTrend", "LevelChange", "Trend", "find_trend", "read_histories"]

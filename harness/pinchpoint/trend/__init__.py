"""Many runs of one plan: when did a figure change its level, by how much, and is it worse now?"""

from pinchpoint.trend.history import read_histories
from pinchpoint.trend.trend import SCHEMA, FigureTrend, LevelChange, Trend, find_trend

__all__ = ["SCHEMA", "FigureTrend", "LevelChange", "Trend", "find_trend", "read_histories"]

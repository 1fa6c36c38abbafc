"""The presets of sql-mix: name -> operation -> weight (its share of all operations is weight ÷ sum)."""

from __future__ import annotations

PRESETS: dict[str, dict[str, float]] = {
    # a transaction log's load: eight commits of one small row for each page read or dirtied
    "log-heavy": {"log_append": 8, "data_update": 1, "point_read": 1},
    # a data file's load: random pages read in and dirtied, written back by checkpoints
    "data-heavy": {"log_append": 1, "data_update": 8, "point_read": 1},
    # as many reads as writes, the writes half log-bound, half data-bound
    "balanced": {"log_append": 1, "data_update": 1, "point_read": 2},
    # a nightly load: hundreds of rows appended at once
    "bulk": {"bulk_load": 1, "log_batch": 4},
    # reports that sort more than memory holds, among the lookups they share the server with
    "tempdb": {"spill": 1, "point_read": 1},
    # a catalogue's load: many lookups, some lists, few changes
    "read-mostly": {"point_read": 16, "range_scan": 2, "data_update": 1, "log_append": 1},
}
DEFAULT = "balanced"

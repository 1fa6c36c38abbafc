"""The embedded farm's own servers: one process each, started by its tiers."""

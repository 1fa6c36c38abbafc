"""Stores measurements in a crash-safe run directory: ``write`` writes the directory and ``read`` reads it."""

"""Where measurements are kept: a crash-safe run directory, written by ``write`` and read by ``read``."""

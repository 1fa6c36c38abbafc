"""Predicts the throughput of a farm after a change of hardware or load, for advice and ``what-if``."""

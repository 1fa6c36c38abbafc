"""Fits nosql-burst to the statistics of a key-value store; each store has one file."""

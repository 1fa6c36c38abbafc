"""Fits nosql-burst to the statistics of a key-value store; one file for each store."""

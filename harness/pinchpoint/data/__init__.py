"""A stored run as the tables that analyses read: inputs, series of samples, operations."""

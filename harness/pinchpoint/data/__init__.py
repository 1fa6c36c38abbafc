"""Turns a stored run into the tables that analyses read: inputs, series of samples, operations."""

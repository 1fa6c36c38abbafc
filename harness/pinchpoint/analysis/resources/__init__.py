"""Kinds of resources that can saturate: one module finds, judges and names one kind, and advises on it."""

"""Writes runs, probes, comparisons and trends as documents: HTML, PDF, Markdown, JSON, terminal text."""

"""Reads Prometheus exporters: the metrics of their series, and the Prometheus server."""

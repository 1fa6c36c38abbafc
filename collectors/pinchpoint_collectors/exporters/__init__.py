"""Exporters that Prometheus scrapes: what their series become, and the server that keeps these."""

"""``run --live``: a page and Prometheus metrics of a run in progress, served by a separate process."""

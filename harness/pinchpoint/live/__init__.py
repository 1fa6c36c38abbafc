"""``run --live``: a page and Prometheus metrics of a run that is going on, served by a process of its own."""

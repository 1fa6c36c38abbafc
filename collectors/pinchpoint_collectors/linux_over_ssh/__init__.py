"""Collector ``ssh``: the script that runs on the host (``loop.sh``), and the parsers of its output."""

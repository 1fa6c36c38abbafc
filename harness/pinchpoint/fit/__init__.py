"""Fits a plan to the statistics of production servers (``init --from``)."""

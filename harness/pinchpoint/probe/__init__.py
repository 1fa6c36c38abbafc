"""Runs storage probes: a suite of I/O on one disk, saved as ``probe.json``, and the kind of limit.

Flow: ``target.py`` finds the disk (``storage_probe/place.py`` of the scenarios makes a folder on it);
``suite_run.py`` runs the jobs in sequence and saves each result; ``record.py`` holds the probe; ``judge.py``
computes the findings from the figures; ``report/`` makes pages and texts.
"""

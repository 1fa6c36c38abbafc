"""Storage probes: a suite of I/O against one disk, kept as ``probe.json``, and the kind of limit it shows.

``target.py`` (the disk; a folder of our own on it: ``storage_probe/place.py`` of scenarios) →
``suite_run.py`` (jobs, one after the other, kept as they end) → ``record.py`` (the probe) → ``judge.py``
(pure: figures in, findings out) → pages and texts of ``report/``.
"""

"""The bridge: what an application would get done on a disk that was probed.

``mix.py`` (what one operation asks of each disk, out of a run) and ``disk.py`` (what a disk takes for it,
out of a probe) → ``swap.py`` (the run's disk with the probe's figures in its place) → ``forecast.py`` (the
model of ``what-if`` with that disk) → ``told.py`` (as people read it).
"""

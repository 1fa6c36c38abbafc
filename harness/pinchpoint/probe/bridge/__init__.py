"""The bridge: what an application would get done on a disk that was probed.

``mix.py`` (what one operation asks of the disk, out of a run) and ``disk.py`` (what the disk takes for it,
out of a probe) → ``model.py`` (pure arithmetic: users, a CPU, flushes, reads) → ``forecast.py`` (the
prediction with its range) → ``told.py`` (as people read it).
"""

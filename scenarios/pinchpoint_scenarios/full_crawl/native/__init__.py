"""A SharePoint farm's own crawl, started, watched and stopped by a PowerShell script (``drive: native``).

``drive.py`` is what full-crawl does then; ``session.py`` watches; ``crawler.py`` asks the farm, over a
``link.py``: ``ssh.py`` or ``winrm.py``; ``progress.py`` and ``crawl_log.py`` make counts and sentences of it.
"""

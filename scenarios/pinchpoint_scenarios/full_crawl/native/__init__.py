"""A SharePoint farm's own crawl, by a PowerShell script that starts, tells and stops it (``drive: native``).

``drive.py`` is what full-crawl does then; ``session.py`` watches; ``crawler.py`` asks the farm, over a
``link.py``: ``ssh.py`` or ``winrm.py``; ``progress.py`` and ``crawl_log.py`` make counts and sentences of it.
"""

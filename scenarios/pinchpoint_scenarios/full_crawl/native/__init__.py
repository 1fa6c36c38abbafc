"""A SharePoint farm's own crawl, started, watched and stopped by a PowerShell script (``drive: native``).

``drive.py`` is full-crawl's code for this case; ``session.py`` watches; ``crawler.py`` queries the farm over
a ``link.py``: ``ssh.py`` or ``winrm.py``; ``progress.py`` and ``crawl_log.py`` convert counts and messages.
"""

"""Runs a SharePoint farm's own crawl by a PowerShell script: starts, watches and stops the crawl.

``drive.py`` is the scenario full-crawl for this case. ``session.py`` watches the crawl. ``crawler.py``
queries the farm over a ``link.py``, which is ``ssh.py`` or ``winrm.py``. ``progress.py`` and ``crawl_log.py``
convert counts and messages.
"""

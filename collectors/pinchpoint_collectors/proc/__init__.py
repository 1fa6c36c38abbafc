"""What Linux says in /proc and /sys, parsed.

One module per file, pure: from a text to a record, from two records to values. Nothing here opens a
file, so a text that came from another machine is read the same way.
"""

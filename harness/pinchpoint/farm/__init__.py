"""A farm that can be driven now: declared, or embedded and started on this machine."""

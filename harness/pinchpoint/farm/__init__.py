"""A farm that is ready for load: declared, or embedded and started on this machine."""

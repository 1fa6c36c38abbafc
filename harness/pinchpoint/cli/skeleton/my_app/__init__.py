"""A scenario and a collector for Pinchpoint."""

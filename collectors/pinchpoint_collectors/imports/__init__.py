"""Reads files of other tools as samples with Pinchpoint's names and units: one module per format."""

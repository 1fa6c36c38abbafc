"""Collectors read the measurements of each tier of a farm as samples, with one set of names and units."""

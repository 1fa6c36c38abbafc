"""Collectors: what is measured on each tier of a farm, as samples with one set of names and units."""

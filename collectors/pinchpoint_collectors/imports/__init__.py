"""Files that other tools recorded, as samples with our names and units: one module per format."""

"""What a comparison shows, from comparison.json alone."""

"""The servers that Pinchpoint provides for an embedded farm, one process each. Tiers start them."""

"""``pinchpoint-collect``, which records a host by itself, and kind ``agent``, which fetches that."""

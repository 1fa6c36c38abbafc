"""The command ``pinchpoint-collect``, which records a host, and the collector that fetches its records."""

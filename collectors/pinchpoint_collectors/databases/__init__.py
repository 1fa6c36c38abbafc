"""Collectors for database servers: waits, disks and locks, as the server reports them."""

"""Cloud platforms: the share of their limits that disks and machines used, as the platform measured it."""

"""What load looks like: workload drivers that know nothing of Locust, plans or reports."""

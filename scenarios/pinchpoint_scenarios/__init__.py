"""Workload drivers, independent of Locust, plans and reports."""

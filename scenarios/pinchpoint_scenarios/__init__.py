"""Workload drivers. They are independent of Locust, plans and reports."""

"""Offers load: when operations start, who performs them, how they are recorded.

Only ``engine`` uses Locust.
"""

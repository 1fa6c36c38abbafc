"""Load: when operations start, who performs them, how they are recorded. Locust lives in ``engine`` alone."""

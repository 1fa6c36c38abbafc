"""Kind ``ssh``: what runs on the host (``loop.sh``), and how what it sends is read."""

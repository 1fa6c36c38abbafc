"""The collector ``ssh``: the script that runs on the host (``loop.sh``), and the parsing of its output."""

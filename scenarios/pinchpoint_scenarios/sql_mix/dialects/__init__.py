"""The SQL of sql-mix, one file per kind of server."""

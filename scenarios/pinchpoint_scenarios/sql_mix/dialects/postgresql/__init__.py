"""sql-mix in PostgreSQL's SQL. Names are looked up in the scenario's own schema."""

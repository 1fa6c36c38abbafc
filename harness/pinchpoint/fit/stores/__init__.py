"""From what a store of records says of itself to nosql-burst; one file for each store."""

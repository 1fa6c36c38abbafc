"""What a stored run holds, as the tables that analyses read: inputs, series of samples, operations."""

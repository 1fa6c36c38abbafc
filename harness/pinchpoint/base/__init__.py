"""What every package builds on, and what imports none of them: errors, units, wording, secrets, addresses."""

"""Errors, units, wording, secrets and addresses for every package; imports no other package."""

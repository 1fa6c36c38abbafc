"""Errors, units, wording, secrets and addresses that every package uses; imports no other package."""

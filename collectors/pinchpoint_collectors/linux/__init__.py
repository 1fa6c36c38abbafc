"""This machine, where it runs Linux: what must be opened, resolved or tried out; ``proc`` has the parsers."""

"""What can be used up: a module per resource, which finds it, judges it, names it and says what to do."""

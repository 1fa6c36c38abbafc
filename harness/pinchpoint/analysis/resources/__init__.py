"""Resources that can saturate: a module each finds, judges and names one kind, and advises on it."""

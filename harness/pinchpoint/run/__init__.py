"""One plan against one farm: preflight, phases, what is decided while it runs, sets of runs."""

"""Pinchpoint: plan, run, store, analyse, report, and the command line."""

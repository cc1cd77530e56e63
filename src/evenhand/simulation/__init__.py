"""Simulation: many strategies, many trials, the same examples for all of them.

`simulate` runs them, through a backend that spreads the work; `Result` holds the tidy trace and the summary; the store
keeps finished trials on disk.
"""

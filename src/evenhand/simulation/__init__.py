"""Simulation: many strategies, many trials, the same examples for all of them.

`simulate` runs them, through a backend that spreads the work; `Result` holds the tidy trace and the summary; `metrics` says
what is read off them; the store keeps finished trials on disk.
"""

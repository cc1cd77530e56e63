"""Benchmarks: each prints a ratio against a named baseline measured in the same process, on one thread.

Times are processor seconds of this process, so that other work on the machine does not count; the best of several.
"""

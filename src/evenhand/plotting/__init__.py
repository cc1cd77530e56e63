"""Figures drawn with matplotlib: of results, of a sweep, of what the theorems promise."""

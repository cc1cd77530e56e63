"""Figures drawn with matplotlib: of results, of what the theorems promise."""

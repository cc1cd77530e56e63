"""Synthetic sources, whose risks are known exactly."""

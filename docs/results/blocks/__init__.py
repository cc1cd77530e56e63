"""Blocks of the documentation, made of the JSON files in docs/results: one module a subject, each with `blocks()`."""

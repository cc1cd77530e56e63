"""A real server process under load: what the tests and `benchmarks/server.py` share."""

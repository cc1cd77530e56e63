"""What `benchmarks/models.py` runs: sources, cells of trials, rivals of `Minimax`, costs."""

"""PyTorch networks as learners: the learner, its trainer, data on the device, the paper's networks."""

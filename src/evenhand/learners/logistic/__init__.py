"""Logistic regression: the learner, its objectives, the exact solver and the quick refits."""

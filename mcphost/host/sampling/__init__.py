"""Sampling requests: the draft, the budget, the model's answer, the review."""

"""The dialog for sampling requests."""

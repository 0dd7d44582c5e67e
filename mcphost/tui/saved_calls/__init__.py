"""Saves calls under a name, and lists them to run them again."""

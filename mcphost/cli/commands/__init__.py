"""The commands that run without a screen, one module for each."""

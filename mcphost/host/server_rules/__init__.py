"""Judges servers from outside by the requirements of the specification."""

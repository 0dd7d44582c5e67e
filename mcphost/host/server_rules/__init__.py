"""Judges servers by the rows of `requirements.tsv`, by what is seen from outside."""

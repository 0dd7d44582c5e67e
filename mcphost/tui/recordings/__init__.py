"""Recordings that take the place of their servers, in one run."""

"""Verification: the answers of a live server against those of a recording, or against what a saved call expects."""

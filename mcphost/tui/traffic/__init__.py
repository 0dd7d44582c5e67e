"""The messages on every connection."""

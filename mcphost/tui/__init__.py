"""The Textual app: shows the host's state, asks its questions, and calls its services."""

"""The main screen with its tabs, and help."""

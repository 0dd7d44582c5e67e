"""The tasks that servers keep."""

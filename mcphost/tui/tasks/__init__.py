"""The tasks of servers."""
